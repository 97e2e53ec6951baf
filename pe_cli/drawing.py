"""How pictures are drawn and written, whatever is in them.

Matplotlib is imported when something is drawn, and draws in its own style without a display: neither
MPLBACKEND nor a matplotlibrc of the user changes a picture.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pe_cli import files
from pe_cli.errors import PeError, RunError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE = {
    "font.size": 10,
    "axes.titlesize": 9.5,
    "legend.fontsize": 8.5,
    "figure.titlesize": 12,
    "text.parse_math": False,  # a dollar sign in a name is one
    "svg.fonttype": "none",  # texts that can be searched and edited
    "svg.hashsalt": "pe",
}


@contextmanager
def drawing(path: Path) -> Iterator[None]:
    """Matplotlib as it comes, and every failure a RunError that names the file."""
    backend = os.environ.pop("MPLBACKEND", None)  # an unknown one would stop the import
    try:
        from matplotlib import style

        with warnings.catch_warnings(), style.context(["default", _STYLE], after_reset=True):
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            yield
    except ImportError as error:
        raise RunError(f"cannot draw {os.path.abspath(path)}: {error}; pip install matplotlib") from error
    except RunError:  # of a file that cannot be written, which it names
        raise
    except PeError as error:
        raise RunError(f"cannot draw {os.path.abspath(path)}: {error}") from error
    except Exception as error:  # the numbers are on the disk by now, and no picture may take them away
        raise RunError(f"cannot draw {os.path.abspath(path)}: {type(error).__name__}: {error}") from error
    finally:
        if backend is not None:
            os.environ["MPLBACKEND"] = backend


def save(figure: Figure, path: Path) -> None:
    """Write a PNG or an SVG, by the suffix, whole or not at all; equal pictures are equal files."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    data = io.BytesIO()
    canvas = FigureCanvasSVG(figure) if path.suffix.lower() == ".svg" else FigureCanvasAgg(figure)
    _settle(figure)
    if isinstance(canvas, FigureCanvasSVG):
        canvas.print_svg(data, metadata={"Date": None})
    else:
        canvas.print_png(data, metadata={"Software": None})
    files.write_bytes(path, data.getvalue())


def _settle(figure: Figure) -> None:
    """Places without the last digits: they differ between two layouts of one figure, which shifts a pixel at times."""
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for part in figure.findobj(SubFigure):
        part.bbox_relative.set_points(part.bbox_relative.get_points().round(9))
    for axes in figure.findobj(Axes):
        left, bottom, width, height = (round(value, 9) for value in axes.get_position().bounds)
        axes.set_position((left, bottom, width, height))
