"""What learned and costly functions of distance share: bounds that let gradients through, small networks, pieces."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

PIECE = 2**14
"""How many numbers a costly function is shown at once: a hidden layer of 512 units then takes 32 MiB."""
FEW = 2**10
"""So many numbers are not worth looking for equal ones among them."""


def bounded(initial: Tensor, low: float, high: float = torch.inf) -> nn.Parameter:
    """A parameter that is used `within` bounds, whatever number it stores.

    Of the whole gradient of a step, what leads further out is dropped; what leads back inside stays. A plain clamp
    would stop both, and a parameter once outside would stay there for good.
    """
    parameter = nn.Parameter(initial)

    def inwards(gradient: Tensor) -> Tensor:
        outwards = ((parameter < low) & (gradient > 0)) | ((parameter > high) & (gradient < 0))
        return gradient.masked_fill(outwards, 0)

    parameter.register_hook(inwards)
    return parameter


def within(parameter: Tensor, low: float, high: float = torch.inf) -> Tensor:
    """A `bounded` parameter, with what lies outside moved to the nearer bound. The gradient passes as it is."""
    moved: Tensor = _Within.apply(parameter, low, high)
    return moved


class _Within(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, parameter: Tensor, low: float, high: float) -> Tensor:
        return parameter.clamp(low, high)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return gradient, None, None


class Network(nn.Module):
    """An MLP for each layer, from one number to a value for each head.

    The last layer has no bias: it would raise all logits of a head alike, which softmax cannot see.
    """

    def __init__(
        self, n_layers: int, n_heads: int, width: int, hidden_layers: int, activation: Callable[[Tensor], Tensor]
    ) -> None:
        super().__init__()
        sizes = [1, *[width] * hidden_layers, n_heads]
        self.weights = nn.ParameterList(drawn(before, n_layers, after, before) for before, after in pairwise(sizes))
        self.biases = nn.ParameterList(drawn(before, n_layers, after) for before, after in pairwise(sizes[:-1]))
        self.activation = activation

    def forward(self, index: int, numbers: Tensor) -> Tensor:
        """(H, n) from (n,), by the MLP of layer `index`."""
        *weights, last = self.weights
        hidden = numbers[None].to(last.dtype)
        for weight, bias in zip(weights, self.biases, strict=True):
            hidden = self.activation(weight[index] @ hidden + bias[index][:, None])
        return last[index] @ hidden


def drawn(inputs: int, *shape: int) -> nn.Parameter:
    """Uniform within ±1/√inputs, as torch draws its linear layers."""
    limit = inputs**-0.5
    return nn.Parameter(torch.empty(shape).uniform_(-limit, limit))


def in_pieces(numbers: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """function(numbers), (n,) to (H, n), with no more at work at once than a piece needs."""
    return torch.cat([function(piece) for piece in numbers.split(PIECE)], dim=-1)


def at_distinct(numbers: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """function(numbers), computed once for each value: the T² pairs of a window have T distances.

    Few numbers, such as those T themselves, are not looked through: torch.compile cannot trace that.
    """
    if numbers.numel() <= FEW:
        distinct, place = numbers, torch.arange(numbers.numel(), device=numbers.device)
    else:
        distinct, place = numbers.unique(return_inverse=True)
    return F.embedding(place, in_pieces(distinct, function).T).T
