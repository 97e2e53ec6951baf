"""dape_v2: the bias of another encoding, corrected by small convolutions over neighbouring keys."""

from __future__ import annotations

from functools import partial

import torch
from pydantic import Field, field_validator
from torch import Tensor
from torch.nn import functional as F

from pe_cli.encodings._composition import Wrapper, corrected, require_bias
from pe_cli.encodings._distance import drawn
from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec, Width
from pe_cli.encodings.registry import EncodingBlock, build, register
from pe_cli.encodings.views import Block


@register
class DAPEv2(Wrapper):
    r"""Data-adaptive position encoding, second version: the logits of a query as a picture with a row of keys.

    .. math:: s_{ij} = a_{ij} + b_{ij} + f([a; b])_{ij}, \quad a_{ij} = q_i \cdot k_j / \sqrt{d}, \quad
              f(z) = W_2 * \operatorname{LeakyReLU}(W_1 * z + c_1)

    a and b are zero for future keys, and the convolutions * run over the keys, all heads at once; each layer has
    its own f. The hidden columns of the keys just after a query are not zero, and the second convolution reads
    them, as in the released code. That code has zeros there for the very last character of a text, which would
    tell a query whether more follows; here all queries are treated alike. A constant for each head, which
    softmax cannot tell, is left out. Neighbours are read also where a mask hides them, and a is the logit
    that `encoding` alone would give.
    """

    name = "dape_v2"
    family = Family.CONTEXT
    reference = "Zheng et al. 2024, arXiv:2410.04798"
    year = 2024

    class Options(EncodingOptions):
        encoding: EncodingBlock = Field(default={"name": "alibi"})
        """Name or block of the encoding whose bias is b."""
        hidden: Width = 32
        """Columns between the two convolutions."""
        kernel: int = Field(default=3, ge=1, le=63)
        """How many keys a convolution reads at once; an odd number. With 1 it is the first version."""

        @field_validator("kernel")
        @classmethod
        def _has_a_middle(cls, value: int) -> int:
            if value % 2 == 0:
                raise ValueError(f"must be odd, not {value}; {value - 1} or {value + 1} would do")
            return value

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        super().__init__(options, spec, build(options.encoding, spec))
        require_bias(self.inner)
        layers, heads, hidden, kernel = spec.n_layers, spec.n_heads, options.hidden, options.kernel
        self.first = drawn(2 * heads * kernel, layers, hidden, 2 * heads, kernel)
        self.first_bias = drawn(2 * heads * kernel, layers, hidden)
        self.second = drawn(hidden * kernel, layers, heads, hidden, kernel)

    def bias(self, block: Block) -> Tensor:
        whole = corrected(self.inner, self.uncut(block), partial(self.correction, block.layer.index))
        return whole[..., block.keys]

    def uncut(self, block: Block) -> Block:
        """The block with all keys up to its last query, as the encoding inside sees it."""
        q, k = self.inner.rotate(block.layer)
        keys = slice(0, block.queries.stop)
        return Block(block.layer, block.state, q[:, :, block.queries], k[:, :, keys], block.queries, keys, self.inner)

    def correction(self, index: int, scores: Tensor, static: Tensor, causal: Tensor) -> Tensor:
        """f, from two tensors (B, H, Q, K) to one. Convolutions as products: of shifted inputs, and then shifted."""
        taps, keys = range(self.options.kernel), scores.shape[-1]
        side = len(taps) // 2
        wide = keys + side  # hidden columns up to `side` after the last key are read
        first = self.first[index].transpose(1, 2).flatten(1)  # (hidden, taps · 2H)
        second = self.second[index].movedim(-1, 0).flatten(0, 1)  # (taps · H, hidden)
        both = torch.cat((scores, static), dim=1).masked_fill(~causal, 0.0).transpose(0, 1)  # (2H, B, Q, K)
        both = F.pad(both, (side, 2 * side))
        shifted = torch.cat([both[..., tap : tap + wide] for tap in taps])
        hidden = F.leaky_relu(torch.addmm(self.first_bias[index][:, None], first, shifted.flatten(1)), inplace=True)
        by_tap = F.pad((second @ hidden).unflatten(1, shifted.shape[1:]), (side, 0)).chunk(len(taps))
        found = torch.stack([part[..., tap : tap + keys] for tap, part in zip(taps, by_tap, strict=True)])
        return found.sum(dim=0).transpose(0, 1)
