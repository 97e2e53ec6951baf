"""none: no position encoding (NoPE); the causal mask alone breaks the symmetry."""

from __future__ import annotations

from pe_cli.encodings.base import Family, PositionEncoding, Sees
from pe_cli.encodings.registry import register


@register
class NoEncoding(PositionEncoding):
    r"""Plain causal attention.

    .. math:: s_{ij} = q_i \cdot k_j / \sqrt{d}, \quad j \le i
    """

    name = "none"
    family = Family.NONE
    reference = "Haviv et al. 2022, arXiv:2203.16634; Kazemnejad et al. 2023, arXiv:2305.19466"
    year = 2022
    sees = Sees.NOTHING
