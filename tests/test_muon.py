"""Muon in batches takes the steps that Muon takes matrix by matrix."""

from __future__ import annotations

import pytest
import torch
from torch import nn, optim

from pe_cli.muon import Muon, orthogonal

SHAPES = [(16, 16), (24, 16), (16, 16), (16, 24), (16, 16), (24, 16), (5, 40)]


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_steps_are_those_of_one_matrix_after_another(weight_decay: float) -> None:
    generator = torch.Generator().manual_seed(0)
    starts = [torch.randn(shape, generator=generator) for shape in SHAPES]
    together, alone = ([nn.Parameter(start.clone()) for start in starts] for _ in range(2))
    settings = {"lr": 0.02, "weight_decay": weight_decay}
    ours, theirs = Muon(together, **settings), optim.Muon(alone, **settings)
    for step in range(4):
        for number, (one, other) in enumerate(zip(together, alone, strict=True)):
            gradient = None if (step, number) == (1, 2) else torch.randn(one.shape, generator=generator)
            one.grad, other.grad = gradient, None if gradient is None else gradient.clone()
        ours.step()
        theirs.step()
    for start, one, other in zip(starts, together, alone, strict=True):
        moved = (one - start).norm()
        assert moved > 0.01
        assert (one - other).norm() < 0.01 * moved  # sums of bfloat16 may be rounded in another order
        assert torch.equal(ours.state[one]["momentum_buffer"], theirs.state[other]["momentum_buffer"])


def test_singular_values_come_near_one() -> None:
    x = torch.randn(3, 20, 12, generator=torch.Generator().manual_seed(0))
    values = torch.linalg.svdvals(orthogonal(x, (3.4445, -4.7750, 2.0315), 5, 1e-7).float())
    assert 0.6 < values.min() <= values.max() < 1.3
    assert torch.linalg.svdvals(x).max() > 5
