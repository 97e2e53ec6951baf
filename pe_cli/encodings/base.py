"""What a position encoding is: a module with a few hooks, each neutral unless overridden."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any

import torch
from pydantic import Field, field_validator
from torch import Tensor, nn

from pe_cli.encodings.views import Block, LayerView, Positions
from pe_cli.schema import Section

HOOKS = (
    "positions",
    "embed",
    "rotate",
    "prepare",
    "scores",
    "bias",
    "by_distance",
    "mask",
    "reach",
    "weights",
    "values",
)


class Family(Enum):
    """Where an encoding stands in the literature."""

    NONE = "none"
    ABSOLUTE = "absolute"
    BIAS = "relative bias"
    RELATIVE = "relative"
    ROTARY = "rotary"
    CONTEXT = "context-dependent"
    STRUCTURAL = "structural"
    SPARSE = "sparse"
    COMPOSITION = "composition"


class Sees(Enum):
    """What of the ids reaches the logits of a model."""

    NOTHING = "no ids"
    DISTANCE = "distances only"
    ABSOLUTE = "absolute ids"


@dataclass(frozen=True)
class ModelSpec:
    """The sizes that an encoding may depend on. `n_layers` counts the layers that it serves."""

    d_model: int
    n_heads: int
    n_layers: int
    train_length: int
    alphabet: str
    max_position: int
    """Number of ids that training can show: it sizes learned tables."""
    trained_ids: int | None = None
    """The longest window whose ids in evaluation training could show; None: the training length."""
    trained_distances: int | None = None
    """The same of distances."""
    first_id: float = 0.0
    """The id of the first character in evaluation."""
    log_n: bool = False
    """Whether the model itself multiplies queries by `log_n_factor`: no one else may then do so again."""

    @property
    def d_head(self) -> int:
        return self.d_model // self.n_heads


LARGEST_COUNT = 2**24
LARGEST_WIDTH = 2**12
LARGEST_NUMBER, SMALLEST_NUMBER = 1e18, 1e-18
Width = Annotated[int, Field(ge=1, le=LARGEST_WIDTH)]
"""The columns of a small network or a low rank: every pair of characters may take as many numbers."""


class EncodingOptions(Section):
    """The options of one encoding, as a block of YAML states them."""

    @field_validator("*")
    @classmethod
    def _within_reason(cls, value: Any) -> Any:
        """No table is that long, and float32 ends soon after: a slip is refused before anything is built of it."""
        if isinstance(value, float) and 0 < abs(value) < SMALLEST_NUMBER:
            raise ValueError(f"must be 0 or at least {SMALLEST_NUMBER:g} in size, not {value:g}")
        limit = LARGEST_COUNT if isinstance(value, int) else LARGEST_NUMBER
        if isinstance(value, int | float) and abs(value) > limit:
            raise ValueError(f"must be at most {limit:.15g} in size, not {value:.15g}")
        return value


class PositionEncoding(nn.Module):
    """One object serves the whole model; parameters that differ by layer carry a leading layer axis.

    The hooks stand in the order in which the data meets them. Nothing is written to `self` in a hook, and
    everything is computed from the ids that come in, in float32 or better.
    """

    name: str
    family: Family
    reference: str
    year: int
    sees: Sees
    fractional: bool = True
    """Whether ids between two whole numbers have a meaning."""
    piece: int | None = None
    """A model is shown windows longer than this in pieces: cut from the end, each read by itself."""
    log_n_length: int | None = None
    """The L of the `log_n_factor` that a model multiplies queries by though `spec.log_n` is not set."""

    class Options(EncodingOptions):
        pass

    def __init__(self, options: Any, spec: ModelSpec) -> None:
        super().__init__()
        self.options = options
        self.spec = spec

    # ---- hooks

    def positions(self, tokens: Tensor, generator: torch.Generator | None = None) -> Positions:
        """The id of each character of `tokens` (B, T); `generator` is None in evaluation."""
        return Positions.sequential(tokens.shape[1], tokens.device)

    def embed(self, x: Tensor, positions: Positions) -> Tensor:
        """The embeddings (B, T, D) with what the encoding adds to them."""
        return x

    def rotate(self, layer: LayerView) -> tuple[Tensor, Tensor]:
        """Queries and keys (B, H, T, K) as attention takes their products; K may grow."""
        return layer.q, layer.k

    def prepare(self, layer: LayerView) -> Any:
        """What is computed once per layer and handed to the blocks as `block.state`."""
        return None

    def scores(self, block: Block) -> Tensor:
        """Logits (B, H, Q, K) before the bias, scaled by 1/√d_head."""
        return block.dot

    def bias(self, block: Block) -> Tensor | None:
        """What is added to the scaled logits: broadcastable to (B, H, Q, K)."""
        return None

    def by_distance(self, layer: LayerView, distance: Tensor) -> Tensor | None:
        """The bias (H, n) at the distances (n,) ≥ 0, where it depends on the distance alone."""
        return None

    def mask(self, block: Block) -> Tensor | None:
        """The keys that are allowed on top of causality: boolean, broadcastable to (B, H, Q, K)."""
        return None

    def reach(self, layer: LayerView, queries: slice) -> slice | Tensor:
        """Indices of all keys that `mask` can allow to these queries; it only saves work."""
        return slice(0, queries.stop)

    def weights(self, scores: Tensor, allowed: Tensor, block: Block) -> Tensor:
        """Attention weights (B, H, Q, K) from logits; `allowed` is causality and mask."""
        return scores.masked_fill(~allowed, -torch.inf).softmax(dim=-1)

    def values(self, weights: Tensor, v: Tensor, block: Block) -> Tensor:
        """Output (B, H, Q, K) from weights (B, H, Q, K') and values (B, H, K', K) of the block's keys."""
        return weights @ v

    # ---- what the rest of the program asks

    def hooks(self, index: int) -> frozenset[str]:
        """Names of the hooks that do something in layer `index`."""
        return overridden(type(self), PositionEncoding)

    def offset_bias(self, layer: LayerView, length: int) -> Tensor | None:
        """The whole bias (H, length) by token offset, where equally spaced ids make it a function of that."""
        step = layer.positions.step
        if step is None or "bias" in self.hooks(layer.index):
            return None
        offsets = torch.arange(length, device=layer.q.device, dtype=torch.float32)
        return self.by_distance(layer, offsets * step)

    def dense_bias(self, block: Block) -> Tensor | None:
        """The whole bias of a block: `by_distance` of its distances plus `bias`."""
        bias = self.bias(block)
        if "by_distance" not in self.hooks(block.layer.index):
            return bias
        by_offset = self.offset_bias(block.layer, block.queries.stop)
        if by_offset is None:
            distance = block.distance.clamp(min=0)  # (B or 1, Q, K); future keys are masked in any case
            flat = self.by_distance(block.layer, distance.flatten())
        else:  # all pairs of one offset have one bias
            distance = block.offset.clamp(min=0)[None]
            flat = by_offset.index_select(-1, distance.flatten())
        if flat is None:
            return bias
        static = flat.unflatten(-1, distance.shape).movedim(0, 1)  # (B or 1, H, Q, K)
        return static if bias is None else static + bias

    def map(self, function: Callable[[PositionEncoding], PositionEncoding]) -> PositionEncoding:
        """This encoding with `function` applied to each simple encoding in it."""
        return function(self)

    def seen(self, positions: Positions) -> list[Positions]:
        """The ids of its parts, without those of parts that look at none."""
        return [] if self.sees is Sees.NOTHING else positions.leaves()

    def trained_length(self, train_length: int) -> int:
        """The longest window that needs nothing new: no id that training could not show, where ids have a meaning by
        themselves, else no such distance. Without a sampler: the training length, or the rows of a table."""
        own = self.spec.trained_ids if self.sees is Sees.ABSOLUTE else self.spec.trained_distances
        return train_length if own is None else own

    def draws(self, length: int) -> Sequence[PositionEncoding]:
        """What evaluation averages the losses of, at windows of this length: the draws of ids of a sampler."""
        return (self,)

    def numbers(self, length: int) -> dict[str, Tensor]:
        """Named facts for `pe inspect` besides ids, table, bias and mask: slopes, frequencies, buckets."""
        return {}

    def numbers_at(self, positions: Positions) -> dict[str, Tensor]:
        """The same of the ids at hand, one entry for each character or for some."""
        return {}


def overridden(cls: type[PositionEncoding], base: type[PositionEncoding]) -> frozenset[str]:
    return frozenset(hook for hook in HOOKS if getattr(cls, hook) is not getattr(base, hook))


def precise(tensor: Tensor) -> Tensor:
    """In float64, where the device has it: angles at large ids lose a digit in float32."""
    return tensor.float() if tensor.device.type == "mps" else tensor.double()


def log_n_factor(index: Tensor, train_length: int) -> Tensor:
    """max(1, ln(i + 1) / ln L) of query indices, in float32: it keeps the softmax from going flat over more keys.

    Exactly 1 up to L: processors differ in the last digit of a logarithm.
    """
    grown = (index + 1).float().log() / math.log(max(2, train_length))
    return torch.where(index < train_length, torch.ones_like(grown), grown)
