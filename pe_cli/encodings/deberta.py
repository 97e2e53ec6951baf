"""deberta: characters and distances have vectors of their own, and each meets the other in the logits."""

from __future__ import annotations

import math
from typing import Literal

import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from pe_cli.encodings._relative import falling_distances, far_keys, skewed, skewed_keys
from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec, PositionEncoding, Sees
from pe_cli.encodings.registry import register
from pe_cli.encodings.views import Block, LayerView
from pe_cli.errors import refused


@register
class DeBERTa(PositionEncoding):
    r"""Disentangled attention: content to content, content to position, position to content.

    .. math:: s_{ij} = \bigl(q_i \cdot k_j + q_i \cdot (P W_K)_{\delta(i,j)} + k_j \cdot (P W_Q)_{\delta(j,i)}\bigr)
              / \sqrt{3d}, \quad \delta(i,j) = \min(\max(\beta(p_i - p_j) + k,\ 0),\ 2k - 1)

    The table P, 2k rows of width D, serves all layers; each layer projects it with its own :math:`W_K, W_Q`. The
    released code takes row δ(i,j) in the last term too, which is `p2c: same_row`; then a causal model meets half of
    the rows only, and k are left. That code also has a layer norm on P from version 2 on, not in the paper, and
    absolute ids in the last layers, for masked characters only. Queries and keys are as before any rotation.
    """

    name = "deberta"
    family = Family.RELATIVE
    reference = "He et al. 2021, arXiv:2006.03654"
    year = 2021
    sees = Sees.DISTANCE
    fractional = False

    class Options(EncodingOptions):
        clip: PositiveInt | None = Field(default=None, le=4096)
        """k: all further distances share a row. None: half of the training length, so that training shows that
        row. The paper has its training length, 512, which no distance reaches."""
        buckets: Literal["exact", "log"] = "exact"
        """β. exact: the distance itself; log, as in versions 2 and 3: itself up to k/2, wider buckets from there."""
        max_distance: PositiveInt | None = Field(default=None, le=2**24)
        """X of log buckets: the last one begins at X − 1 or before. None: 2k, as in version 3."""
        p2c: Literal["mirrored", "same_row", "off"] = "mirrored"
        """The term of position to content. mirrored: with row δ(j,i), as in the paper; same_row: with row δ(i,j), as
        in the released code; off: without it, and with √(2d) in the place of √(3d)."""

    edges: Tensor

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        super().__init__(options, spec)
        clip = options.clip or max(1, spec.train_length // 2)
        if options.buckets == "log":
            edges = log_edges(clip, options.max_distance or 2 * clip)
        elif options.max_distance is not None:
            raise refused(
                "max_distance",
                f"{options.max_distance} means nothing to exact buckets; leave it out, or write buckets: log",
            )
        else:
            edges = list(range(1, clip + 1))
        self.register_buffer("edges", torch.tensor(edges), persistent=False)
        self.zero = clip if options.p2c == "mirrored" else 0
        """The row of the distance 0."""
        self.terms = 2 if options.p2c == "off" else 3
        limit = spec.d_model**-0.5  # as the model draws the matrices of queries and keys
        shape = (spec.n_layers, spec.n_heads, spec.d_model, spec.d_head)
        self.table = nn.Parameter(torch.empty(self.zero + clip, spec.d_model).normal_(std=0.02))
        self.key_weight = nn.Parameter(torch.empty(shape).uniform_(-limit, limit))
        self.query_weight = nn.Parameter(torch.empty(shape).uniform_(-limit, limit)) if self.terms == 3 else None

    def rotate(self, layer: LayerView) -> tuple[Tensor, Tensor]:
        """Queries by 1/√(number of terms)."""
        return layer.q * self.terms**-0.5, layer.k

    def prepare(self, layer: LayerView) -> tuple[Tensor, Tensor | None]:
        """The vectors (H, buckets, K) that queries and keys meet, by bucket, divided by √(3d)."""
        scale = 1 / math.sqrt(self.terms * self.spec.d_head)
        for_queries = scale * self.table[self.zero :] @ self.key_weight[layer.index]
        if self.query_weight is None:
            return for_queries, None
        rows = self.table[: self.zero + 1].flip(0) if self.options.p2c == "mirrored" else self.table
        return for_queries, scale * rows @ self.query_weight[layer.index]

    def bias(self, block: Block) -> Tensor:
        for_queries, for_keys = block.state
        q = block.layer.q[:, :, block.queries].to(for_queries.dtype)
        k = block.layer.k[:, :, block.keys].to(for_queries.dtype)
        falling = falling_distances(block.layer)
        if falling is None or q.shape[2] < block.layer.q.shape[2]:
            return self.by_bucket(q, k, block)
        # where all queries meet all keys, a product for each distance costs less than to pick products by bucket
        bucket = self.bucket(falling)
        bias = skewed(q @ rows_of(for_queries, bucket).transpose(-2, -1))
        if for_keys is not None:
            bias = bias + skewed_keys(k @ rows_of(for_keys, bucket.flip(0)).transpose(-2, -1))
        return bias

    def by_bucket(self, q: Tensor, k: Tensor, block: Block) -> Tensor:
        """For any ids: products by bucket, picked for near keys; far ones share the last bucket."""
        for_queries, for_keys = block.state
        count = far_keys(block.distance, float(self.edges[-1]))
        bucket = self.bucket(block.distance[:, None, :, count:]).expand(*q.shape[:3], -1)
        by_bucket = q @ for_queries.transpose(-2, -1)
        near = by_bucket.gather(-1, bucket.clamp(max=by_bucket.shape[-1] - 1))
        far = by_bucket[..., -1:].expand(-1, -1, -1, count)
        if for_keys is not None:
            by_bucket = for_keys @ k[:, :, count:].transpose(-2, -1)
            near = near + by_bucket.gather(-2, bucket.clamp(max=by_bucket.shape[-2] - 1))
            far = far + for_keys[:, -1:] @ k[:, :, :count].transpose(-2, -1)
        return torch.cat((far, near), dim=-1)

    def bucket(self, distance: Tensor) -> Tensor:
        """How many buckets after the first begin at or below each distance."""
        return torch.bucketize(distance.contiguous(), self.edges, right=True)

    def numbers(self, length: int) -> dict[str, Tensor]:
        """The row of P for queries, and for keys, at each distance."""
        bucket = self.bucket(torch.arange(length, device=self.edges.device))
        for_queries = self.zero + bucket.clamp(max=len(self.table) - self.zero - 1)
        rows = {"query_rows": for_queries}
        match self.options.p2c:
            case "mirrored":
                rows["key_rows"] = self.zero - bucket
            case "same_row":
                rows["key_rows"] = for_queries
        return rows


def rows_of(vectors: Tensor, bucket: Tensor) -> Tensor:
    """The vectors (H, n, K) of the buckets (n,); beyond the last bucket its own."""
    return vectors.index_select(1, bucket.clamp(max=vectors.shape[1] - 1))


def log_edges(buckets: int, max_distance: int) -> list[int]:
    """The smallest distance of each log bucket but the first, in whole numbers, as for any other machine.

    With m = ⌊buckets / 2⌋, a distance n > m is in bucket m + ⌈(m − 1) ln(n / m) / ln((X − 1) / m)⌉, and all from
    X − 1 on are in bucket 2m − 1.
    """
    middle, last = buckets // 2, max_distance - 1
    if middle < 1 or last <= middle:
        raise refused(
            "",
            f"{buckets} log buckets up to max_distance {max_distance} do not work out; clip must be "
            f"at least 2, and max_distance above {middle + 1}",
        )
    edges = list(range(1, middle + 1))
    for step in range(middle - 1):
        # smallest n with (n / middle) ** (middle − 1) > (last / middle) ** step
        bound = last**step * middle ** (middle - 1 - step)
        edge = max(middle + 1, math.floor(middle * (last / middle) ** (step / (middle - 1))) - 1)
        while edge ** (middle - 1) <= bound:
            edge += 1
        edges.append(edge)
    return edges
