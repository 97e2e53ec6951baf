"""Tables, biases and masks of encodings as the sections of a picture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from pe_cli.heatmaps import CRISP, Heat, Maps, Masks
from pe_cli.inspection import MOST_ENTRIES, matrices, static
from pe_cli.kinds import (
    HOOKS,
    MOST_HEADS,
    Request,
    Subject,
    layer_for,
    note_text,
    note_zero,
    numbers,
    renumbers,
    some_heads,
    too_large,
)
from pe_cli.panels import comparable


def table(request: Request) -> Maps:
    """Rows of the tables: what is added to embeddings of zeros."""
    heats = []
    for label, window in request.subjects:
        length, width = len(window.text), window.spec.d_model
        if length * width > MOST_ENTRIES:
            raise too_large(f"table of {label}", f"{length} × {width}", MOST_ENTRIES // width)
        with torch.no_grad():
            added = window.encoding.embed(torch.zeros(1, length, width), window.positions)[0]
        text = window.text if window.reads_text else None
        heats.append((label, Heat(label if request.several else "", numbers(added), rows=text)))
        note_text(request, window)
        note_blended(request, max(length, width))
        note_zero(request, label, "table", heats[-1][1].values)
    rows: list[Sequence[Heat]] = []
    scales: list[int] = []
    for scale, group in grouped([(label, [heat]) for label, heat in heats]):
        flat = [heat for row in group for heat in row]
        rows += [flat[start : start + 2] for start in range(0, len(flat), 2)]
        scales += [scale] * (len(rows) - len(scales))
    y = "character" if any(renumbers(window) for _, window in request.subjects) else "position id"
    return Maps("Table", "dimension", y, "what is added to the embedding", rows, scales, (3.9, 3.1))


def bias(request: Request) -> Maps:
    named = [(subject.label, heads(square("bias", subject, request), subject, request)) for subject in request.subjects]
    for label, panels in named:
        note_zero(request, label, "bias", np.stack([heat.values for heat in panels]))
    rows: list[Sequence[Heat]] = []
    scales: list[int] = []
    for scale, group in grouped(named):
        for row in group:
            rows += broken(row, len(request.subjects))
        scales += [scale] * (len(rows) - len(scales))
    return Maps("Bias added to the logits (grey: future keys)", "key position", "query position", "nats", rows, scales)


def mask(request: Request) -> Masks:
    rows: list[Sequence[Heat]] = []
    single = False
    for subject in request.subjects:
        row = heads(square("mask", subject, request), subject, request)
        if len(row) == 1 and rows and len(rows[-1]) < 4 and single:  # beside the one before
            rows[-1] = [*rows[-1], *row]
        else:
            rows += broken(row, len(request.subjects))
        single = len(row) == 1
        if all(np.nanmin(heat.values) > 0 for heat in row):
            request.note(f"{subject.label}: the mask hides nothing at this length.")
    return Masks("Mask", "key position", "query position", rows)


def square(kind: str, subject: Subject, request: Request) -> np.ndarray:
    """Bias or mask (H, T, T), NaN in the future; H is 1 where heads are alike."""
    label, window = subject
    encoding, spec, length = window.encoding, window.spec, len(window.text)
    if spec.n_heads * length**2 > MOST_ENTRIES:
        most = int((MOST_ENTRIES / spec.n_heads) ** 0.5)
        raise too_large(f"{kind} of {label}", f"{spec.n_heads} × {length} × {length}", most)
    index = layer_for(kind, HOOKS[kind], subject, request)
    with torch.no_grad():
        found = matrices(encoding, spec, window.positions, index, 0)[kind]
        if static(kind, encoding, spec, window.positions, index) is None:
            request.note(f"{label}: the {kind} depends on the text; it is drawn for random content (seed 0).")
    values = numbers(found).reshape(-1, length, length)
    values[:, ~np.tri(length, dtype=bool)] = np.nan
    values[np.isinf(values)] = np.nan
    note_text(request, window)
    note_blended(request, length)
    return values[:1] if np.array_equal(values, np.broadcast_to(values[:1], values.shape), equal_nan=True) else values


def heads(values: np.ndarray, subject: Subject, request: Request) -> list[Heat]:
    """A panel for each head, of many for some of them."""
    label, window = subject
    text = window.text if window.reads_text else None
    several, count = request.several, len(values)
    if count == 1:
        return [Heat(label if several else "all heads", values[0], text, text)]
    titles = [f"{label}, head {head}" if several else f"head {head}" for head in range(count)]
    chosen = some_heads(count, MOST_HEADS // 2 if several else MOST_HEADS, subject, request)
    return [Heat(titles[head], values[head], text, text) for head in chosen]


def note_blended(request: Request, size: int) -> None:
    if size > CRISP:
        request.note("Neighbours are blended where a panel has more entries than dots.")


def broken(row: Sequence[Heat], subjects: int) -> list[Sequence[Heat]]:
    """Four panels of one encoding are a square, more of them rows of four."""
    width = 2 if subjects == 1 and len(row) == 4 else 4
    return [row[start : start + width] for start in range(0, len(row), width)]


def grouped(named: Sequence[tuple[str, Sequence[Heat]]]) -> list[tuple[int, list[Sequence[Heat]]]]:
    """Encodings whose values are of one size share a scale of colours, whatever stands between them."""
    values = [np.concatenate([heat.values.ravel() for heat in row]) for _, row in named]
    return [(0, [row for _, row in named])] if comparable(values) else [(n, [row]) for n, (_, row) in enumerate(named)]
