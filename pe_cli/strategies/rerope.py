"""rerope: rotary encodings whose distances grow no further from a window on."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pe_cli.encodings._composition import Wrapper
from pe_cli.encodings.base import PositionEncoding, Sees, log_n_factor
from pe_cli.encodings.views import Block, LayerView, Positions
from pe_cli.strategies._ids import refusal, require_ids
from pe_cli.strategies.registry import register


class ReRoPE(Wrapper):
    """A rotary encoding whose logits take distance n as min(n, window).

    `log_n_length` L also multiplies the logits of query i (from 0) by max(1, ln(i + 1) / ln L), unless None.
    """

    def __init__(self, inner: PositionEncoding, window: int, log_n_length: int | None) -> None:
        super().__init__(inner.options, inner.spec, inner)
        self.name, self.family = inner.name, inner.family
        self.window, self.log_n_length = window, log_n_length

    def prepare(self, layer: LayerView) -> tuple[Tensor, Tensor]:
        """Queries turned as at id `window` and keys as at id 0: every pair of them is that far apart.

        In one call for both: what a rotation does at an id may depend on the other ids that it is given.
        """
        ids, length = layer.positions.ids, layer.q.shape[2]
        apart = Positions(torch.cat((torch.full_like(ids, self.window), torch.zeros_like(ids)), dim=1))
        x, q, k = (torch.cat((rows, rows), dim=-2) for rows in (layer.x, layer.q, layer.k))
        queries, keys = self.inner.rotate(LayerView(layer.index, x, q, k, apart))
        return queries[:, :, :length], keys[:, :, length:]

    def scores(self, block: Block) -> Tensor:
        queries, keys = block.state
        scale = 1 / math.sqrt(block.layer.q.shape[-1])
        far = (queries[:, :, block.queries] * scale) @ keys[:, :, block.keys].transpose(-2, -1)
        scores = torch.where(block.distance[:, None] < self.window, block.dot, far)
        if self.log_n_length is None:
            return scores
        return scores * log_n_factor(block.query_index, self.log_n_length)[:, None]


@register(reference="Su 2023, github.com/bojone/rerope", needs="a rotary encoding that sees only distances")
def rerope(encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
    r"""Distances of a rotation grow no further from half of the trained length on.

    .. math:: s_{ij} = \max(1, \ln(i + 1) / \ln L)\; q_i \cdot R_{-\min(p_i - p_j, w)} k_j / \sqrt{d},
              \quad w = \lfloor L / 2 \rfloor

    The logarithmic factor belongs to the released code; a model with `log_n` has it already and gets it no second
    time. `ReRoPE` has both the factor and w as parameters.
    """
    require_ids("rerope", encoding)
    if any(encoding.hooks(index) != {"rotate"} for index in range(encoding.spec.n_layers)):
        raise refusal("rerope", encoding, "it limits the distances of a pure rotation of queries and keys")
    if encoding.sees is not Sees.DISTANCE:
        raise refusal("rerope", encoding, "its rotation depends on more than the distance")
    log_n_length = None if encoding.spec.log_n else train_length
    return ReRoPE(encoding, window=max(1, train_length // 2), log_n_length=log_n_length)
