"""RetNet's decay as a bias: each head forgets at its own fixed rate."""

from __future__ import annotations

import pytest
import torch
from driving import at, bias, built, random_layer, sequential_bias, weights
from torch import Tensor


def decays(n_heads: int) -> Tensor:
    return built("retnet_decay", d_model=2 * n_heads, n_heads=n_heads).numbers(1)["decays"]


@pytest.mark.parametrize("n_heads", [1, 4, 6])
def test_decays_of_the_paper(n_heads: int) -> None:
    expected = [31 / 32, 63 / 64, 127 / 128, 255 / 256, 511 / 512, 1023 / 1024][:n_heads]
    assert decays(n_heads).tolist() == pytest.approx(expected, rel=1e-7)


def test_heads_do_not_depend_on_how_many_there_are() -> None:
    """Unlike the slopes of alibi."""
    assert torch.equal(decays(16)[:4], decays(4))


def test_the_exponential_of_the_bias_is_the_decay_to_the_power_of_the_distance() -> None:
    factors = sequential_bias(built("retnet_decay"), 5).exp()
    expected = torch.tensor([(31 / 32) ** n for n in (4, 3, 2, 1, 0)], dtype=torch.float64)
    torch.testing.assert_close(factors[0, 4], expected, rtol=1e-7, atol=0)
    assert (factors[:, 0, 1:] == 0).all()


def test_weights_are_those_of_softmax_times_the_decay() -> None:
    layer = random_layer(6)
    ours = weights(built("retnet_decay"), layer)
    unscaled = (layer.q @ layer.k.transpose(-2, -1) / 8**0.5).exp().tril()
    offset = torch.arange(6)[:, None] - torch.arange(6)
    decay = torch.tensor([31 / 32, 63 / 64, 127 / 128, 255 / 256], dtype=torch.float64)[:, None, None]
    kept = unscaled * decay ** offset.clamp(min=0)
    torch.testing.assert_close(ours, kept / kept.sum(-1, keepdim=True), rtol=1e-6, atol=0)


def test_repeated_and_fractional_ids() -> None:
    ours = bias(built("retnet_decay"), random_layer(3).at(at([0, 0, 2.5]))).exp()
    assert ours[0, 0, 1, 0].item() == 1
    assert ours[0, 0, 2, 0].item() == pytest.approx((31 / 32) ** 2.5, rel=1e-7)


def test_nothing_is_saved() -> None:
    assert not built("retnet_decay").state_dict()
