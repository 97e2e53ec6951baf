"""What strategies share that make a longer table of the rows of a trained one."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from pe_cli.encodings._composition import Wrapper
from pe_cli.encodings._tables import between, refuse_beyond
from pe_cli.encodings.base import PositionEncoding, Sees
from pe_cli.encodings.views import Positions
from pe_cli.strategies._ids import refusal, require_ids


class Extended(Wrapper):
    """Adds rows of a table (T, D) that `extend` makes of what `inner` adds to a window of training, (L, D).

    Ids of both count from `first`, the id that the first character has in evaluation.
    """

    def __init__(self, inner: PositionEncoding, train_length: int, extend: Callable[[Tensor], Tensor]) -> None:
        super().__init__(inner.options, inner.spec, inner)
        self.name, self.family = inner.name, inner.family
        self.train_length, self.extend, self.first = train_length, extend, inner.spec.first_id

    def embed(self, x: Tensor, positions: Positions) -> Tensor:
        nothing = x.new_zeros(1, self.train_length, x.shape[-1])
        trained = Positions(Positions.sequential(self.train_length, x.device).ids + self.first)
        table = self.extend(self.inner.embed(nothing, trained)[0])
        places = positions.ids - self.first
        refuse_beyond(places, len(table) - 1, f"the extended table has {len(table)} rows")
        return x + between(places, len(table) - 1, lambda whole: F.embedding(whole, table))


def beyond(count: int, more: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The rows as they are, and then as many as are missing of those that `more` makes of them, (count, D)."""
    return lambda rows: torch.cat((rows, more(rows)[: count - len(rows)]))


def require_table(strategy: str, encoding: PositionEncoding) -> None:
    """StrategyRefused unless all that an encoding does is to add a function of the id to the embeddings."""
    require_ids(strategy, encoding)
    acts = frozenset[str]().union(*(encoding.hooks(index) for index in range(encoding.spec.n_layers)))
    if acts != {"embed"} or encoding.sees is not Sees.ABSOLUTE:
        raise refusal(strategy, encoding, "it extends a table of rows that are added to the embeddings")
