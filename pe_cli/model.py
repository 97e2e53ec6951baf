"""A small decoder-only Transformer over characters: pre-norm RMSNorm, SwiGLU, no biases, untied head."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from pe_cli import samplers
from pe_cli.attention import attend
from pe_cli.encodings.base import ModelSpec, PositionEncoding, log_n_factor
from pe_cli.encodings.views import LayerView, Positions
from pe_cli.seeds import seeded


class Transformer(nn.Module):
    """Token embeddings have entries of size 1, as a sinusoidal table has, so that neither drowns the other."""

    def __init__(
        self,
        spec: ModelSpec,
        encoding: PositionEncoding,
        *,
        dropout: float = 0.0,
        qk_norm: bool = False,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(spec.alphabet), spec.d_model)
        self.blocks = nn.ModuleList(Layer(spec, index, dropout, qk_norm) for index in range(spec.n_layers))
        self.norm = nn.RMSNorm(spec.d_model)
        self.head = nn.Linear(spec.d_model, len(spec.alphabet), bias=False)
        self.dropout = nn.Dropout(dropout)
        self.encoding = encoding

    def forward(self, tokens: Tensor, generator: torch.Generator | None = None, scored: int | None = None) -> Tensor:
        """Logits (B, T, A) of the next character, or (B, scored, A) of the last ones only."""
        piece = self.encoding.piece
        if piece is not None and tokens.shape[1] > piece:
            return self.in_pieces(tokens, piece, scored or tokens.shape[1])
        return self.through(*self.embedded(tokens, generator), scored)

    def embedded(self, tokens: Tensor, generator: torch.Generator | None = None) -> tuple[Tensor, Positions]:
        """What enters the first layer (B, T, D), and the ids."""
        with torch.autocast(tokens.device.type, enabled=False):
            positions = self.encoding.positions(tokens, generator)
            return self.dropout(self.encoding.embed(self.embedding(tokens), positions)), positions

    def through(self, x: Tensor, positions: Positions, scored: int | None = None) -> Tensor:
        """The logits of `forward` from what is `embedded`, through all layers."""
        length = x.shape[1]
        last = len(self.blocks) - 1
        for index, block in enumerate(self.blocks):
            first = max(0, length - scored) if scored is not None and index == last else 0
            x = block(x, positions, self.encoding, slice(first, length))
        return self.head(self.norm(x))

    def in_pieces(self, tokens: Tensor, piece: int, scored: int) -> Tensor:
        """The last `scored` logits, where the model is shown at most `piece` characters at once."""
        logits, stop = [], tokens.shape[1]
        while scored > 0:
            shown = tokens[:, max(0, stop - piece) : stop]
            logits.append(self(shown, scored=min(scored, shown.shape[1])))
            scored, stop = scored - shown.shape[1], stop - shown.shape[1]
        return torch.cat(logits[::-1], dim=1)

    def using(self, encoding: PositionEncoding) -> Transformer:
        """The same model, sharing all weights, with another encoding."""
        clone = copy.copy(self)
        clone.__dict__["_modules"] = {**self.__dict__["_modules"], "encoding": encoding}
        return clone


class Layer(nn.Module):
    """x + attention(norm(x)), then x + SwiGLU(norm(x)); only `queries` go beyond the keys and values."""

    def __init__(self, spec: ModelSpec, index: int, dropout: float, qk_norm: bool) -> None:
        super().__init__()
        width, hidden = spec.d_model, hidden_size(spec.d_model)
        self.index, self.n_heads = index, spec.n_heads
        self.log_n_length = spec.train_length if spec.log_n else None
        self.norm_attention, self.norm_feed = nn.RMSNorm(width), nn.RMSNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)
        self.norm_query = HeadNorm(spec.d_head) if qk_norm else nn.Identity()
        self.norm_key = HeadNorm(spec.d_head) if qk_norm else nn.Identity()
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, positions: Positions, encoding: PositionEncoding, queries: slice) -> Tensor:
        normed = self.norm_attention(x)
        q, k, v = (self.split(project(normed)) for project in (self.query, self.key, self.value))
        q, k = self.norm_query(q), self.norm_key(k)
        log_n_length = self.log_n_length or encoding.log_n_length
        if log_n_length is not None:
            index = torch.arange(q.shape[2], device=q.device)
            q = q * log_n_factor(index, log_n_length)[:, None].to(q.dtype)
        with torch.autocast(x.device.type, enabled=False):
            layer = LayerView(self.index, normed, q.to(v.dtype), k.to(v.dtype), positions)
            mixed = attend(encoding, layer, v, queries)
        x = x[:, queries] + self.dropout(self.out(mixed.transpose(1, 2).flatten(2)))
        normed = self.norm_feed(x)
        return x + self.dropout(self.down(F.silu(self.gate(normed)) * self.up(normed)))

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)


class HeadNorm(nn.RMSNorm):
    """Computes in the precision of its gains: autocast hands it bfloat16, which the fused kernel does not mix."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.to(self.weight.dtype))


def hidden_size(d_model: int) -> int:
    """8/3 of the width, rounded up to a multiple of 8: as many parameters as a plain MLP of 4 × the width."""
    return 8 * math.ceil(d_model / 3)


def new_model(
    spec: ModelSpec,
    block: object,
    seed: int,
    *,
    positions: object = "sequential",
    dropout: float = 0.0,
    qk_norm: bool = False,
) -> Transformer:
    """A model with fresh weights. At one seed the shared weights do not depend on the encoding."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seeded(seed, "encoding").initial_seed())
        encoding = samplers.build(positions, block, spec)
        torch.manual_seed(seeded(seed, "initialisation").initial_seed())
        return Transformer(spec, encoding, dropout=dropout, qk_norm=qk_norm)


class Unfilled(TorchFunctionMode):
    """Fills no tensor with normal numbers: where there is no memory, that would load a compiler first."""

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return args[0] if func is Tensor.normal_ else func(*args, **(kwargs or {}))


def parameter_counts(spec: ModelSpec, block: object, positions: object = "sequential") -> tuple[int, int]:
    """The parameters of all layers and those of the encoding, counted where no size takes memory."""
    with torch.device("meta"), Unfilled():
        layer = Layer(spec, 0, dropout=0.0, qk_norm=False)
        encoding = samplers.build(positions, block, spec)
    layers, own = (sum(parameter.numel() for parameter in part.parameters()) for part in (layer, encoding))
    return spec.n_layers * layers, own
