"""Ids as a model is given them by a sampler, without a model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from driving import SPEC
from torch import Tensor

from pe_cli import samplers
from pe_cli.encodings.base import PositionEncoding

WINDOW = SPEC.max_position
BLOCKS: dict[str, dict[str, Any]] = {
    "randomized": {"name": "randomized", "max_position": 40},
    "randomized, per example": {"name": "randomized", "max_position": 40, "per": "example"},
    "randomized, no room": {"name": "randomized", "max_position": WINDOW},
    "shifted": {"name": "shifted", "shifts": 9},
    "shifted, later start": {"name": "shifted", "shifts": 9, "start": 8},
    "scaled": {"name": "scaled"},
    "scaled, far": {"name": "scaled", "max_shift": 20, "max_scale": 2},
    "scaled, whole": {"name": "scaled", "max_shift": 0, "max_jitter": 0, "max_scale": 1},
    "skipped": {"name": "skipped", "max_position": 40},
    "skipped, no room": {"name": "skipped", "max_position": WINDOW},
}
"""Samplers with options, for training windows of up to WINDOW characters."""


def sampled(positions: Any, encoding: Any = "rope", **sizes: Any) -> PositionEncoding:
    """The encoding of a block with the ids of a sampler, for SPEC with other sizes."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return samplers.build(positions, encoding, replace(SPEC, **sizes))


def tokens(length: int, batch: int = 3) -> Tensor:
    return torch.randint(len(SPEC.alphabet), (batch, length), generator=torch.Generator().manual_seed(length))


def trained_ids(encoding: PositionEncoding, length: int = WINDOW, batch: int = 3, seed: int = 0) -> Tensor:
    """Ids (batch, T) in training."""
    ids = encoding.positions(tokens(length, batch), torch.Generator().manual_seed(seed)).leaves()[0].ids
    return ids.expand(batch, length)


def evaluated_ids(encoding: PositionEncoding, length: int, batch: int = 3) -> Tensor:
    """Ids (T,) in evaluation, the same for all windows."""
    ids = encoding.positions(tokens(length, batch)).leaves()[0].ids.expand(batch, length)
    assert bool((ids == ids[0]).all())
    return ids[0]
