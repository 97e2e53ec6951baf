"""Forgetting attention at the start and with closed gates; its sums of log gates are looked at in test_gates."""

from __future__ import annotations

import pytest
import torch
from driving import built, output, random_layer


def test_at_the_start_a_character_keeps_nearly_all() -> None:
    assert built("fox").numbers(1)["forget_gates"].flatten().tolist() == pytest.approx([0.99331] * 8, abs=1e-5)


def test_closed_gates_stay_finite() -> None:
    layer = random_layer(8)
    encoding = built({"name": "fox", "gate_bias": -200.0})
    result = output(encoding, layer, layer.k)
    result.sum().backward()
    torch.testing.assert_close(result, layer.k)  # all is forgotten but the character itself
    assert all(p.grad is not None and p.grad.isfinite().all() for p in encoding.parameters())
