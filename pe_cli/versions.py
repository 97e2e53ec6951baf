"""What a result was made with."""

from __future__ import annotations

import platform
from importlib.metadata import version

from pe_cli import __version__


def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that decide numbers."""
    libraries = {name: version(name) for name in ("torch", "numpy", "scipy", "safetensors")}
    return {"pe": __version__, "python": platform.python_version(), **libraries}
