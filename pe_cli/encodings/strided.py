"""strided: another encoding, with queries that see near characters and every l-th one before them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PositiveInt
from torch import Tensor

from pe_cli.encodings._composition import Wrapper
from pe_cli.encodings._sparse import (
    both_allowed,
    combined,
    halved,
    local,
    local_reach,
    meeting,
    periodic,
    periodic_reach,
    root_stride,
)
from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec
from pe_cli.encodings.registry import EncodingBlock, build, register
from pe_cli.encodings.views import Block, LayerView


@register
class Strided(Wrapper):
    r"""The strided pattern of the Sparse Transformer, with any encoding on top.

    .. math:: A^{(1)}_i = \{j : 0 \le i - j < l\}, \quad A^{(2)}_i = \{j \le i : (i - j) \bmod l = 0\}

    Every earlier character is within two steps, one of each kind. The paper offers three ways to have both:
    one attention to the union (`union`), half of the heads each (`heads`), or alternate layers (`layered`,
    with one strided block of pattern `local` and one of `strided`). Its first set has j = i − l as well, in
    any case a member of the second; its released code has the sets above, and the mask that it names
    "strided" is the second set without the first. A mask is position information too, also around `none`.
    """

    name = "strided"
    family = Family.SPARSE
    reference = "Child et al. 2019, arXiv:1904.10509"
    year = 2019

    class Options(EncodingOptions):
        encoding: EncodingBlock = Field(default={"name": "rope"})
        """Name or block of the encoding that acts among the allowed keys."""
        stride: PositiveInt | None = None
        """l. None: the square root of the training length, rounded."""
        pattern: Literal["union", "heads", "local", "strided"] = "union"
        """union: both sets for every head; heads: the first half of the heads (the middle one too, if their
        number is odd) has the near keys, the others every l-th; local, strided: one set alone."""

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        super().__init__(options, spec, build(options.encoding, spec))
        self.near_heads = halved(options.pattern, spec.n_heads)
        self.stride = options.stride or root_stride(spec.train_length)

    def mask(self, block: Block) -> Tensor | None:
        return both_allowed(block.by_offset(self.allowed), self.inner.mask(block))

    def allowed(self, offset: Tensor) -> Tensor:
        """Whether a key (n,) characters back may be seen: (n,), or (H, n) where heads differ."""
        sets = {"local": local(offset, self.stride), "strided": periodic(offset, self.stride)}
        return combined(self.options.pattern, sets, self.spec.n_heads, self.near_heads)

    def reach(self, layer: LayerView, queries: slice) -> slice | Tensor:
        if self.options.pattern == "local":
            own: slice | Tensor = local_reach(queries, self.stride)
        else:
            near = 0 if self.options.pattern == "strided" else self.stride
            own = periodic_reach(queries, self.stride, near, layer.q.device)
        return meeting(own, self.inner.reach(layer, queries))
