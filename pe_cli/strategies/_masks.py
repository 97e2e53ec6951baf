"""What strategies share that hide characters from a model."""

from __future__ import annotations

from torch import Tensor

from pe_cli.encodings._composition import Wrapper
from pe_cli.encodings._sparse import both_allowed, first_and_local, first_and_local_reach, meeting
from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import Block, LayerView


class Lambda(Wrapper):
    """Queries see the `first` characters of the text and the last `window` ones, their own included."""

    def __init__(self, inner: PositionEncoding, first: int, window: int) -> None:
        super().__init__(inner.options, inner.spec, inner)
        self.name, self.family = inner.name, inner.family
        self.first, self.window = first, window

    def mask(self, block: Block) -> Tensor | None:
        own = first_and_local(block.offset, block.key_index, self.first, self.window)
        return both_allowed(own, self.inner.mask(block))

    def reach(self, layer: LayerView, queries: slice) -> slice | Tensor:
        own = first_and_local_reach(queries, self.first, self.window, layer.q.device)
        return meeting(own, self.inner.reach(layer, queries))
