"""Which id each character carries in training, and in evaluation."""

from pe_cli.samplers.registry import build, canonical_block, catalogue, names, notes

__all__ = ["build", "canonical_block", "catalogue", "names", "notes"]
