"""What strategies share that let a rotation see far characters at other distances than their own."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from pe_cli.encodings._composition import Wrapper
from pe_cli.encodings.base import PositionEncoding, Sees, log_n_factor
from pe_cli.encodings.views import Block, LayerView, Positions
from pe_cli.errors import StrategyRefused
from pe_cli.strategies._ids import refusal, require_ids

FarIds = Callable[[Tensor], tuple[Tensor, Tensor]]
"""From the ids to those of the queries and those of the keys, where the two are far from each other."""


class TwoRanges(Wrapper):
    """A rotation whose distances are its own below `window`, and those of other ids from there on.

    `log_n` L also multiplies the logits of query i (from 0) by max(1, ln(i + 1) / ln L), unless None.
    """

    def __init__(self, inner: PositionEncoding, window: int, far: FarIds, log_n: int | None = None) -> None:
        super().__init__(inner.options, inner.spec, inner)
        self.name, self.family = inner.name, inner.family
        self.window, self.far, self.log_n = window, far, log_n

    def prepare(self, layer: LayerView) -> tuple[Tensor, Tensor]:
        """Queries and keys turned as for far pairs.

        In one call for both: what a rotation does at an id may depend on the other ids that it is given.
        """
        ids, length = layer.positions.ids, layer.q.shape[2]
        apart = Positions(torch.cat(self.far(ids), dim=1))
        x, q, k = (torch.cat((rows, rows), dim=-2) for rows in (layer.x, layer.q, layer.k))
        queries, keys = self.inner.rotate(LayerView(layer.index, x, q, k, apart))
        return queries[:, :, :length], keys[:, :, length:]

    def scores(self, block: Block) -> Tensor:
        queries, keys = block.state
        scale = 1 / math.sqrt(block.layer.q.shape[-1])
        far = (queries[:, :, block.queries] * scale) @ keys[:, :, block.keys].transpose(-2, -1)
        scores = torch.where(block.distance[:, None] < self.window, block.dot, far)
        if self.log_n is None:
            return scores
        return scores * log_n_factor(block.query_index, self.log_n)[:, None]


def equally_far(distance: float) -> FarIds:
    """All far pairs at one distance."""
    return lambda ids: (torch.full_like(ids, distance), torch.zeros_like(ids))


def slower(window: int, stretch: float) -> FarIds:
    """From `window` on, distances that grow by 1 for every `stretch` ids."""
    return lambda ids: ((ids - window) / stretch + window, ids / stretch)


def grouped(group: int, offset: float) -> FarIds:
    """Ids in groups, and queries moved on by `offset`."""
    return lambda ids: ((ids / group).floor() + offset, (ids / group).floor())


def near(strategy: str, stated: int | None, usual: int, train_length: int) -> int:
    """The window w of a strategy; StrategyRefused where a distance of w was not trained."""
    if stated is not None and stated >= train_length:
        raise StrategyRefused(
            f"{strategy} has no meaning with window {stated}: distances up to it are seen, and training showed those "
            f"below {train_length}"
        )
    return stated or max(1, usual)


def require_rotation(strategy: str, encoding: PositionEncoding) -> None:
    """StrategyRefused unless all that an encoding does is a rotation that sees only distances."""
    require_ids(strategy, encoding)
    if any(encoding.hooks(index) != {"rotate"} for index in range(encoding.spec.n_layers)):
        raise refusal(strategy, encoding, "it limits the distances of a pure rotation of queries and keys")
    if encoding.sees is not Sees.DISTANCE:
        raise refusal(strategy, encoding, "its rotation depends on more than the distance")
