"""tupe: logits between characters and logits between ids, with matrices of their own, added up."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pe_cli.encodings._tables import between, refuse_beyond
from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec, PositionEncoding, Sees
from pe_cli.encodings.registry import register
from pe_cli.encodings.views import Block, LayerView


@register
class TUPE(PositionEncoding):
    r"""Untied absolute positions, TUPE-A.

    .. math:: s_{ij} = q_i \cdot k_j / \sqrt{2d} + (P_{p_i} U^Q) \cdot (P_{p_j} U^K) / \sqrt{2d}

    The embeddings stay as they are. One table P, shared by the heads, and one pair of matrices for each head
    serve all layers. TUPE-R adds a T5 bias for all layers: it is the mix of tupe and t5. The paper also gives the
    logits from and to BERT's first symbol numbers of their own; a causal text has no such symbol. An id between
    two whole numbers lies on the line between their rows.

    The paper's equation has no layer norm; its code has one on the rows of P. Rows are drawn with entries of size
    1, as that norm would make them, and the matrices as those of queries and keys: smaller ones start at a saddle.
    """

    name = "tupe"
    family = Family.ABSOLUTE
    reference = "Ke, He and Liu 2021, arXiv:2006.15595"
    year = 2021
    sees = Sees.ABSOLUTE

    def __init__(self, options: EncodingOptions, spec: ModelSpec) -> None:
        super().__init__(options, spec)
        limit = spec.d_model**-0.5
        shape = (spec.n_heads, spec.d_model, spec.d_head)
        self.table = nn.Parameter(torch.empty(spec.max_position, spec.d_model).normal_())
        self.query_weight = nn.Parameter(torch.empty(shape).uniform_(-limit, limit))
        self.key_weight = nn.Parameter(torch.empty(shape).uniform_(-limit, limit))

    def rotate(self, layer: LayerView) -> tuple[Tensor, Tensor]:
        """Queries by 1/√2: with two terms of size 1 the sum keeps the size of one."""
        return layer.q * math.sqrt(0.5), layer.k

    def prepare(self, layer: LayerView) -> tuple[Tensor, Tensor]:
        """P U^Q/√(2d) and P U^K (B or 1, H, T, K)."""
        ids, last = layer.positions.ids, len(self.table) - 1
        refuse_beyond(ids, last, f"the table of tupe has {len(self.table)} rows")
        rows = between(ids, last, lambda whole: F.embedding(whole, self.table))[:, None]
        return rows @ self.query_weight / math.sqrt(2 * self.spec.d_head), rows @ self.key_weight

    def bias(self, block: Block) -> Tensor:
        queries, keys = block.state
        products: Tensor = queries[:, :, block.queries] @ keys[:, :, block.keys].transpose(-2, -1)
        return products

    def trained_length(self, train_length: int) -> int:
        return super().trained_length(len(self.table))
