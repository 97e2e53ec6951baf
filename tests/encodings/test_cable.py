"""Context-aware biases in terms of other encodings; their sums of steps are looked at in test_gates."""

from __future__ import annotations

import torch
from driving import built, logits, random_layer, sequential_bias, with_parameters


def test_it_is_fox_with_the_opposite_sign() -> None:
    cable, fox = built({"name": "cable", "start": 1.5}), built("fox")
    opposite = {"weight": -cable.get_parameter("weight"), "gate_bias": -cable.get_parameter("increment_bias")}
    layer = random_layer(9)
    torch.testing.assert_close(logits(cable, layer), logits(with_parameters(fox, **opposite), layer))


def test_without_weights_it_is_alibi_with_learned_slopes() -> None:
    """softplus(b) = m, for the slopes m of alibi."""
    slopes = built("alibi").numbers(1)["slopes"].double()
    encoding = with_parameters(
        built("cable"), weight=torch.zeros(1, dtype=torch.float64), increment_bias=slopes.expm1().log()
    )
    torch.testing.assert_close(sequential_bias(encoding, 12), sequential_bias(built("alibi"), 12))
