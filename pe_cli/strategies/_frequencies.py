"""What strategies share that change the frequencies of a rotation."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from pe_cli.encodings._composition import Wrapper
from pe_cli.encodings._rotary import Rotary
from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import LayerView
from pe_cli.strategies._ids import refusal, require_ids


class Tempered(Wrapper):
    """Queries and keys multiplied by `factor` after the rotation: the logits by its square."""

    def __init__(self, inner: PositionEncoding, factor: float) -> None:
        super().__init__(inner.options, inner.spec, inner)
        self.name, self.family = inner.name, inner.family
        self.factor = factor

    def rotate(self, layer: LayerView) -> tuple[Tensor, Tensor]:
        q, k = self.inner.rotate(layer)
        return q * self.factor, k * self.factor

    def numbers(self, length: int) -> dict[str, Tensor]:
        return self.inner.numbers(length) | {"attention_factor": torch.tensor(self.factor, dtype=torch.float64)}


def rotation(strategy: str, encoding: PositionEncoding) -> Rotary:
    """The encoding, if it has frequencies that can be changed; else StrategyRefused."""
    require_ids(strategy, encoding)
    layers = range(encoding.spec.n_layers)
    if not isinstance(encoding, Rotary) or any(encoding.hooks(index) != {"rotate"} for index in layers):
        raise refusal(strategy, encoding, "it changes the frequencies of a rotation")
    return encoding


def at_frequencies(encoding: Rotary, frequencies: Sequence[float]) -> Rotary:
    """The same encoding, sharing all parameters, with other frequencies; the very same object with its own."""
    if tuple(frequencies) == encoding.frequencies:
        return encoding
    changed = copy.copy(encoding)
    changed.frequencies = tuple(frequencies)
    return changed


def tempered(encoding: PositionEncoding, factor: float) -> PositionEncoding:
    return encoding if factor == 1 else Tempered(encoding, factor)


def rebased(strategy: str, encoding: PositionEncoding, factor: float) -> Rotary:
    """With another base: b s^(d / (d − 2)), written as θ_k s^(−k / (n − 1)) for the n pairs that turn.

    The first pair stays as it is, and the last one, which is the slowest, becomes s times as slow.
    """
    found = rotation(strategy, encoding)
    pairs = sum(frequency > 0 for frequency in found.frequencies)
    if pairs < 2:
        raise refusal(strategy, encoding, "it turns one pair of columns, which no base makes slower")
    slower = (frequency * factor ** (-pair / (pairs - 1)) for pair, frequency in enumerate(found.frequencies))
    return at_frequencies(found, tuple(slower))


def turns(encoding: Rotary, train_length: int) -> list[float]:
    """How often each pair turns in the trained length."""
    return [train_length * frequency / (2 * math.pi) for frequency in encoding.frequencies]


def blended(encoding: Rotary, factor: float, shares: Sequence[float]) -> Rotary:
    """θ (1 − γ) / s + θ γ with the share γ of each pair."""
    if factor == 1:
        return encoding
    pairs = zip(encoding.frequencies, shares, strict=True)
    return at_frequencies(encoding, tuple((1 - share) * theta / factor + share * theta for theta, share in pairs))


def ramp(value: float, low: float, high: float) -> float:
    """0 up to `low`, 1 from `high` on, a line between."""
    return min(1.0, max(0.0, (value - low) / (high - low)))


def most_turns(train_length: int, least: float) -> float:
    """32 turns, but no more than the square root of those of the fastest pair, and twice `least` at the least.

    That pair, of frequency 1, makes L / 2π turns: 652 in a model of 4096 ids, and 20 in one of 128, where none makes
    32. The square root is half way, in octaves, from a pair that makes one turn to the fastest.
    """
    return max(2 * least, min(32.0, math.sqrt(train_length / (2 * math.pi))))


def scaling(stated: float | None, train_length: int, length: int) -> float:
    """The factor s that was stated, else T / L."""
    return length / train_length if stated is None else stated


def ordered(low: float, high: float | None, names: str) -> None:
    """ValueError unless the first number is below the second."""
    if high is not None and low >= high:
        raise ValueError(f"{names}: the first must be below the second, not {low:g} and {high:g}")
