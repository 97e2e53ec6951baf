"""mix: several encodings at once, such as a learned table and a T5 bias."""

from __future__ import annotations

from pydantic import Field

from pe_cli.encodings._composition import Composition
from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec
from pe_cli.encodings.registry import EncodingBlock, build, register


@register
class Mix(Composition):
    r"""The sum of what its parts add, and the intersection of what they allow.

    .. math:: x_p = E[t_p] + \sum_m e^{(m)}_p, \qquad
              s_{ij} = q_i \cdot k_j / \sqrt{d} + \sum_m b^{(m)}_{ij}

    At most one part may change each of rotation, logits, weights and values: for those a sum has no meaning.
    """

    name = "mix"
    family = Family.COMPOSITION
    reference = "Ke, He and Liu 2021, arXiv:2006.15595 (absolute and relative together)"
    year = 2021

    class Options(EncodingOptions):
        parts: list[EncodingBlock] = Field(default=[{"name": "learned"}, {"name": "t5"}], min_length=1)
        """Names or blocks of the encodings to join."""

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        parts = [build(block, spec, f"parts.{place}") for place, block in enumerate(options.parts)]
        super().__init__(options, spec, parts)
        self.refuse_conflicts("parts")
