"""dilated: another encoding, with queries that see every δ-th of the last characters."""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from pe_cli.encodings._composition import Wrapper
from pe_cli.encodings._sparse import both_allowed, dilated_reach, local, meeting, periodic
from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec
from pe_cli.encodings.registry import EncodingBlock, build, register
from pe_cli.encodings.views import Block, LayerView
from pe_cli.errors import refused

Count = Annotated[int, Field(ge=1, le=2**24)]


@register
class Dilated(Wrapper):
    r"""A sliding window with gaps, with any encoding among its w keys.

    .. math:: A_i = \{i - m \delta_h : m = 0, 1, \dots, w - 1\}

    A stack of n layers passes on what lies up to n (w − 1) δ characters back, at the cost of w keys a query. Where
    all heads share one δ > 1, a query never meets characters between its own steps, in any layer: so half of the
    heads have no gaps by default. The paper gives gaps to two heads, and none to those of lower layers (by
    `layered`). Its w counts both sides of a character, and it has a few characters besides that all others see.
    """

    name = "dilated"
    family = Family.SPARSE
    reference = "Beltagy, Peters and Cohan 2020, arXiv:2004.05150"
    year = 2020

    class Options(EncodingOptions):
        encoding: EncodingBlock = Field(default={"name": "rope"})
        """Name or block of the encoding that acts among the allowed keys."""
        window: Count | None = None
        """w: the number of keys. None: as many as span half the training length at the largest dilation."""
        dilations: list[Count] | None = Field(default=None, min_length=1)
        """δ of each head; heads take turns where there are more of them. None: [1, 2], or [2] for one head."""

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        super().__init__(options, spec, build(options.encoding, spec))
        dilations = options.dilations or [1, 2][-spec.n_heads :]
        if len(dilations) > spec.n_heads:
            raise refused(
                "dilations",
                f"{dilations} is more than one for each head, and model.n_heads is "
                f"{spec.n_heads}; write {dilations[: spec.n_heads]}",
            )
        self.dilations = [dilations[head % len(dilations)] for head in range(spec.n_heads)]
        self.window = options.window or max(1, spec.train_length // (2 * max(dilations)))

    def mask(self, block: Block) -> Tensor | None:
        return both_allowed(block.by_offset(self.allowed), self.inner.mask(block))

    def allowed(self, offset: Tensor) -> Tensor:
        """Whether a key (n,) characters back may be seen: (n,), or (H, n) where heads differ."""
        sets = {n: local(offset, self.window * n) & periodic(offset, n) for n in set(self.dilations)}
        return sets[self.dilations[0]] if len(sets) == 1 else torch.stack([sets[n] for n in self.dilations])

    def reach(self, layer: LayerView, queries: slice) -> slice | Tensor:
        own = dilated_reach(queries, self.window, set(self.dilations), layer.q.device)
        return meeting(own, self.inner.reach(layer, queries))
