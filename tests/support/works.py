"""Pieces of work for a process of its own, which imports them from here."""

from __future__ import annotations

import os
from collections.abc import Callable

import torch

from pe_cli.samplers.randomized import subsets


def takes(size: int) -> Callable[[], object]:
    """Work that needs so many bytes."""
    return lambda: float(torch.ones(size // 8, dtype=torch.float64).sum())


def ends(number: int) -> Callable[[], object]:
    """Work that is killed by a signal."""
    return lambda: os.kill(os.getpid(), number)


def cannot(error: Exception) -> Callable[[], object]:
    raise error


def draws(rows: int, size: int, most: int) -> Callable[[], object]:
    """Random subsets."""
    return lambda: subsets(rows, size, most, torch.Generator().manual_seed(0))
