"""rope: queries and keys turned by an angle that grows with the id."""

from __future__ import annotations

from pe_cli.encodings._rotary import Rotary, RotaryOptions, inverse_frequencies, require_even_head
from pe_cli.encodings.base import ModelSpec
from pe_cli.encodings.registry import register


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

    class Options(RotaryOptions):
        pass

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        require_even_head(spec)
        super().__init__(options, spec, inverse_frequencies(spec.d_head, options.base), options.layout)
