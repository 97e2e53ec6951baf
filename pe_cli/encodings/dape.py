"""dape: the bias of another encoding, corrected by a small network that sees it beside the logits."""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from pe_cli.encodings._composition import Wrapper
from pe_cli.encodings._distance import drawn
from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec, Width
from pe_cli.encodings.registry import EncodingBlock, build, register
from pe_cli.encodings.views import Block, LayerView
from pe_cli.errors import refused

PAIRS = 2**15
"""Pairs of a query and a key that are worked on at a time: their hidden columns stay in a processor's cache."""


@register
class DAPE(Wrapper):
    r"""Data-adaptive position encoding: a correction for each query and key, from all heads at once.

    .. math:: s_{ij} = a_{ij} + b_{ij} + f([a_{ij}; b_{ij}]), \quad a_{ij} = q_i \cdot k_j / \sqrt{d}, \quad
              f(z) = W_2 \operatorname{LeakyReLU}(W_1 z + c_1)

    a and b have one number for each head, so f has 2H inputs and H outputs; each layer has its own f. The
    paper's W₂ comes with a constant for each head, left out here: softmax cannot tell it. The paper has no
    preferred b; its best results are with the logarithmic kernel. The default has no parameters of its own.
    """

    name = "dape"
    family = Family.CONTEXT
    reference = "Zheng et al. 2024, arXiv:2405.14722"
    year = 2024

    class Options(EncodingOptions):
        encoding: EncodingBlock = Field(default={"name": "alibi"})
        """Name or block of the encoding whose bias is b."""
        hidden: Width = 32
        """Columns between the two layers of f."""

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        super().__init__(options, spec, build(options.encoding, spec))
        if not all(self.inner.hooks(index) & {"bias", "by_distance"} for index in range(spec.n_layers)):
            raise refused(
                "encoding", f"{self.inner.name} adds no bias to the logits of some layer; alibi or t5 would do"
            )
        layers, heads, hidden = spec.n_layers, spec.n_heads, options.hidden
        self.first = drawn(2 * heads, layers, hidden, 2 * heads)
        self.first_bias = drawn(2 * heads, layers, hidden)
        self.second = drawn(hidden, layers, heads, hidden)

    def bias(self, block: Block) -> Tensor:
        static = self.inner.dense_bias(block)
        assert static is not None
        scores = block.scores.to(static.dtype)
        static = static.expand_as(scores)
        rows = max(1, PAIRS // (scores.shape[0] * scores.shape[3]))
        pieces = zip(scores.split(rows, dim=2), static.split(rows, dim=2), strict=True)
        return torch.cat([b + self.correction(a, b, block.layer.index) for a, b in pieces], dim=2)

    def correction(self, scores: Tensor, static: Tensor, index: int) -> Tensor:
        """f, from two tensors (B, H, Q, K) to one."""
        both = torch.cat((scores, static), dim=1).transpose(0, 1)  # (2H, B, Q, K)
        hidden = torch.addmm(self.first_bias[index][:, None], self.first[index], both.flatten(1))
        found = self.second[index] @ F.leaky_relu(hidden, inplace=True)
        return found.unflatten(1, both.shape[1:]).transpose(0, 1)

    # all of the bias depends on the text, whatever part of it did inside

    def hooks(self, index: int) -> frozenset[str]:
        return super().hooks(index) - {"by_distance"}

    def by_distance(self, layer: LayerView, distance: Tensor) -> None:
        return None

    def offset_bias(self, layer: LayerView, length: int) -> None:
        return None

    def dense_bias(self, block: Block) -> Tensor:
        return self.bias(block)
