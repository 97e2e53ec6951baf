"""What a hook is shown: the ids of a text, a layer, and a block of its queries and keys."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor


@dataclass(frozen=True)
class Positions:
    """Ids in float32, (B or 1, T), or (B or 1, T, n) where an id is a vector.

    `step` is the spacing where ids are equally spaced: it is carried along, never guessed from values.
    The parts of a composition each carry their own ids in `parts`.
    """

    ids: Tensor
    step: float | None = None
    parts: tuple[Positions, ...] = ()

    @classmethod
    def sequential(cls, length: int, device: torch.device | None = None) -> Positions:
        return cls(torch.arange(length, device=device, dtype=torch.float32)[None], step=1.0)

    def leaves(self) -> list[Positions]:
        """The ids that simple encodings are given."""
        return [leaf for part in self.parts for leaf in part.leaves()] if self.parts else [self]


@dataclass(frozen=True)
class LayerView:
    """One layer at work: normalised input `x` (B, T, D), un-rotated `q` and `k` (B, H, T, K), and the ids."""

    index: int
    x: Tensor
    q: Tensor
    k: Tensor
    positions: Positions

    def at(self, positions: Positions) -> LayerView:
        """The same layer with other ids."""
        return replace(self, positions=positions)


class once:
    """A tensor of an object, computed at the first use.

    functools.cached_property takes a lock before Python 3.12, which torch.compile cannot trace: it would give up the
    whole of attention.
    """

    def __init__(self, function: Callable[[Any], Tensor]) -> None:
        self.function, self.name = function, function.__name__

    def __get__(self, owner: Any, kind: type) -> Tensor:
        value = self.function(owner)
        object.__setattr__(owner, self.name, value)  # found before this descriptor from now on
        return value


class Scorer(Protocol):
    def scores(self, block: Block) -> Tensor: ...


@dataclass(frozen=True)
class Block:
    """Some queries of a layer and the keys that they can meet.

    `q` (B, H, Q, K) and `k` (B, H, K', K) are rotated and cut; `layer` has everything uncut; `state` is what
    `prepare` returned. `queries` and `keys` are indices in token order.
    """

    layer: LayerView
    state: Any
    q: Tensor
    k: Tensor
    queries: slice
    keys: slice | Tensor
    encoding: Scorer
    whole: Block | None = None

    @once
    def dot(self) -> Tensor:
        """q·k/√d_head, with the width of the un-rotated head."""
        return (self.q / math.sqrt(self.layer.q.shape[-1])) @ self.k.transpose(-2, -1)

    @once
    def scores(self) -> Tensor:
        """The logits before the bias, computed once."""
        return self.whole.scores if self.whole is not None else self.encoding.scores(self)

    @once
    def query_index(self) -> Tensor:
        return self.index[self.queries]

    @once
    def key_index(self) -> Tensor:
        return self.index[self.keys]

    @property
    def index(self) -> Tensor:
        return torch.arange(self.layer.q.shape[2], device=self.layer.q.device)

    @once
    def offset(self) -> Tensor:
        """Query index − key index (Q, K): the distance in token order, whatever the ids."""
        return self.query_index[:, None] - self.key_index[None, :]

    @once
    def causal(self) -> Tensor:
        return self.by_offset(lambda offset: offset >= 0)

    def by_offset(self, rule: Callable[[Tensor], Tensor]) -> Tensor:
        """What a rule (n,) → (..., n) says of the offset of every pair (..., Q, K), asked once of each offset."""
        if isinstance(self.keys, Tensor):
            return rule(self.offset.flatten()).unflatten(-1, self.offset.shape)
        greatest, least = self.queries.stop - 1 - self.keys.start, self.queries.start - self.keys.stop + 1
        said = rule(torch.arange(greatest, least - 1, -1, device=self.layer.q.device))
        return said.unfold(-1, self.keys.stop - self.keys.start, 1).flip(-2)  # a window begins one lower each query

    @once
    def distance(self) -> Tensor:
        """Query id − key id (B or 1, Q, K)."""
        ids = self.layer.positions.ids
        return ids[:, self.queries, None] - ids[:, None, self.keys]

    def part(self, place: int, layer: LayerView) -> Block:
        """The block as a part of a composition sees it: its own ids, layer index and state."""
        state = None if self.state is None else self.state[place]
        whole = self if self.whole is None else self.whole
        return replace(self, layer=layer, state=state, whole=whole)
