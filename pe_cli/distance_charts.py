"""Ids of encodings by character, and what they do by distance, as the sections of a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from pe_cli import distances
from pe_cli.charts import Charts, Line, Panel
from pe_cli.distances import ByDistance
from pe_cli.encodings._composition import Composition, Wrapper
from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import Positions
from pe_cli.kinds import HOOKS, MOST_HEADS, Request, Subject, layer_for, note_text, numbers, some_heads


def ids(request: Request) -> Charts:
    found = []
    for label, window in request.subjects:
        lines = [Line(name, numbers(values)) for name, values in id_lines(window.encoding, window.positions)]
        found.append((label, lines))
        note_text(request, window)
    texts = [window.text if window.reads_text else None for _, window in request.subjects]
    panels = charts("", "", found, request).panels
    if len(panels) == len(texts):
        panels = [replace(panel, text=text) for panel, text in zip(panels, texts, strict=True)]
    return Charts("Position ids", "character", "position id", panels, "held", panel=(8.8, 1.9))


def id_lines(encoding: PositionEncoding, positions: Positions) -> list[tuple[str, Tensor]]:
    """The ids of every part and axis (T,) with a name; equal ones once."""
    found: list[tuple[str, Tensor]] = []
    for name, leaf in parts_of(encoding, positions):
        axes = leaf.ids[0].reshape(leaf.ids.shape[1], -1).T
        for axis, own in enumerate(axes):
            if not any(torch.equal(own, other) for _, other in found):
                found.append((f"{name}, axis {axis}" if len(axes) > 1 else name, own))
    return found


def parts_of(encoding: PositionEncoding, positions: Positions) -> Iterator[tuple[str, Positions]]:
    """The simple encodings in an encoding, with the ids that each is given."""
    if isinstance(encoding, Wrapper):
        yield from parts_of(encoding.inner, positions)
    elif isinstance(encoding, Composition) and positions.parts:
        for part, own in zip(encoding.members(), positions.parts, strict=True):
            yield from parts_of(part, own)
    else:
        yield from ((encoding.name, leaf) for leaf in positions.leaves())


def similarity(request: Request) -> Charts:
    found = []
    for subject in request.subjects:
        window = subject.window
        lines: list[Line] = []
        if "embed" in window.encoding.hooks(0):
            lines.append(Line("table", numbers(distances.table_similarity(window).mean)))
            request.note("Similarity of a table: mean cosine of two rows; rows of zeros have none and do not count.")
        if not lines or any("rotate" in window.encoding.hooks(index) for index in range(window.spec.n_layers)):
            index = layer_for("rotation", {"rotate"}, subject, request)
            lines += by_head(distances.rotary_similarity(window, index), "rotation", subject, request)
            request.note("Similarity of a rotation: mean product of equal unit vectors turned to their ids.")
        found.append((subject.label, lines))
    return charts("Similarity by distance", "similarity", found, request)


def decay(request: Request) -> Charts:
    found = []
    for subject in request.subjects:
        index = layer_for("decay", HOOKS["decay"], subject, request)
        found.append((subject.label, by_head(distances.effect(subject.window, index), "all heads", subject, request)))
    request.note(
        "Effect on the logits: what is added where all characters are alike, and queries equal keys; mean and "
        f"standard deviation over {distances.DRAWS} random characters."
    )
    return charts("Effect on the logits by distance", "effect (nats)", found, request)


def attention(request: Request) -> Charts:
    found = []
    for subject in request.subjects:
        index = layer_for("attention", HOOKS["attention"], subject, request)
        mean, deviation = distances.attention(subject.window, index)
        lines = by_head(ByDistance(mean, torch.zeros_like(deviation)), "all heads", subject, request)
        length = len(subject.window.text)
        lines.append(Line("no encoding", np.full(length, 1 / length)))
        found.append((subject.label, lines))
    request.note(
        f"Attention: weights of the last query, mean over {4 * distances.DRAWS} texts of random characters in a "
        "layer with random matrices."
    )
    return replace(charts("Attention by distance", "weight", found, request), scale="logarithmic")


def by_head(found: ByDistance, name: str, subject: Subject, request: Request) -> list[Line]:
    """A curve for each head, or for some of many; one where they are alike."""
    mean, deviation = numbers(found.mean), numbers(found.deviation)
    if np.allclose(mean, mean[:1], rtol=1e-9, atol=1e-12, equal_nan=True):
        return [Line(name, mean[0], deviation[0])]
    prefix = "" if name == "all heads" else f"{name}, "
    chosen = some_heads(len(mean), MOST_HEADS, subject, request)
    return [Line(f"{prefix}head {head}", mean[head], deviation[head]) for head in chosen]


def charts(title: str, y: str, found: Sequence[tuple[str, Sequence[Line]]], request: Request) -> Charts:
    """One panel for single curves of several encodings, else one for each encoding."""
    if len(found) > 1 and all(len(lines) == 1 for _, lines in found):
        panels = [Panel("", [Line(label, line.values, line.band) for label, (line,) in found])]
    else:
        panels = [Panel(label if request.several else "", lines) for label, lines in found]
    return Charts(title, "distance (characters)", y, panels)
