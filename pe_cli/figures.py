"""Sections of heat maps, masks and curves, put together in one picture."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pe_cli.charts import Charts
from pe_cli.drawing import drawing, save
from pe_cli.heatmaps import Maps, Masks
from pe_cli.panels import WIDEST, legible, wrapped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DPI = 200

Section = Maps | Masks | Charts


def draw(sections: Sequence[Section], path: Path, title: str, notes: Sequence[str] = ()) -> None:
    """All sections in one picture. RunError, with the file named, for whatever goes wrong."""
    with drawing(path):
        save(figure_of(sections, title, notes), path)


def figure_of(sections: Sequence[Section], title: str, notes: Sequence[str]) -> Figure:
    """Sections from left to right and from top to bottom, each at its own size."""
    from matplotlib.figure import Figure

    lines: list[list[Section]] = []
    for section in sections:
        wide = sum(other.size()[0] for other in lines[-1]) if lines else WIDEST
        if wide + section.size()[0] > WIDEST:
            lines.append([])
        lines[-1].append(section)
    width = max(4.6, *(sum(section.size()[0] for section in line) for line in lines))
    heights = [max(section.size()[1] for section in line) for line in lines]
    words = textwrap.wrap(legible(title), round(width * 9))
    small = [part for note in notes for part in textwrap.wrap(legible(note), round(width * 15.5))]
    height = sum(heights) + 0.12 + 0.21 * len(words) + 0.155 * len(small)
    figure = Figure(figsize=(width, height), dpi=_DPI, layout="constrained")
    figure.suptitle("\n".join(words), x=0.01, ha="left")
    figure.supxlabel("\n".join(small), x=0.01, ha="left", linespacing=1.35, fontsize=8, color="#444444")
    bands = figure.subfigures(len(lines), 1, squeeze=False, height_ratios=heights)[:, 0]
    for band, line in zip(bands, lines, strict=True):
        sizes = [section.size()[0] for section in line]
        if len(line) == 1 and isinstance(line[0], Charts):
            sizes = [min(width, 1.7 * sizes[0])]
        rest = max(width - sum(sizes), 1e-3)
        parts = band.subfigures(1, len(line) + 1, squeeze=False, width_ratios=[*sizes, rest])[0]
        for part, section, inches in zip(parts, line, sizes, strict=False):
            part.suptitle(wrapped(section.title, inches), x=0.12 / inches, ha="left", fontsize=10, weight="bold")
            section.draw(part)
    return figure
