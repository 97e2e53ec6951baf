"""Small encodings at a length that they were not trained for, as strategies make them."""

from __future__ import annotations

from typing import Any

import torch
from driving import built, with_parameters
from torch import Tensor

from pe_cli import strategies
from pe_cli.encodings.base import PositionEncoding

LENGTH = 8
"""The trained one."""


def at_length(strategy: object, block: Any, length: int, **sizes: Any) -> PositionEncoding:
    """The encoding of a block, trained at LENGTH, as a strategy makes it for a longer window."""
    known = {"train_length": LENGTH, "max_position": LENGTH, **sizes}
    return strategies.apply(strategy, built(block, **known), known["train_length"], length)


def ids_at(strategy: object, length: int, block: Any = "learned") -> list[float]:
    """The ids of the characters of a longer window."""
    found: list[float] = (
        at_length(strategy, block, length).positions(torch.zeros(1, length, dtype=torch.long)).ids[0].tolist()
    )
    return found


def rows_at(strategy: object, table: Tensor, length: int) -> Tensor:
    """What is added to the embeddings (T, D) by a learned table with these rows (L, D)."""
    rows, width = table.shape
    encoding = built("learned", d_model=width, n_heads=1, train_length=rows, max_position=rows)
    return added(strategies.apply(strategy, with_parameters(encoding, table=table), rows, length), length)


def added(encoding: PositionEncoding, length: int) -> Tensor:
    """What an encoding adds to the embeddings of a window (T, D), in float64."""
    x = torch.zeros(1, length, encoding.spec.d_model, dtype=torch.float64)
    return encoding.embed(x, encoding.positions(torch.zeros(1, length, dtype=torch.long)))[0].detach()


def random_table(rows: int = LENGTH, width: int = 6, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, width, dtype=torch.float64, generator=generator)


def frequencies_at(strategy: object, length: int, block: Any = "rope", **sizes: Any) -> list[float]:
    """Radians per id of each pair of a longer window."""
    found: list[float] = at_length(strategy, block, length, **sizes).numbers(length)["inverse_frequencies"].tolist()
    return found
