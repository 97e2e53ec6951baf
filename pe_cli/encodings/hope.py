"""hope: rope with only the frequencies that complete a turn in the training length."""

from __future__ import annotations

from pe_cli.encodings._rotary import (
    Rotary,
    RotaryOptions,
    completing_a_turn,
    inverse_frequencies,
    require_even_head,
)
from pe_cli.encodings.base import ModelSpec
from pe_cli.encodings.registry import register


@register
class HoPE(Rotary):
    r"""High-frequency rotary position encoding.

    .. math:: s_{ij} = (R_{p_i} q_i) \cdot (R_{p_j} k_j) / \sqrt{d}, \quad
              \theta_k = b^{-2k/d} \text{ if } b^{-2k/d} \ge 2\pi / L, \text{ else } 0

    L is the training length. Pairs whose wave is longer would meet angles beyond it that they were never trained
    on; they become independent of the position and serve the content. Other methods are called HoPE as well
    (hyperbolic; for video): this is the one without long-term decay.
    """

    name = "hope"
    reference = "Chen et al. 2024, arXiv:2410.21216"
    year = 2024

    class Options(RotaryOptions):
        pass

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        require_even_head(spec)
        frequencies = inverse_frequencies(spec.d_head, options.base)
        super().__init__(options, spec, completing_a_turn(frequencies, spec), options.layout)
