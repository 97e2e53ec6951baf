"""fixed: another encoding, with queries that see their own block and the last characters of earlier blocks."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field, PositiveInt
from torch import Tensor

from pe_cli.encodings._composition import Wrapper
from pe_cli.encodings._sparse import both_allowed, combined, halved, meeting, root_stride
from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec
from pe_cli.encodings.registry import EncodingBlock, build, register
from pe_cli.encodings.views import Block, LayerView
from pe_cli.errors import refused


@register
class Fixed(Wrapper):
    r"""The fixed pattern of the Sparse Transformer, with any encoding on top.

    .. math:: A^{(1)}_i = \{j \le i : \lfloor j / l \rfloor = \lfloor i / l \rfloor\}, \quad
              A^{(2)}_i = \{j \le i : j \bmod l \ge l - c\} \cup \{i\}

    Blocks are counted from the start of the window, in characters, whatever the ids: their last c characters
    hand on what they hold. The paper's second set lacks i itself, and would leave the first queries without
    any key. Union, halves of the heads, and alternate layers (by `layered`) are the paper's three ways to have
    both sets; its released code has the union. A mask is position information too, also around `none`.
    """

    name = "fixed"
    family = Family.SPARSE
    reference = "Child et al. 2019, arXiv:1904.10509"
    year = 2019

    class Options(EncodingOptions):
        encoding: EncodingBlock = Field(default={"name": "rope"})
        """Name or block of the encoding that acts among the allowed keys."""
        stride: PositiveInt | None = None
        """l, the length of a block. None: the square root of the training length, rounded."""
        summary: PositiveInt | None = None
        """c. None: a quarter of l, the largest share in the paper (32 of 128)."""
        subblocks: PositiveInt = 1
        """n: heads take turns in n sets of c columns, the first head with the last c of a block. The paper found
        n > 1 better than the same columns for all."""
        pattern: Literal["union", "heads", "block", "summary"] = "union"
        """union: both sets for every head; heads: the first half of the heads (the middle one too, if their
        number is odd) has the own block, the others the summaries; block, summary: one set alone."""

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        super().__init__(options, spec, build(options.encoding, spec))
        self.stride = options.stride or root_stride(spec.train_length)
        self.summary = options.summary or max(1, self.stride // 4)
        self.first = halved(options.pattern, spec.n_heads)
        """The first head with summaries."""
        self.refuse_unused()
        if self.summary * options.subblocks > self.stride:
            raise refused(
                "",
                f"subblocks {options.subblocks} times summary {self.summary} is more than stride "
                f"{self.stride}, the length of a block; write summary: {max(1, self.stride // options.subblocks)}"
                + (f" and stride: {options.subblocks}" if options.subblocks > self.stride else ""),
            )

    def refuse_unused(self) -> None:
        """SectionError for options that would change nothing."""
        subblocks, heads = self.options.subblocks, self.spec.n_heads - self.first
        stated = {"summary": self.options.summary is not None, "subblocks": subblocks > 1}
        for key in (key for key, said in stated.items() if said and self.options.pattern == "block"):
            raise refused(key, "changes nothing: pattern block has no summaries; leave it out")
        if subblocks > heads:
            raise refused("subblocks", f"must be at most {heads}, the number of heads with summaries, not {subblocks}")

    def mask(self, block: Block) -> Tensor | None:
        blocks = block.index // self.stride
        near = blocks[block.queries][:, None] == blocks[block.keys]
        sets = {"block": near, "summary": self.summarises(block.key_index) | (block.offset == 0)}
        own = combined(self.options.pattern, sets, self.spec.n_heads, self.first)
        return both_allowed(own, self.inner.mask(block))

    def summarises(self, keys: Tensor) -> Tensor:
        """Whether a key is one of the c columns of a head: (1, K), or (H, 1, K) where heads take turns."""
        subblock = (self.stride - 1 - keys % self.stride) // self.summary
        if self.options.subblocks == 1:
            return (subblock == 0)[None]
        heads = torch.arange(self.spec.n_heads, device=keys.device) - self.first
        return subblock == (heads % self.options.subblocks)[:, None, None]

    def reach(self, layer: LayerView, queries: slice) -> slice | Tensor:
        start = queries.start if self.options.pattern == "summary" else queries.start // self.stride * self.stride
        own: slice | Tensor = slice(start, queries.stop)
        if self.options.pattern != "block":
            keys = torch.arange(queries.stop, device=layer.q.device)
            columns = self.summary * min(self.options.subblocks, self.spec.n_heads - self.first)
            own = keys[(keys >= start) | (keys % self.stride >= self.stride - columns)]
        return meeting(own, self.inner.reach(layer, queries))
