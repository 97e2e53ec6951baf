"""stick_breaking: each key, from the nearest on, takes a share of the attention that is left."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from pe_cli.encodings.base import EncodingOptions, Family, PositionEncoding, Sees
from pe_cli.encodings.registry import register
from pe_cli.encodings.views import Block


@register
class StickBreaking(PositionEncoding):
    r"""Stick-breaking attention in the place of softmax.

    .. math:: \alpha_{ij} = \beta_{ij} \prod_{j<t<i} (1 - \beta_{it}), \quad
              \beta_{ij} = \sigma(q_i \cdot k_j / \sqrt{d}), \quad j < i

    A character does not attend to itself, so the first one attends to nothing and its output is zero. The
    released code also has a variant in which it does, as the nearest key: then j ≤ i, and t runs up to i. The
    weights of a query sum to at most 1; what is left over is the remainder.
    """

    name = "stick_breaking"
    family = Family.CONTEXT
    reference = "Tan et al. 2025, arXiv:2410.17980"
    year = 2025
    sees = Sees.NOTHING

    class Options(EncodingOptions):
        nearest: Literal["previous", "own"] = "previous"
        """The key that takes its share first: the character before the query, or the query's own."""
        remainder: bool = False
        """Whether what is left over goes to the character's own value. The paper's equation leaves it out."""

    def weights(self, scores: Tensor, allowed: Tensor, block: Block) -> Tensor:
        past = allowed & block.by_offset(lambda offset: offset > 0) if self.options.nearest == "previous" else allowed
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        left = F.logsigmoid(-scores).masked_fill(~past, 0.0)  # ln(1 − β), and nothing taken by hidden keys
        later = left[..., 1:].flip(-1).cumsum(dim=-1).flip(-1)  # over t > j, near keys first
        taken = F.logsigmoid(scores) + F.pad(later, (0, 1))
        return taken.exp().masked_fill(~past, 0.0)

    def values(self, weights: Tensor, v: Tensor, block: Block) -> Tensor:
        mixed = weights @ v
        if not self.options.remainder:
            return mixed
        remainder = 1 - weights.sum(dim=-1, keepdim=True, dtype=torch.promote_types(v.dtype, torch.float32))
        own = v[:, :, torch.searchsorted(block.key_index, block.query_index)]
        return mixed + (remainder * own).to(mixed.dtype)

    def hooks(self, index: int) -> frozenset[str]:
        return super().hooks(index) - (frozenset() if self.options.remainder else {"values"})
