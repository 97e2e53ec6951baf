"""The distances that a strategy makes a rotation see, and the heads of files that state them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from driving import built, layer_of, logits
from reference_cases import Case
from torch import Tensor

from pe_cli.encodings.base import PositionEncoding


def distances(change: Callable[[PositionEncoding], PositionEncoding], length: int) -> Tensor:
    """(T, T), NaN where a key is not seen: read off the angle of one slow pair, which is 1e-4 for each id."""
    encoding = change(built({"name": "rope", "base": 1e8}, d_model=4, n_heads=1, train_length=8))
    unit = torch.zeros(1, length, 4).double()
    first, second = unit.index_fill(2, torch.tensor(1), 1.0), unit.index_fill(2, torch.tensor(3), 1.0)
    along, across = (logits(encoding, layer_of(first, keys))[0, 0] for keys in (first, second))
    found = torch.full_like(along, float("nan"))
    seen = along.isfinite()
    found[seen] = torch.atan2(across[seen], along[seen]).abs() * 1e4
    return found


def by_head(case: Case, name: str) -> Tensor:
    """(H, T, K), from the file's (T, H, K)."""
    return case.tensor(f"inputs.{name}").movedim(0, 1)


def head_sizes(case: Case) -> dict[str, int]:
    return {"n_heads": case.size("H"), "d_model": case.size("H") * case.size("d_head")}
