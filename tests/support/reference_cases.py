"""Files with numbers of published implementations, and how they are compared.

They lie in tests/reference, or in the folder that PE_REFERENCE_DIR names. Sizes, options and tolerances are
read from them. Each test file states a comparison for every field of `expected`, or why there is none.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

OWN_FOLDER = Path(__file__).parent.parent / "reference"


@dataclass(frozen=True)
class Case:
    """One file."""

    path: Path

    @cached_property
    def content(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8"))
        return content

    def at(self, dotted: str) -> Any:
        value: Any = self.content
        for key in dotted.split("."):
            value = value[key]
        return value

    def size(self, name: str) -> int:
        return int(self.at(f"hyperparameters.{name}"))

    def tensor(self, dotted: str) -> Tensor:
        """Nested lists in float64; what is null there is NaN here."""
        return as_tensor(self.at(dotted))

    def tolerance(self, name: str = "abs") -> float:
        return float(self.at(f"tolerance.{name}"))


Comparison = Callable[[Case], None]


def cases(name: str) -> list[Case]:
    """The files of one id. In the folder of the repository there must be one."""
    folder = Path(os.environ.get("PE_REFERENCE_DIR") or OWN_FOLDER)
    files = [Case(path) for path in sorted(folder.glob("*.json"))]
    found = [case for case in files if name in (case.path.stem, case.at("id"))]
    if not found and folder == OWN_FOLDER:
        raise FileNotFoundError(f"{folder} has no file '{name}.json'")
    return found


def fields(name: str, not_compared: Mapping[str, str]) -> list[Any]:
    """A parameter (case, field) for every field of `expected` that is not listed as left out."""
    return [
        pytest.param(case, field, id=f"{case.path.stem}-{field}")
        for case in cases(name)
        for field in case.at("expected")
        if field not in not_compared
    ]


def run(comparisons: Mapping[str, Comparison], case: Case, field: str) -> None:
    assert field in comparisons, f"{case.path.name}: '{field}' is neither compared nor listed with a reason"
    comparisons[field](case)


def as_tensor(nested: Any) -> Tensor:
    def filled(item: Any) -> Any:
        if isinstance(item, list):
            return [filled(part) for part in item]
        return float("nan") if item is None else item

    return torch.tensor(filled(nested), dtype=torch.float64)


def agree(ours: Tensor, theirs: Tensor, *, abs: float = 0.0, rel: float = 0.0) -> None:
    """Equal shapes, and equal numbers wherever theirs is one."""
    assert ours.shape == theirs.shape
    known = ~theirs.isnan()
    assert known.any()
    torch.testing.assert_close(ours.detach().double()[known], theirs[known], atol=abs, rtol=rel)
