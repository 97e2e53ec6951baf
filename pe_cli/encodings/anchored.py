"""anchored: an absolute encoding at every k-th id, and nothing at the others."""

from __future__ import annotations

from collections.abc import Callable

import torch
from pydantic import Field, PositiveInt
from torch import Tensor

from pe_cli.encodings._composition import Wrapper
from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec, PositionEncoding
from pe_cli.encodings.registry import EncodingBlock, build, register
from pe_cli.encodings.views import Positions
from pe_cli.errors import refused


@register
class Anchored(Wrapper):
    r"""Sparse in the literal sense: most characters are told nothing of where they are.

    .. math:: x_p = E[t_p] + [\,p \bmod k = 0\,]\;e_p

    It is the id that makes an anchor, not the place in the window: what is added stays a function of the id
    alone, so ids that repeat beyond the training length bring back what was trained and never a vector that was
    not. Ids between whole numbers would be no multiples of k but by chance, and strategies that make such ids
    are refused. With k = 1 every id is an anchor.
    """

    name = "anchored"
    family = Family.ABSOLUTE
    reference = "a control without a paper of its own, 2026"
    year = 2026

    class Options(EncodingOptions):
        encoding: EncodingBlock = Field(default={"name": "sinusoidal"})
        """Name or block of the encoding that the anchors get; all that it does is to add to the embeddings."""
        every: PositiveInt = 4
        """k: ids that are multiples of this are anchors."""

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        inner = build(options.encoding, spec)
        super().__init__(options, spec, inner)
        self.fractional = False
        acts = frozenset[str]().union(*(inner.hooks(index) for index in range(spec.n_layers)))
        if acts != {"embed"}:
            does = "does nothing" if not acts else f"acts on {', '.join(sorted(acts))}"
            raise refused(
                "encoding",
                f"{inner.name} {does}; name an encoding that adds to the embeddings and "
                "does nothing else, as absolute ones do",
            )

    def embed(self, x: Tensor, positions: Positions) -> Tensor:
        return torch.where(self.is_anchor(positions)[..., None], self.inner.embed(x, positions), x)

    def is_anchor(self, positions: Positions) -> Tensor:
        return positions.ids.remainder(self.options.every) == 0

    def map(self, function: Callable[[PositionEncoding], PositionEncoding]) -> PositionEncoding:
        """As one: which ids are anchors and what they get are changed together."""
        return function(self)

    def numbers_at(self, positions: Positions) -> dict[str, Tensor]:
        """The numbers of the characters that are anchors."""
        return self.inner.numbers_at(positions) | {"anchors": self.is_anchor(positions)[0].nonzero().flatten()}
