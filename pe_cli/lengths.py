"""Which lengths a text or a task can hold, known before any time is spent."""

from __future__ import annotations

from pe_cli.experiment import EvaluationConfig, TrainingConfig
from pe_cli.instances import holds
from pe_cli.protocols import Targets, Text, TooShort, non_overlapping, same_targets, sliding
from pe_cli.tasks import Task


def windows_of(text: Text, protocol: str, length: int, settings: EvaluationConfig) -> Targets:
    """The windows of a protocol at one length. TooShort where the text cannot hold them."""
    if protocol == "same_targets":
        return same_targets(text, length, settings.windows, settings.scored)
    if protocol == "sliding":
        return sliding(text, length, settings.stride, settings.scored)
    return non_overlapping(text, length)


def too_long(text: Text | Task, settings: EvaluationConfig) -> dict[str, dict[int, str]]:
    """By protocol, the lengths that the text or the task cannot hold, each with the numbers needed and present."""
    found: dict[str, dict[int, str]] = {}
    for protocol in settings.protocols:
        for length in settings.lengths:
            try:
                if isinstance(text, Text):
                    windows_of(text, protocol, length, settings)
                else:
                    holds(text, length)
            except TooShort as short:
                found.setdefault(protocol, {})[length] = str(short)
    return found


def skipping(text: Text | Task, settings: EvaluationConfig) -> list[str]:
    """What is said of lengths that will be skipped before any time is spent: one note for each protocol."""
    return [
        f"{protocol}: skipping {', '.join(map(str, why))}: {next(iter(why.values()))}"
        for protocol, why in too_long(text, settings).items()
    ]


def short_validation(text: Text | Task, training: TrainingConfig) -> list[str]:
    """What is said where the validation loss will be of a shorter window than those of training."""
    if not isinstance(text, Text) or text.held_out >= training.length:
        return []
    return [
        f"the validation loss is of one window of {text.held_out} characters: one of training.length {training.length} "
        f"needs as many held-out characters; there are {text.held_out}"
    ]
