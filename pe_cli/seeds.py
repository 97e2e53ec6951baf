"""One seed of an experiment becomes independent streams of random numbers, one for each purpose."""

from __future__ import annotations

import hashlib

import torch


def seeded(seed: int, purpose: str) -> torch.Generator:
    """A CPU generator for one purpose ("data", "initialisation", ...) of one seed.

    Streams of different purposes are independent: drawing more from one leaves the others as they are.
    """
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    generator = torch.Generator(device="cpu")
    generator.manual_seed(int.from_bytes(digest[:8], "big") >> 1)
    return generator
