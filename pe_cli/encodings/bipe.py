"""bipe: one encoding for the place in a segment, such as a line, another for the segment's number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import torch
from pydantic import Field, NonNegativeInt
from torch import Tensor

from pe_cli.encodings._composition import Composition, renumbered
from pe_cli.encodings._structure import among, segments
from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec, PositionEncoding
from pe_cli.encodings.registry import EncodingBlock, build, register
from pe_cli.encodings.views import Positions
from pe_cli.errors import refused


@register
class BiPE(Composition):
    r"""Bilevel position encoding: absolute inside a segment, relative between segments.

    .. math:: x_p = E[t_p] + e_{o_p}, \quad s_{ij} = q_i \cdot k_j / \sqrt{d} - m_h\,c\,(g_i - g_j)
              \ \text{ or } \ (R_{c g_i} q_i) \cdot (R_{c g_j} k_j) / \sqrt{d}, \quad
              g_p = |\{r < p : t_r \in S\}|, \quad o_p = |\{r < p : g_r = g_p\}|

    A separator belongs to the segment that it ends, so an id depends on earlier characters alone. The paper's
    two forms are rope with c = 1 and alibi with c = 96 on the segment numbers g.
    """

    name = "bipe"
    family = Family.STRUCTURAL
    reference = "He et al. 2024, arXiv:2401.16421"
    year = 2024

    class Options(EncodingOptions):
        absolute: EncodingBlock = Field(default={"name": "sinusoidal"})
        """Name or block of the encoding that is given the offsets o inside segments."""
        relative: EncodingBlock = Field(default={"name": "rope"})
        """Name or block of the encoding that is given the segment numbers, times c."""
        separators: str = Field(default="\n.", min_length=1)
        """S: each character of this text ends a segment. Without any of them the text is one segment."""
        segment_scale: Annotated[float, Field(gt=0, le=2**16)] = 1.0
        """c: what segment numbers are multiplied by. The paper's slopes times 96 are alibi with c = 96."""
        max_offset: NonNegativeInt | None = None
        """Offsets above this become this; None: no limit. The released code has 1023."""

    ends: Tensor

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        blocks = {"absolute": options.absolute, "relative": options.relative}
        parts = {key: build(block, spec, key) for key, block in blocks.items()}
        for key, part in parts.items():
            if "positions" in part.hooks(0):
                raise refused(key, f"{part.name} reads its own ids from the text, and here bipe does")
        if options.segment_scale % 1 and not parts["relative"].fractional:
            raise refused(
                "segment_scale", f"must be a whole number for {parts['relative'].name}, not {options.segment_scale:g}"
            )
        super().__init__(options, spec, list(parts.values()))
        self.refuse_conflicts("")
        self.register_buffer("ends", among(spec.alphabet, options.separators), persistent=False)

    def positions(self, tokens: Tensor, generator: torch.Generator | None = None) -> Positions:
        offset, segment = (numbers.float() for numbers in segments(self.ends[tokens]))
        if self.options.max_offset is not None:
            offset = offset.clamp(max=self.options.max_offset)
        ids = (Positions(offset), Positions(segment * self.options.segment_scale))
        sequential = super().positions(tokens, generator).parts
        parts = tuple(given(part, own) for part, own in zip(sequential, ids, strict=True))
        return Positions(parts[0].ids, parts=parts)

    def hooks(self, index: int) -> frozenset[str]:
        return super().hooks(index) | {"positions"}

    def map(self, function: Callable[[PositionEncoding], PositionEncoding]) -> PositionEncoding:
        """As one: the ids of the parts are read from the text together."""
        return function(self)


def given(positions: Positions, own: Positions) -> Positions:
    """`own` in the place of all ids, however an encoding is composed."""
    return renumbered(positions, lambda _: own)
