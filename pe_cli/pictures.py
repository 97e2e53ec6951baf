"""The sections of a picture of encodings: of every kind asked for, or those that each encoding is about."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pe_cli import distance_charts, maps
from pe_cli.errors import ConfigError
from pe_cli.figures import Section
from pe_cli.kinds import MAIN, Request, Subject, TooLarge, kinds_of, main_kinds

SECTIONS: dict[str, Callable[[Request], Section]] = {
    "ids": distance_charts.ids,
    "table": maps.table,
    "similarity": distance_charts.similarity,
    "bias": maps.bias,
    "decay": distance_charts.decay,
    "mask": maps.mask,
    "attention": distance_charts.attention,
}


def sections(
    subjects: Sequence[Subject], kinds: Sequence[str] | None, layer: int | None
) -> tuple[list[Section], list[str]]:
    """What `figures.draw` takes: sections and notes. Without kinds, those that each encoding is about.

    ConfigError for an encoding without a picture of a kind asked for, or without any, and for one that is too
    large; where no kind is asked for, what is too large is left out, and a note says so.
    """
    for label, window in subjects:
        if layer is not None and layer >= window.spec.n_layers:
            raise ConfigError(f"--layer {layer}: {label} has the layers 0 to {window.spec.n_layers - 1}")
        own = kinds_of(window)
        if lacking := [kind for kind in kinds or ["any kind"] if kind not in own and (kinds or not own)]:
            has = f"it has: {', '.join(own)}" if own else "it changes nothing that a picture shows"
            raise ConfigError(f"{label} has no picture of {' and '.join(lacking)}; {has}")
    offered = kinds_of if kinds else main_kinds
    request = Request(subjects, len(subjects) > 1, layer, {}, set())
    found: list[Section] = []
    too_large: list[ConfigError] = []
    for kind in kinds or MAIN:
        having = [subject for subject in subjects if kind in offered(subject.window)]
        if not having:
            continue
        try:
            found.append(SECTIONS[kind](request._replace(subjects=having)))
        except TooLarge as error:
            if kinds:
                raise
            too_large.append(error)
            request.note(f"Left out: {error}.")
    if not found:
        raise too_large[0]
    if layer is not None and not request.of_a_layer:
        titles = " and ".join(section.title for section in found)
        raise ConfigError(f"--layer {layer}: {titles}: not of a layer; leave it out, or name a --kind that is")
    return found, list(request.notes)
