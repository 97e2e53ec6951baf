"""rope_partial: rope on the first columns of a head only, with the frequencies of that many columns."""

from __future__ import annotations

from pydantic import Field

from pe_cli.encodings._rotary import Rotary, RotaryOptions, inverse_frequencies, require_even_head, share_of
from pe_cli.encodings.base import ModelSpec
from pe_cli.encodings.registry import register
from pe_cli.errors import refused


@register
class RoPEPartial(Rotary):
    r"""Partial rotary embedding.

    .. math:: s_{ij} = (R_{p_i} q_i) \cdot (R_{p_j} k_j) / \sqrt{d}, \quad
              R_p \text{ turns pair } k < r/2 \text{ by } p\,b^{-2k/r}, \quad r = f d

    The d − r last columns are not touched. All wavelengths from 2π to about 2πb are kept, in fewer pairs; with
    the frequencies of the whole head, of which the lowest are dropped, it would be another method. GPT-NeoX
    turns a quarter of a head, the two halves of that quarter being paired; GPT-J pairs neighbouring columns.
    """

    name = "rope_partial"
    reference = "Wang and Komatsuzaki 2021, GPT-J-6B; Black et al. 2022, arXiv:2204.06745 (GPT-NeoX-20B)"
    year = 2021

    class Options(RotaryOptions):
        fraction: float = Field(default=0.25, ge=0, le=1)
        """f: the share of a head's columns that turn. 1 is rope, 0 no position encoding."""

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        width = rotary_width(options.fraction, spec)
        super().__init__(options, spec, inverse_frequencies(width, options.base), options.layout)


def rotary_width(fraction: float, spec: ModelSpec) -> int:
    """The number of columns that turn; ConfigError where they do not form pairs."""
    if fraction == 1:
        require_even_head(spec)
    width = share_of(spec.d_head, fraction)
    if width % 2 or (width == 0 and fraction > 0):
        below = width // 2 * 2
        even = [columns for columns in (below, below + 2) if 0 < columns <= spec.d_head]
        shares = " or ".join(f"{columns / spec.d_head:g}" for columns in even)
        raise refused(
            "fraction",
            f"{fraction:g} of the {spec.d_head} columns of a head is {width}, "
            f"and columns are turned in pairs; {shares or 'heads of two columns or more'} would do",
        )
    return width
