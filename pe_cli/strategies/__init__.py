"""What is done with a trained encoding at one evaluation length beyond the length it was trained on."""

from pe_cli.strategies.registry import Strategy, apply, catalogue, names

__all__ = ["Strategy", "apply", "catalogue", "names"]
