"""rope: queries and keys turned by an angle that grows with the id."""

from __future__ import annotations

from pydantic import Field

from pe_cli.encodings._rotary import Layout, Rotary, inverse_frequencies, require_even_head
from pe_cli.encodings.base import EncodingOptions, ModelSpec
from pe_cli.encodings.registry import register
from pe_cli.errors import ConfigError


@register
class RoPE(Rotary):
    r"""Rotary position embedding.

    .. math:: s_{ij} = (R_{p_i} q_i) \cdot (R_{p_j} k_j) / \sqrt{d}, \quad
              R_p \text{ turns pair } k \text{ by } p\,\theta_k, \quad \theta_k = b^{-2k/d}

    A product of two turned vectors depends on :math:`p_i - p_j` alone. The paper pairs neighbouring columns;
    the default here is the layout of most models in use, which pairs the two halves of a head.
    """

    name = "rope"
    reference = "Su et al. 2021, arXiv:2104.09864"
    year = 2021

    class Options(EncodingOptions):
        base: float = Field(default=10000.0, ge=1)
        """b: the slowest pair turns once in about 2πb ids."""
        layout: Layout = "halves"
        """halves: columns k and k + d/2 are a pair; interleaved: columns 2k and 2k + 1."""
        rotary_fraction: float = Field(default=1.0, ge=0, le=1)
        """Share of a head's columns that turn, with the frequencies of a head of that width."""

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        width = rotary_width(options.rotary_fraction, spec)
        super().__init__(options, spec, inverse_frequencies(width, options.base), options.layout)


def rotary_width(fraction: float, spec: ModelSpec) -> int:
    """The number of columns that turn; ConfigError where they do not form pairs."""
    if fraction == 1:
        require_even_head(spec, "rope")
    width = int(spec.d_head * fraction + 1e-4)  # a third of 24 may be written 0.333333
    if width % 2:
        even = [columns for columns in (width - 1, width + 1) if columns <= spec.d_head]
        shares = " or ".join(f"{columns / spec.d_head:g}" for columns in even)
        raise ConfigError(
            f"encoding.rope.rotary_fraction: {fraction:g} of the {spec.d_head} columns of a head is {width}, "
            f"and columns are turned in pairs; {shares} would do"
        )
    return width
