"""What encodings share that read ids from the characters: segments and runs. No id depends on a later character."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def segments(ends: Tensor) -> tuple[Tensor, Tensor]:
    """Offset in the segment and number of it, whole numbers (B, T), where `ends` (B, T) marks the last of each."""
    before = F.pad(ends[:, :-1].long(), (1, 0))
    index = torch.arange(ends.shape[1], device=ends.device)
    start = (before * index).cummax(dim=1).values
    return index - start, before.cumsum(dim=1)


def places_in_runs(member: Tensor) -> Tensor:
    """1, 2, 3, … inside each run of neighbours that `member` (B, T) marks, 0 elsewhere."""
    index = torch.arange(member.shape[1], device=member.device)
    return index - torch.where(member, -1, index).cummax(dim=1).values


def among(alphabet: str, characters: str) -> Tensor:
    """Which characters of the alphabet are among these: boolean, in the order of the alphabet."""
    return torch.tensor([character in characters for character in alphabet], dtype=torch.bool)
