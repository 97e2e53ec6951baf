"""dape: the bias of another encoding, corrected by a small network that sees it beside the logits."""

from __future__ import annotations

from functools import partial

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from pe_cli.encodings._composition import Wrapper, corrected, require_bias
from pe_cli.encodings._distance import drawn
from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec, Width
from pe_cli.encodings.registry import EncodingBlock, build, register
from pe_cli.encodings.views import Block


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
        require_bias(self.inner)
        layers, heads, hidden = spec.n_layers, spec.n_heads, options.hidden
        self.first = drawn(2 * heads, layers, hidden, 2 * heads)
        self.first_bias = drawn(2 * heads, layers, hidden)
        self.second = drawn(hidden, layers, heads, hidden)

    def bias(self, block: Block) -> Tensor:
        return corrected(self.inner, block, partial(self.correction, block.layer.index))

    def correction(self, index: int, scores: Tensor, static: Tensor, causal: Tensor) -> Tensor:
        """f, from two tensors (B, H, Q, K) to one."""
        both = torch.cat((scores, static), dim=1).transpose(0, 1)  # (2H, B, Q, K)
        hidden = torch.addmm(self.first_bias[index][:, None], self.first[index], both.flatten(1))
        found = self.second[index] @ F.leaky_relu(hidden, inplace=True)
        return found.unflatten(1, both.shape[1:]).transpose(0, 1)
