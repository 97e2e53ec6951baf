"""t5: a learned bias for each bucket of distances."""

from __future__ import annotations

import math

import torch
from pydantic import Field, ValidationInfo, field_validator
from torch import Tensor, nn
from torch.nn import functional as F

from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec, PositionEncoding, Sees
from pe_cli.encodings.registry import register
from pe_cli.encodings.views import LayerView


@register
class T5(PositionEncoding):
    r"""Relative position buckets, exact for near keys and logarithmic for far ones.

    .. math:: s_{ij} = q_i \cdot k_j / \sqrt{d} + W[\beta(p_i - p_j), h], \quad
              \beta(n) = n \text{ if } n < e, \text{ else }
              \min(B - 1,\ e + \lfloor (B - e) \ln(n / e) / \ln(X / e) \rfloor), \quad e = B / 2

    One table (buckets, heads) serves all layers, as in T5. T5 does not divide logits by :math:`\sqrt{d}`;
    here the bias is added after that division, as with every other encoding. The buckets are those of a
    decoder: none is spent on future keys. All distances from X on share the last bucket.
    """

    name = "t5"
    family = Family.BIAS
    reference = "Raffel et al. 2020, arXiv:1910.10683"
    year = 2020
    sees = Sees.DISTANCE
    fractional = False

    class Options(EncodingOptions):
        buckets: int = Field(default=32, ge=2, le=4096)
        """B: the number of rows of the table."""
        max_distance: int = Field(default=128, le=2**24)
        """X: from this distance on one bucket serves all. Above the training length, rows stay untrained."""

        @field_validator("max_distance")
        @classmethod
        def _beyond_the_exact_half(cls, value: int, info: ValidationInfo) -> int:
            exact = info.data.get("buckets", 0) // 2
            if value <= exact:
                raise ValueError(
                    f"must be above {exact}, the number of distances with a bucket of their own, not {value}"
                )
            return value

    edges: Tensor

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        super().__init__(options, spec)
        edges = torch.tensor(bucket_edges(options.buckets, options.max_distance))
        self.register_buffer("edges", edges, persistent=False)
        # the standard deviation that the published T5 draws this table with
        self.table = nn.Parameter(torch.empty(options.buckets, spec.n_heads).normal_(std=spec.d_model**-0.5))

    def by_distance(self, layer: LayerView, distance: Tensor) -> Tensor:
        return F.embedding(self.bucket(distance), self.table).T

    def bucket(self, distance: Tensor) -> Tensor:
        """The bucket of each distance ≥ 0: how many buckets after the first begin at or below it."""
        return torch.bucketize(distance.long(), self.edges, right=True)

    def numbers(self, length: int) -> dict[str, Tensor]:
        return {"buckets": self.bucket(torch.arange(length, device=self.edges.device))}


def bucket_edges(buckets: int, max_distance: int) -> list[int]:
    """The smallest distance of each bucket but the first, in whole numbers: a logarithm that comes out at
    2.9999999 on one machine and 3 on another would put a distance into another bucket."""
    exact = buckets // 2
    wide = buckets - exact
    edges = list(range(1, exact + 1))
    for step in range(1, wide):
        # smallest n with (n / exact) ** wide >= (max_distance / exact) ** step
        wanted = max_distance**step * exact ** (wide - step)
        edge = max(exact, math.floor(exact * (max_distance / exact) ** (step / wide)) - 1)
        while edge**wide < wanted:
            edge += 1
        edges.append(edge)
    return edges
