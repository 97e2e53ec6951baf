"""layered: encodings that take turns from layer to layer."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from pe_cli.encodings._composition import Composition
from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec
from pe_cli.encodings.registry import EncodingBlock, build, register
from pe_cli.errors import refused


@register
class Layered(Composition):
    r"""Layer l uses entry l mod n of a pattern of n encodings.

    .. math:: s^{(l)} = s^{\text{pattern}[l \bmod n]}

    Equal entries are one encoding, which counts only the layers that it serves: a T5 table is then shared by
    them. What is added to the embeddings cannot be limited to some layers and is refused: join it with `mix`.
    """

    name = "layered"
    family = Family.COMPOSITION
    reference = "Yang et al. 2025, arXiv:2501.18795 (RoPE with a window, every fourth layer none)"
    year = 2025

    class Options(EncodingOptions):
        pattern: list[EncodingBlock] = Field(
            default=[
                {"name": "sliding_window", "encoding": "rope"},
                {"name": "sliding_window", "encoding": "rope"},
                {"name": "sliding_window", "encoding": "rope"},
                {"name": "none"},
            ],
            min_length=1,
        )
        """Names or blocks, from the first layer on; repeated over the layers. Only the default may be longer."""

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        if len(options.pattern) > spec.n_layers and options.pattern != self.Options().pattern:
            entries = f"has {len(options.pattern)} entries, and the layers to share among them are {spec.n_layers}"
            raise refused("pattern", f"{entries}; leave out those that no layer would have")
        pattern = [options.pattern[layer % len(options.pattern)] for layer in range(spec.n_layers)]
        distinct = [block for number, block in enumerate(pattern) if block not in pattern[:number]]
        children = [
            build(block, replace(spec, n_layers=pattern.count(block)), f"pattern.{pattern.index(block)}")
            for block in distinct
        ]
        super().__init__(options, spec, children)
        for child in children:
            if child.hooks(0) & {"embed", "positions"}:
                raise refused(
                    "pattern",
                    f"{child.name} acts before the first layer, on ids or embeddings, and "
                    f"cannot be limited to some layers; write {{name: mix, parts: [{child.name}, …]}} around "
                    "the pattern",
                )
        numbers = [distinct.index(block) for block in pattern]
        self.places = [(number, numbers[:layer].count(number)) for layer, number in enumerate(numbers)]
        """For each layer: which part, and the part's own count of it."""

    def acting(self, index: int) -> list[tuple[int, int]]:
        return [self.places[index]]
