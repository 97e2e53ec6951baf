"""p_rope: rope without its lowest frequencies, whose columns are left to what the text says."""

from __future__ import annotations

from pydantic import Field

from pe_cli.encodings._rotary import Rotary, RotaryOptions, inverse_frequencies, require_even_head, share_of
from pe_cli.encodings.base import ModelSpec
from pe_cli.encodings.registry import register


@register
class PRoPE(Rotary):
    r"""p-RoPE: the share p of the frequencies that is kept are the highest.

    .. math:: s_{ij} = (R_{p_i} q_i) \cdot (R_{p_j} k_j) / \sqrt{d}, \quad
              \theta_k = b^{-2k/d} \text{ if } k < \lfloor p\,d/2 \rfloor, \text{ else } 0

    The frequencies are those of the whole head, so the longest waves are missing. With the frequencies of the
    columns that turn (`rope_partial`) all waves would be there, in fewer pairs.
    """

    name = "p_rope"
    reference = "Barbero et al. 2025, arXiv:2410.06205"
    year = 2025

    class Options(RotaryOptions):
        p: float = Field(default=0.75, ge=0, le=1)
        """The share of the frequencies that is kept: 1 is rope, 0 no position encoding. 0.75 is the paper's best."""

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        require_even_head(spec)
        frequencies = inverse_frequencies(spec.d_head, options.base)
        kept = share_of(spec.d_head // 2, options.p)
        frequencies = frequencies[:kept] + (0.0,) * (len(frequencies) - kept)
        super().__init__(options, spec, frequencies, options.layout)
