"""What a position encoding does to a Transformer, and what happens beyond the length it was trained on."""

__version__ = "0.1.0"
