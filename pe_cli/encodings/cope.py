"""cope: a learned vector for how much the query counts from each key up to itself."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec, PositionEncoding, Sees
from pe_cli.encodings.registry import register
from pe_cli.encodings.views import Block

CHUNK = 256
"""Keys whose gates are held at a time."""


@register
class CoPE(PositionEncoding):
    r"""Contextual position encoding: a position is a sum of gates, not a number of characters.

    .. math:: s_{ij} = q_i \cdot k_j / \sqrt{d} + q_i \cdot e[p_{ij}], \quad
              p_{ij} = \min\Bigl(\sum_{t=j}^{i} \sigma(q_i \cdot k_t / \sqrt{d}),\ n - 1\Bigr)

    Between two rows e is interpolated. The gates of the key and of the query itself count too, so no p is zero.
    Each layer has its own rows, shared by the heads. All keys up to the query have a gate, also those that a
    mask hides; queries and keys are taken as they are before any rotation by another encoding.
    """

    name = "cope"
    family = Family.CONTEXT
    reference = "Golovneva et al. 2024, arXiv:2405.18719"
    year = 2024
    sees = Sees.NOTHING

    class Options(EncodingOptions):
        positions: int = Field(default=64, ge=2, le=4096)
        """n: the number of rows of e. All larger sums share the last one."""
        term: Literal["plain", "scaled"] = "plain"
        """plain: q·e is added, as in the equation and the paper's listing; scaled: q·e/√d, the released default."""

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        super().__init__(options, spec)
        # zero as in the paper: no key is preferred at the start
        self.rows = nn.Parameter(torch.zeros(spec.n_layers, options.positions, spec.d_head))

    def bias(self, block: Block) -> Tensor:
        rows = self.rows[block.layer.index]
        queries = block.layer.q[:, :, block.queries].to(rows.dtype)
        scaled = queries / math.sqrt(rows.shape[-1])
        by_row = (queries if self.options.term == "plain" else scaled) @ rows.T  # (B, H, Q, n): each product once
        terms = list(self.terms(scaled, by_row, block))
        return torch.cat(terms[::-1], dim=-1)[..., block.keys]

    def terms(self, scaled: Tensor, by_row: Tensor, block: Block) -> Iterator[Tensor]:
        """q·e of all keys up to the last query, (B, H, Q, ≤ CHUNK) at a time, from the nearest keys on."""
        limit = self.options.positions - 1
        counted = scaled.new_zeros(())
        for last in range(block.queries.stop, 0, -CHUNK):
            if bool((counted >= limit).all()):
                yield by_row[..., -1:].expand(*by_row.shape[:-1], last)
                return
            near = slice(max(0, last - CHUNK), last)
            keys = block.layer.k[:, :, near].to(scaled.dtype)
            future = block.index[near] > block.query_index[:, None]
            gates = (scaled @ keys.transpose(-2, -1)).sigmoid().masked_fill(future, 0.0)
            counts = counted + gates @ gates.new_ones(2 * (gates.shape[-1],)).tril()  # sums over the keys from j on
            yield between_rows(by_row, counts.clamp(max=limit))
            counted = counts[..., :1]


def between_rows(by_row: Tensor, place: Tensor) -> Tensor:
    """Values (…, n) at rows 0 … n − 1, interpolated at the places (…, K) from 0 to n − 1."""
    below = place.detach().long().clamp(max=by_row.shape[-1] - 2)
    step = by_row.diff(dim=-1).gather(-1, below)
    return torch.addcmul(by_row.gather(-1, below), step, place - below)
