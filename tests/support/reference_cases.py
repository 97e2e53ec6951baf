"""Files with numbers of published implementations, and how they are compared.

They lie in tests/reference, or in the folder that PE_REFERENCE_DIR names. Sizes, options and tolerances are
read from them. Each test file states a comparison for every field of `expected`, or why there is none.
"""

from __future__ import annotations

import json
import os
import re
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

    @property
    def names(self) -> set[str]:
        """What it may be asked for by."""
        return {self.path.stem, str(self.at("id"))}

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

    def limits(self) -> dict[str, float]:
        """What `agree` takes, where a file may say 'exact' for all of its numbers."""
        stated = self.at("tolerance")
        return {} if stated == "exact" else {name: float(stated[name]) for name in ("abs", "rel") if name in stated}


Comparison = Callable[[Case], None]
SizedComparison = Callable[[Case, str], None]
"""Of a case and the whole name of a field."""


def all_cases() -> list[Case]:
    """Every file of the folder."""
    return [Case(path) for path in sorted(folder().glob("*.json"))]


def cases(name: str) -> list[Case]:
    """The files of one id. In the folder of the repository there must be one."""
    found = [case for case in all_cases() if name in case.names]
    if not found and folder() == OWN_FOLDER:
        raise FileNotFoundError(f"{OWN_FOLDER} has no file '{name}.json'")
    return found


def folder() -> Path:
    return Path(os.environ.get("PE_REFERENCE_DIR") or OWN_FOLDER)


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


def sized_fields(name: str, not_compared: Mapping[str, str]) -> list[Any]:
    """As `fields`, where names contain sizes: T12 with an entry `nearest` is the field 'T12.nearest', listed as
    'T#.nearest'."""
    return [
        pytest.param(case, field, id=f"{case.path.stem}-{field}")
        for case in cases(name)
        for key, value in case.at("expected").items()
        for field in ([f"{key}.{part}" for part in value] if isinstance(value, dict) else [key])
        if without_sizes(field) not in not_compared
    ]


def run_sized(comparisons: Mapping[str, SizedComparison], case: Case, field: str) -> None:
    listed = without_sizes(field)
    assert listed in comparisons, f"{case.path.name}: '{listed}' is neither compared nor listed with a reason"
    comparisons[listed](case, field)


def without_sizes(field: str) -> str:
    return re.sub(r"\d+", "#", field)


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
