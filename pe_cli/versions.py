"""What a result was made with."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import torch

from pe_cli import __version__


def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that decide numbers."""
    libraries = {name: version(name) for name in ("torch", "numpy", "scipy", "safetensors")}
    return {"pe": __version__, "python": platform.python_version(), **libraries}


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What differs of all that `now` names, and of its versions, each with both values."""
    one, other = (
        {**made, **(made["versions"] if isinstance(made.get("versions"), Mapping) else {})} for made in (before, now)
    )
    return [
        f"{key} {one.get(key)} before, {value} now"
        for key, value in other.items()
        if key != "versions" and one.get(key) != value
    ]


def machine(device: torch.device) -> str:
    """The device with its processor, and the versions that matter, in one line."""
    if device.type == "cuda":
        processor = torch.cuda.get_device_name(device)
    else:
        processor = f"{platform.machine()}, {os.cpu_count()} cores"
    return f"{device} ({processor}), Python {platform.python_version()}, torch {version('torch')}"
