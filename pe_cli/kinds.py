"""The kinds of pictures that encodings have, and what one is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from pe_cli.encodings.base import Sees
from pe_cli.errors import ConfigError
from pe_cli.inspection import Window

_LOGITS = {"scores", "bias", "by_distance"}
HOOKS = {
    "ids": {"positions"},
    "table": {"embed"},
    "similarity": {"embed", "rotate"},
    "bias": {"bias", "by_distance"},
    "decay": {"embed", "rotate", *_LOGITS},
    "mask": {"mask"},
    "attention": {"embed", "rotate", "mask", "weights", *_LOGITS},
}
"""The kinds of pictures, and the hooks of which an encoding must have one to have such a picture."""
MAIN = {**HOOKS, "decay": _LOGITS, "attention": {"weights"}}
"""The same for the pictures that are drawn where no kind is asked for: every hook has its own."""
MOST_HEADS = 8


class Subject(NamedTuple):
    """An encoding at work and what it is called in the picture."""

    label: str
    window: Window


class Request(NamedTuple):
    """What a picture is of, and what is to be said below it."""

    subjects: Sequence[Subject]
    several: bool
    """Whether there are others in the picture, so that each is to be named."""
    layer: int | None
    notes: dict[str, None]
    of_a_layer: set[str]
    """The kinds that turned out to be of one layer."""

    def note(self, text: str) -> None:
        self.notes[text] = None


class TooLarge(ConfigError):
    """A picture of more entries than are worth the memory."""


def kinds_of(window: Window) -> list[str]:
    """The kinds of pictures that an encoding has."""
    uses_ids = window.encoding.sees is not Sees.NOTHING or "positions" in window.encoding.hooks(0)
    return with_hooks(window, HOOKS, uses_ids)


def main_kinds(window: Window) -> list[str]:
    """The kinds that are drawn where none is asked for; ids where they do not just count."""
    return with_hooks(window, MAIN, renumbers(window))


def with_hooks(window: Window, hooks: dict[str, set[str]], ids: bool) -> list[str]:
    layers = range(window.spec.n_layers)
    own = frozenset[str]().union(*(window.encoding.hooks(index) for index in layers))
    return [kind for kind, needed in hooks.items() if own & needed or (kind == "ids" and ids)]


def renumbers(window: Window) -> bool:
    """Whether ids are used and are not just the number of a character."""
    counting = torch.arange(len(window.text), dtype=torch.float32)[None]
    renumbered = any(not torch.equal(leaf.ids, counting) for leaf in window.positions.leaves())
    return "positions" in window.encoding.hooks(0) or (renumbered and window.encoding.sees is not Sees.NOTHING)


def layer_for(kind: str, hooks: set[str], subject: Subject, request: Request) -> int:
    """The layer asked for, else the first in which the encoding has one of these hooks. ConfigError if it has none."""
    window = subject.window
    acting = [index for index in range(window.spec.n_layers) if window.encoding.hooks(index) & hooks]
    request.of_a_layer.add(kind)
    chosen = acting[0] if request.layer is None else request.layer
    if chosen not in acting:
        layers = ", ".join(map(str, acting))
        raise ConfigError(f"--layer {chosen}: {subject.label} has no {kind} there; those that have one: {layers}")
    if len(acting) < window.spec.n_layers:
        layers = ", ".join(map(str, acting))
        request.note(f"{subject.label}: {kind} of layer {chosen}; layers {layers} of {window.spec.n_layers} have one.")
    return chosen


def some_heads(count: int, most: int, subject: Subject, request: Request) -> list[int]:
    """All heads, or `most` of them, the first and the last among them."""
    if count > most:
        request.note(f"{subject.label}: {most} of {count} heads are shown.")
    return sorted({round(head) for head in np.linspace(0, count - 1, min(count, most))})


def too_large(what: str, size: str, most: int) -> TooLarge:
    return TooLarge(f"{what}: {size} entries are too many to draw; lengths up to {most} can be")


def note_text(request: Request, window: Window) -> None:
    if window.reads_text:
        request.note("Ids are read from a sample text. Where its characters are named, ␣ is a space and ↵ ends a line.")


def note_zero(request: Request, label: str, kind: str, values: np.ndarray) -> None:
    if not np.nan_to_num(values).any():
        request.note(f"{label}: the {kind} is zero everywhere.")


def numbers(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().double().numpy().copy()
