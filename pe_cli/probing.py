"""A model that reads one character over and over, so that all differences come from the position encoding."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from pe_cli.attention import allowed
from pe_cli.config import Experiment
from pe_cli.corpus import encode
from pe_cli.encodings._composition import Wrapper, renumbered
from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import Block, LayerView, Positions
from pe_cli.errors import ConfigError, PositionRangeError
from pe_cli.inspection import SAMPLE_TEXT
from pe_cli.model import Layer, Transformer
from pe_cli.trained import fresh_model

CHARACTERS = 8
MULTIPLES = (32, 16, 8, 4, 2)
LONGEST = 2048
"""A longer training length is refused: pairs of positions grow with its square."""
FARTHEST = 4 * LONGEST
"""No window beyond the training length is longer than this."""


@dataclass(frozen=True)
class Seen:
    """What the last query of a window makes of all keys, in every layer and head: (layers, characters, heads, T).

    `scores` are the logits with the bias, −∞ where a key is hidden. `finite`: whether what the model says is.
    """

    scores: Tensor
    weights: Tensor
    finite: bool


class Watched(Wrapper):
    """The same encoding with given ids; it keeps the layers that the model shows it."""

    def __init__(self, inner: PositionEncoding, ids: Positions) -> None:
        super().__init__(inner.options, inner.spec, inner)
        self.ids = ids
        self.layers: list[LayerView] = []

    def positions(self, tokens: Tensor, generator: torch.Generator | None = None) -> Positions:
        return self.ids

    def prepare(self, layer: LayerView) -> Any:
        self.layers.append(layer)
        return self.inner.prepare(layer)


class Probe:
    """What is measured on, unless a property says otherwise: the whole model reads a window of L characters, the
    training length, that are all the same character, and the last one looks back. Its attention in every layer
    and head counts, for each of the 8 most common characters of a sample text. With equal content, whatever tells
    two characters apart comes from the encoding. Ids that an encoding reads from the text (lines, digits,
    brackets) are those of the sample text, less the characters that a run has not seen. What is added to values
    is not looked at, and neither is any strategy.

    As initialised: a model with fresh weights whose keys are given the weights of the queries, so that without a
    position encoding a character would match itself; independent random weights would hide the encoding. As
    trained: the model with its own weights."""

    def __init__(self, model: Transformer, source: str = SAMPLE_TEXT) -> None:
        self.model = model.eval()
        self.spec = model.encoding.spec
        if self.spec.train_length > LONGEST:
            raise ConfigError(
                f"training.length {self.spec.train_length}: properties are measured where it is at most {LONGEST}"
            )
        known = "".join(character for character in source if character in self.spec.alphabet)
        self.text = known or self.spec.alphabet
        common = "".join(character for character, _ in Counter(self.text).most_common(CHARACTERS))
        self.characters = torch.from_numpy(encode(common, self.spec.alphabet)).long()

    @property
    def length(self) -> int:
        return self.spec.train_length

    def tokens(self, length: int) -> Tensor:
        """The sample text, repeated: (1, T)."""
        long = self.text * math.ceil(length / len(self.text))
        return torch.from_numpy(encode(long[:length], self.spec.alphabet)).long()[None]

    def seen(self, length: int, shift: float = 0.0, characters: int = CHARACTERS) -> Seen:
        """The last row of attention over `length` keys, with `shift` added to all ids."""

        def shifted(positions: Positions) -> Positions:
            return replace(positions, ids=positions.ids + shift)

        chosen = self.characters[:characters]
        with torch.no_grad():
            ids = self.model.encoding.positions(self.tokens(length))
            watched = Watched(self.model.encoding, renumbered(ids, shifted) if shift else ids)
            logits = self.model.using(watched)(chosen[:, None].expand(-1, length), scored=1)
            rows = [last_row(self.model.encoding, layer) for layer in watched.layers]
        scores, weights = (torch.stack(part) for part in zip(*rows, strict=True))
        return Seen(scores, weights, bool(logits.isfinite().all()) and bool(weights.isfinite().all()))

    @cached_property
    def window(self) -> Seen:
        """A window of the training length."""
        return self.seen(self.length)

    @cached_property
    def beyond(self) -> tuple[int, Seen | None, str | None]:
        """The largest multiple of the training length that is defined and finite, what is seen there by one
        character, and what is wrong with the next larger one."""
        limit = None
        for multiple in MULTIPLES:
            if multiple * self.length > FARTHEST:
                continue
            try:
                seen = self.seen(multiple * self.length, characters=1)
            except PositionRangeError as error:
                limit = str(error)
                continue
            if seen.finite:
                return multiple, seen, limit
            limit = "what the model computes is not finite"
        return 1, None, limit


def last_row(encoding: PositionEncoding, layer: LayerView) -> tuple[Tensor, Tensor]:
    """Scores and weights (B, H, T) of the last query, by the written-out definition of attention."""
    q, k = encoding.rotate(layer)
    length = q.shape[2]
    last = slice(length - 1, length)
    block = Block(layer, encoding.prepare(layer), q[:, :, last], k, last, slice(0, length), encoding)
    bias = encoding.dense_bias(block)
    scores = block.scores if bias is None else block.scores + bias
    permitted = allowed(encoding, block)
    weights = encoding.weights(scores, permitted, block)
    return scores.masked_fill(~permitted, -math.inf)[:, :, 0], weights[:, :, 0]


def fresh_probe(experiment: Experiment) -> Probe:
    """The encoding of an experiment before the first step."""
    model = fresh_model(experiment, "".join(sorted(set(SAMPLE_TEXT))))
    with torch.no_grad():
        for layer in model.blocks:
            if isinstance(layer, Layer):
                layer.key.weight.copy_(layer.query.weight)
    return Probe(model)
