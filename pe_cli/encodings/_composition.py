"""Encodings made of encodings: a wrapper changes one hook of another, a composition joins several."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from pe_cli.encodings._sparse import both_allowed, count
from pe_cli.encodings.base import ModelSpec, PositionEncoding, Sees, overridden
from pe_cli.encodings.views import Block, LayerView, Positions
from pe_cli.errors import StrategyRefused, refused

ORDER = (Sees.NOTHING, Sees.DISTANCE, Sees.ABSOLUTE)
EXCLUSIVE = ("rotate", "scores", "weights", "values")
"""What only one part of a composition can change in a layer: a sum has no meaning for these."""
PAIRS = 2**15
"""Pairs of a query and a key whose bias is corrected at a time: their hidden columns stay in a processor's cache."""


class Wrapper(PositionEncoding):
    """An encoding that hands every hook to `inner`, but for those that a subclass overrides.

    A subclass with a `bias` has all of the bias in it: none is by distance, whatever part of it did inside.
    """

    def __init__(self, options: Any, spec: ModelSpec, inner: PositionEncoding) -> None:
        super().__init__(options, spec)
        self.inner = inner
        self.sees = inner.sees
        self.fractional = inner.fractional
        self.piece, self.log_n_length = inner.piece, inner.log_n_length

    def positions(self, tokens: Tensor, generator: torch.Generator | None = None) -> Positions:
        return self.inner.positions(tokens, generator)

    def embed(self, x: Tensor, positions: Positions) -> Tensor:
        return self.inner.embed(x, positions)

    def rotate(self, layer: LayerView) -> tuple[Tensor, Tensor]:
        return self.inner.rotate(layer)

    def prepare(self, layer: LayerView) -> Any:
        return self.inner.prepare(layer)

    def scores(self, block: Block) -> Tensor:
        return self.inner.scores(block)

    def bias(self, block: Block) -> Tensor | None:
        return self.inner.bias(block)

    def by_distance(self, layer: LayerView, distance: Tensor) -> Tensor | None:
        return None if self.has_own_bias() else self.inner.by_distance(layer, distance)

    def mask(self, block: Block) -> Tensor | None:
        return self.inner.mask(block)

    def reach(self, layer: LayerView, queries: slice) -> slice | Tensor:
        return self.inner.reach(layer, queries)

    def weights(self, scores: Tensor, allowed: Tensor, block: Block) -> Tensor:
        return self.inner.weights(scores, allowed, block)

    def values(self, weights: Tensor, v: Tensor, block: Block) -> Tensor:
        return self.inner.values(weights, v, block)

    def has_own_bias(self) -> bool:
        return type(self).bias is not Wrapper.bias

    def hooks(self, index: int) -> frozenset[str]:
        found = overridden(type(self), Wrapper) | self.inner.hooks(index)
        return found - {"by_distance"} if self.has_own_bias() else found

    def offset_bias(self, layer: LayerView, length: int) -> Tensor | None:
        return None if self.has_own_bias() else self.inner.offset_bias(layer, length)

    def dense_bias(self, block: Block) -> Tensor | None:
        return self.bias(block) if self.has_own_bias() else self.inner.dense_bias(block)

    def map(self, function: Callable[[PositionEncoding], PositionEncoding]) -> PositionEncoding:
        inner = self.inner.map(function)
        return self if inner is self.inner else replace_modules(self, inner=inner)

    def seen(self, positions: Positions) -> list[Positions]:
        return self.inner.seen(positions)

    def trained_length(self, train_length: int) -> int:
        return self.inner.trained_length(train_length)

    def draws(self, length: int) -> Sequence[PositionEncoding]:
        drawn = self.inner.draws(length)
        return [self if one is self.inner else replace_modules(self, inner=one) for one in drawn]

    def numbers(self, length: int) -> dict[str, Tensor]:
        return self.inner.numbers(length)

    def numbers_at(self, positions: Positions) -> dict[str, Tensor]:
        return self.inner.numbers_at(positions)


def require_bias(inner: PositionEncoding) -> None:
    """SectionError where the option `encoding` has no bias in some layer."""
    if not all(inner.hooks(index) & {"bias", "by_distance"} for index in range(inner.spec.n_layers)):
        raise refused("encoding", f"{inner.name} adds no bias to the logits of some layer; alibi or t5 would do")


def corrected(inner: PositionEncoding, block: Block, correction: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Tensor:
    """The bias b of `inner` plus correction(a, b, causal), from the logits a (B, H, Q, K); some queries at a time."""
    static = inner.dense_bias(block)
    assert static is not None
    scores = block.scores.to(static.dtype)
    rows = max(1, PAIRS // (scores.shape[0] * scores.shape[3]))
    parts = (part.split(rows, dim=-2) for part in (scores, static.expand_as(scores), block.causal))
    return torch.cat([b + correction(a, b, causal) for a, b, causal in zip(*parts, strict=True)], dim=2)


class Renumbered(Wrapper):
    """The same encoding with its ids changed by a function, e.g. p → min(p, L − 1)."""

    def __init__(self, inner: PositionEncoding, change: Callable[[Positions], Positions]) -> None:
        super().__init__(inner.options, inner.spec, inner)
        self.name, self.family = inner.name, inner.family
        self.change = change

    def positions(self, tokens: Tensor, generator: torch.Generator | None = None) -> Positions:
        return renumbered(self.inner.positions(tokens, generator), self.change)


class Composition(PositionEncoding):
    """Several encodings, each with its own ids and its own state.

    The sum of what they add, the intersection of what they allow. All parts act in every layer, unless a
    subclass says otherwise in `acting`.
    """

    def __init__(self, options: Any, spec: ModelSpec, parts: Sequence[PositionEncoding]) -> None:
        super().__init__(options, spec)
        self.parts = nn.ModuleList(parts)
        self.sees = max((part.sees for part in parts), key=ORDER.index)
        self.fractional = all(part.fractional for part in parts)

    def members(self) -> list[PositionEncoding]:
        return [part for part in self.parts if isinstance(part, PositionEncoding)]

    def acting(self, index: int) -> list[tuple[int, int]]:
        """The numbers of the parts that act in layer `index`, each with the part's own count of it."""
        return [(number, index) for number in range(len(self.parts))]

    def views(self, layer: LayerView) -> Iterator[tuple[PositionEncoding, LayerView]]:
        """The parts that act in a layer, and the layer as each sees it."""
        members = self.members()
        for number, own_index in self.acting(layer.index):
            own = replace(layer, index=own_index, positions=layer.positions.parts[number])
            yield members[number], own

    def blocks(self, block: Block) -> Iterator[tuple[PositionEncoding, Block]]:
        for place, (part, layer) in enumerate(self.views(block.layer)):
            yield part, block.part(place, layer)

    def owner(self, hook: str, block: Block) -> tuple[PositionEncoding, Block] | None:
        """The part that changes an exclusive hook in the layer of a block."""
        for part, own in self.blocks(block):
            if hook in part.hooks(own.layer.index):
                return part, own
        return None

    def refuse_conflicts(self, key: str) -> None:
        """SectionError where two parts change what a layer has one of; `key` is where they are stated."""
        members = self.members()
        for index in range(self.spec.n_layers):
            for hook in EXCLUSIVE:
                both = [members[n].name for n, own in self.acting(index) if hook in members[n].hooks(own)]
                if len(both) > 1:
                    text = f"{' and '.join(both)} both change '{hook}', of which there is one; keep one of them"
                    raise refused(key, text)

    def positions(self, tokens: Tensor, generator: torch.Generator | None = None) -> Positions:
        parts = tuple(part.positions(tokens, generator) for part in self.members())
        return Positions(parts[0].ids, parts=parts)

    def embed(self, x: Tensor, positions: Positions) -> Tensor:
        for part, own in zip(self.members(), positions.parts, strict=True):
            x = part.embed(x, own)
        return x

    def rotate(self, layer: LayerView) -> tuple[Tensor, Tensor]:
        for part, own in self.views(layer):
            if "rotate" in part.hooks(own.index):
                return part.rotate(own)
        return layer.q, layer.k

    def prepare(self, layer: LayerView) -> Any:
        return tuple(part.prepare(own) for part, own in self.views(layer))

    def scores(self, block: Block) -> Tensor:
        found = self.owner("scores", block)
        if found is None:
            return block.dot
        part, own = found
        return part.scores(own)

    def offset_bias(self, layer: LayerView, length: int) -> Tensor | None:
        biased = [(p, own) for p, own in self.views(layer) if p.hooks(own.index) & {"bias", "by_distance"}]
        found = [part.offset_bias(own, length) for part, own in biased]
        known = [bias for bias in found if bias is not None]
        return sum_of(known) if len(known) == len(biased) else None

    def dense_bias(self, block: Block) -> Tensor | None:
        found = [part.dense_bias(own) for part, own in self.blocks(block)]
        return sum_of([bias for bias in found if bias is not None])

    def mask(self, block: Block) -> Tensor | None:
        allowed: Tensor | None = None
        for part, own in self.blocks(block):
            allowed = both_allowed(allowed, part.mask(own))
        return allowed

    def reach(self, layer: LayerView, queries: slice) -> slice | Tensor:
        """The smallest reach of a part: its mask is one of the factors."""
        reaches = [part.reach(own, queries) for part, own in self.views(layer)]
        return min(reaches, key=count)

    def weights(self, scores: Tensor, allowed: Tensor, block: Block) -> Tensor:
        found = self.owner("weights", block)
        if found is None:
            return super().weights(scores, allowed, block)
        part, own = found
        return part.weights(scores, allowed, own)

    def values(self, weights: Tensor, v: Tensor, block: Block) -> Tensor:
        found = self.owner("values", block)
        if found is None:
            return super().values(weights, v, block)
        part, own = found
        return part.values(weights, v, own)

    def hooks(self, index: int) -> frozenset[str]:
        members = self.members()
        return frozenset(name for n, own in self.acting(index) for name in members[n].hooks(own))

    def map(self, function: Callable[[PositionEncoding], PositionEncoding]) -> PositionEncoding:
        """A part for which `function` has no meaning stays as it is, unless it has none for any."""
        members = self.members()
        changed: list[PositionEncoding] = []
        refusals: list[StrategyRefused] = []
        for part in members:
            try:
                changed.append(part.map(function))
            except StrategyRefused as refusal:
                refusals.append(refusal)
                changed.append(part)
        if len(refusals) == len(changed):
            raise StrategyRefused("; ".join(dict.fromkeys(str(refusal) for refusal in refusals)))
        if all(new is old for new, old in zip(changed, members, strict=True)):
            return self
        return replace_modules(self, parts=nn.ModuleList(changed))

    def seen(self, positions: Positions) -> list[Positions]:
        return [leaf for part, own in zip(self.members(), positions.parts, strict=True) for leaf in part.seen(own)]

    def trained_length(self, train_length: int) -> int:
        return min(part.trained_length(train_length) for part in self.members())

    def numbers(self, length: int) -> dict[str, Tensor]:
        return self.by_part([part.numbers(length) for part in self.members()])

    def numbers_at(self, positions: Positions) -> dict[str, Tensor]:
        return self.by_part([p.numbers_at(own) for p, own in zip(self.members(), positions.parts, strict=True)])

    def by_part(self, facts: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
        """Those of each part, under its name; parts of one name are counted from 1."""
        names = [part.name for part in self.members()]
        found: dict[str, Tensor] = {}
        for place, (name, own) in enumerate(zip(names, facts, strict=True)):
            number = f"#{names[: place + 1].count(name)}" if names.count(name) > 1 else ""
            found |= {f"{name}{number}.{key}": value for key, value in own.items()}
        return found


def renumbered(positions: Positions, change: Callable[[Positions], Positions]) -> Positions:
    """The ids with `change` applied to those of each simple encoding."""
    if not positions.parts:
        return change(positions)
    parts = tuple(renumbered(part, change) for part in positions.parts)
    return Positions(parts[0].ids, parts=parts)


def replace_modules(module: PositionEncoding, **modules: nn.Module) -> PositionEncoding:
    """A shallow copy that shares all parameters, with some submodules replaced."""
    clone = copy.copy(module)
    clone.__dict__["_modules"] = {**module.__dict__["_modules"], **modules}
    return clone


def sum_of(terms: list[Tensor]) -> Tensor | None:
    return torch.stack(torch.broadcast_tensors(*terms)).sum(0) if terms else None
