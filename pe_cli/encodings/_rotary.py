"""What the rotary encodings share: frequencies, angles, and the turning of pairs of columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec, PositionEncoding, Sees, precise
from pe_cli.encodings.views import LayerView
from pe_cli.errors import refused

Layout = Literal["halves", "interleaved"]


class RotaryOptions(EncodingOptions):
    """What the encodings that turn pairs of columns have in common."""

    base: float = Field(default=10000.0, ge=1)
    """b: the slowest pair turns once in about 2πb ids."""
    layout: Layout = "halves"
    """halves: columns k and k + n are a pair, of n pairs; interleaved: columns 2k and 2k + 1."""


class Rotary(PositionEncoding):
    """Turns pairs of columns of queries and keys by id × frequency; other columns stay as they are.

    A pair of frequency zero stays too: where there is no other, no ids are seen.
    """

    family = Family.ROTARY
    sees = Sees.DISTANCE

    def __init__(self, options: Any, spec: ModelSpec, frequencies: Sequence[float], layout: Layout) -> None:
        super().__init__(options, spec)
        self.frequencies = tuple(frequencies)
        """Radians per id of each pair. Numbers, not a buffer: no cast or move of the model can round them."""
        self.layout: Layout = layout
        if not any(self.frequencies):
            self.sees = Sees.NOTHING

    def rotate(self, layer: LayerView) -> tuple[Tensor, Tensor]:
        angle = angles(layer.positions.ids, self.frequencies)[:, None]  # (B or 1, 1, T, pairs)
        cos, sin = angle.cos().to(layer.q.dtype), angle.sin().to(layer.q.dtype)
        return turned(layer.q, cos, sin, self.layout), turned(layer.k, cos, sin, self.layout)

    def numbers(self, length: int) -> dict[str, Tensor]:
        frequencies = torch.tensor(self.frequencies, dtype=torch.float64)
        return {"inverse_frequencies": frequencies, "wavelengths": 2 * math.pi / frequencies}


def inverse_frequencies(width: int, base: float) -> tuple[float, ...]:
    """base^(−2k / width) for the pairs k = 0, 1, … of `width` columns; an odd last column has one too."""
    return tuple(base ** (-2 * pair / width) for pair in range((width + 1) // 2))


def share_of(count: int, share: float) -> int:
    """The whole number of columns or pairs in a share of them; a third of 24 may be written 0.333333."""
    return int(count * share + 1e-4)


def completing_a_turn(frequencies: Sequence[float], spec: ModelSpec) -> tuple[float, ...]:
    """The frequencies, those of waves longer than the training length set to zero; SectionError where all are."""
    lowest = 2 * math.pi / spec.train_length
    if frequencies[0] < lowest:
        raise refused(
            "",
            f"training.length {spec.train_length} is shorter than the shortest wave, of 2π ids, "
            "and no other would be left; 7 or more would do",
        )
    return tuple(frequency if frequency >= lowest else 0.0 for frequency in frequencies)


def angles(ids: Tensor, frequencies: Sequence[float]) -> Tensor:
    """id × frequency in float64, (…, T) to (…, T, frequencies): float32 is off by 1e-4 at id 4000."""
    ids = precise(ids)
    return ids[..., None] * torch.tensor(frequencies, dtype=ids.dtype, device=ids.device)


def turned(x: Tensor, cos: Tensor, sin: Tensor, layout: Layout) -> Tensor:
    """`x` (B, H, T, K) with its first 2n columns turned; `cos` and `sin` (…, T, n) belong to the n pairs.

    halves: columns k and k + n are a pair; interleaved: columns 2k and 2k + 1. The two are one function up to
    a fixed permutation of the columns of the query and key matrices, so a model trained with one is not
    readable with the other.
    """
    pairs = cos.shape[-1]
    if layout == "halves":
        first, second, rest = x.split((pairs, pairs, x.shape[-1] - 2 * pairs), dim=-1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin, rest), dim=-1)
    first, second, rest = x[..., 0 : 2 * pairs : 2], x[..., 1 : 2 * pairs : 2], x[..., 2 * pairs :]
    mixed = torch.stack((first * cos - second * sin, second * cos + first * sin), dim=-1)
    return torch.cat((mixed.flatten(-2), rest), dim=-1)


def require_even_head(spec: ModelSpec) -> None:
    """SectionError where the columns of a head do not form pairs; it names sizes that would do."""
    if spec.d_head % 2 == 0:
        return
    step = 2 * spec.n_heads
    below, above = spec.d_model // step * step, (spec.d_model // step + 1) * step
    widths = " or ".join(str(width) for width in (below, above) if width)
    heads = [count for count in range(1, spec.d_model + 1) if spec.d_model % (2 * count) == 0]
    advice = f"model.d_model: {widths} would do"
    if heads:
        advice += f", or model.n_heads: {', '.join(map(str, heads))}"
    raise refused(
        "",
        f"model.d_model {spec.d_model} with model.n_heads {spec.n_heads} gives heads of "
        f"{spec.d_head} columns, and columns are turned in pairs; {advice}",
    )
