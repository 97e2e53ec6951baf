"""tree: the path to a character through nested brackets or indented blocks, added to the embeddings."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.nn import functional as F

from pe_cli.encodings._structure import among, segments
from pe_cli.encodings.base import EncodingOptions, Family, ModelSpec, PositionEncoding, Sees
from pe_cli.encodings.registry import register
from pe_cli.encodings.views import Positions
from pe_cli.errors import refused


@register
class Tree(PositionEncoding):
    r"""Tree positions: one block for each step from a node up to the root, one of n branches marked in each.

    .. math:: x_p = E[t_p] + \sqrt{1 - q^2}\,\sqrt{D / 2}\;[\,u_{b_1} \,|\, q\,u_{b_2} \,|\, q^2 u_{b_3} \,|\, \dots]

    :math:`u_b` has a one in place b; the nearest step comes first, and steps beyond `depth` are cut off. As many
    decays q as fit stand beside each other, all learned: each place of a block is repeated for them, and columns
    left over stay zero. Public code draws tanh⁻¹(q) from 0.7 to 0.999; the released path code has neither q nor
    factor (`levels: plain`).

    The paper has a parser; here the nodes are groups of characters, read from left to right. The branch of a
    group is the number of groups before it in the same group, and n − 1 where there are more. Characters of one
    group share its path, and outside of all groups nothing is added: it takes a `mix` to tell those apart. ::

        f ( a , [ b ] ) ( c )        def f():       none
        – 0 0 0 0 0 0 0 1 1 1  b₁        x = 1      0
        – – – – 0 0 0 – – – –  b₂        if x:      0
                                             y      0, 0 (space before y: as the line above)

    A bracket belongs to the group that it opens or closes. Any closing bracket closes the innermost group, of
    whichever kind; where none is open, it is an ordinary character.
    """

    name = "tree"
    family = Family.STRUCTURAL
    reference = "Shiv and Quirk 2019 (NeurIPS), Novel positional encodings to enable tree-based transformers"
    year = 2019
    sees = Sees.ABSOLUTE
    fractional = False

    class Options(EncodingOptions):
        nesting: Literal["brackets", "indentation"] = "brackets"
        """brackets: groups are ( ), [ ] and { }; indentation: lines that start with more spaces or tabs than
        the line that they belong to. It counts from the first other character of a line on; empty lines do not."""
        branches: PositiveInt = 4
        """n: the number of places in a block."""
        depth: PositiveInt | None = None
        """The number of blocks. None: 8, or as many as model.d_model holds."""
        levels: Literal["decayed", "plain"] = "decayed"
        """decayed: the paper's powers of q and its factor; plain: ones and zeros."""

    opening: Tensor
    closing: Tensor
    blank: Tensor
    newline: Tensor

    def __init__(self, options: Options, spec: ModelSpec) -> None:
        super().__init__(options, spec)
        most = spec.d_model // options.branches
        self.depth = options.depth or min(8, most)
        if most < max(1, self.depth):
            advice = f"depth: {most}" if most else f"branches: {spec.d_model}"
            raise refused(
                "",
                f"{max(1, self.depth)} blocks of {options.branches} branches do not fit into "
                f"model.d_model {spec.d_model}; {advice} would do",
            )
        copies = spec.d_model // (options.branches * self.depth)
        decayed = options.levels == "decayed"
        self.decay = nn.Parameter(torch.empty(copies).uniform_(0.7, 0.999)) if decayed else None
        for kind, characters in (("opening", "([{"), ("closing", ")]}"), ("blank", " \t"), ("newline", "\n")):
            self.register_buffer(kind, among(spec.alphabet, characters), persistent=False)

    def positions(self, tokens: Tensor, generator: torch.Generator | None = None) -> Positions:
        """Ids (B, T, depth): 1 + the branch of each step, 0 where the path has ended."""
        if self.options.nesting == "brackets":
            level, opens = bracketed(self.opening[tokens], self.closing[tokens])
        else:
            level, opens = indented(self.blank[tokens], self.newline[tokens])
        branch = branches(level, opens, self.depth)
        return Positions((branch.clamp(max=self.options.branches - 1) + 1).float())

    def embed(self, x: Tensor, positions: Positions) -> Tensor:
        places = torch.arange(1, self.options.branches + 1, device=x.device)
        code = (positions.ids[..., None] == places).to(x.dtype)[..., None]  # (B, T, depth, n, 1)
        if self.decay is not None:
            decay = self.decay.tanh()
            factor = ((1 - decay**2) * self.spec.d_model / 2).sqrt()
            step = torch.arange(self.depth, device=x.device)
            code = code * (factor * decay ** step[:, None])[:, None]  # (B, T, depth, n, copies)
        flat = code.flatten(-3)
        return x + F.pad(flat, (0, x.shape[-1] - flat.shape[-1])).to(x.dtype)

    def numbers(self, length: int) -> dict[str, Tensor]:
        return {} if self.decay is None else {"decays": self.decay.tanh()}


def bracketed(opening: Tensor, closing: Tensor) -> tuple[Tensor, Tensor]:
    """The level (B, T) of each character's group, 0 outside of all, and whether the character opens it."""
    total = (opening.long() - closing.long()).cumsum(dim=1)
    depth = total - total.cummin(dim=1).values.clamp(max=0)  # an unmatched closing bracket takes nothing away
    before = F.pad(depth[:, :-1], (1, 0))
    return torch.maximum(depth, before), opening


def indented(blank: Tensor, newline: Tensor) -> tuple[Tensor, Tensor]:
    """As `bracketed`: a line of width w opens a group unless one of width w is open, and closes all wider ones."""
    index = torch.arange(blank.shape[1], device=blank.device)
    width, _ = segments(newline)
    solid = ~(blank | newline)
    last_solid = F.pad(torch.where(solid, index, -1).cummax(dim=1).values[:, :-1], (1, 0), value=-1)
    first = solid & (last_solid < index - width)
    level, opens = torch.zeros_like(width), torch.zeros_like(first)
    for wide in width[first & (width > 0)].unique().tolist():
        as_wide, narrower = first & (width == wide), first & (width < wide)
        same, less = (torch.where(kind, index, -1).cummax(dim=1).values for kind in (as_wide, narrower))
        is_open = same > less
        level += is_open
        opens |= as_wide & ~F.pad(is_open[:, :-1], (1, 0))
    return level, opens


def branches(level: Tensor, opens: Tensor, depth: int) -> Tensor:
    """The branch (B, T, depth) of each character's group, of the group around it, …; −1 where there is none."""
    length = level.shape[1]
    index, step = torch.arange(length, device=level.device), torch.arange(depth, device=level.device)
    # one key for each group, sorted by level, then by time: children of one group are neighbours
    keys = torch.where(opens, level * length + index, length * (length + 1)).sort(dim=1).values
    parent = torch.searchsorted(keys, keys - length, right=True)  # of a group: the last one above it so far
    is_first = F.pad(parent.diff(dim=1) != 0, (1, 0), value=True)
    branch = index - torch.where(is_first, index, 0).cummax(dim=1).values
    wanted = (level[..., None] - step) * length + index[:, None]
    found = torch.searchsorted(keys, wanted.flatten(1), right=True) - 1
    path = branch.gather(1, found.clamp(min=0)).unflatten(1, (length, depth))
    return torch.where(level[..., None] > step, path, -1)
