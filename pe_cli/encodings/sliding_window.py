"""sliding_window: another encoding, with queries that see only the last characters."""

from __future__ import annotations

from pydantic import Field, PositiveInt
from torch import Tensor

from pe_cli.encodings._composition import Wrapper
from pe_cli.encodings._sparse import both_allowed, local, local_reach, meeting
from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec
from pe_cli.encodings.registry import EncodingBlock, build, register
from pe_cli.encodings.views import Block, LayerView


@register
class SlidingWindow(Wrapper):
    r"""Attention to the w nearest characters, the own one included, with any encoding among them.

    .. math:: s'_{ij} = s_{ij} \text{ if } i - j < w, \text{ else } -\infty

    Offsets are counted in characters, whatever the ids. A stack of n layers passes on what lies up to
    n (w − 1) characters back. A mask is position information too, also with `none` inside.
    """

    name = "sliding_window"
    family = Family.SPARSE
    reference = "Beltagy, Peters and Cohan 2020, arXiv:2004.05150"
    year = 2020

    class Options(EncodingOptions):
        encoding: EncodingBlock = Field(default={"name": "rope"})
        """Name or block of the encoding that acts inside the window."""
        window: PositiveInt | None = None
        """w. None: half the training length; from the training length on, training notices no window."""

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        super().__init__(options, spec, build(options.encoding, spec))
        self.window = options.window or max(1, spec.train_length // 2)

    def mask(self, block: Block) -> Tensor | None:
        return both_allowed(block.by_offset(lambda offset: local(offset, self.window)), self.inner.mask(block))

    def reach(self, layer: LayerView, queries: slice) -> slice | Tensor:
        return meeting(local_reach(queries, self.window), self.inner.reach(layer, queries))
