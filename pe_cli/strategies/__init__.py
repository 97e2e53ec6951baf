"""What is done with a trained encoding at one evaluation length beyond the length it was trained on."""

from pe_cli.strategies._entries import (
    ALL,
    Entries,
    Entry,
    apply,
    build,
    canonical_block,
    label,
    left_out,
    read_entries,
    with_meaning,
)
from pe_cli.strategies.registry import Strategy, StrategyOptions, catalogue, names

__all__ = [
    "ALL",
    "Entries",
    "Entry",
    "Strategy",
    "StrategyOptions",
    "apply",
    "build",
    "canonical_block",
    "catalogue",
    "label",
    "left_out",
    "names",
    "read_entries",
    "with_meaning",
]
