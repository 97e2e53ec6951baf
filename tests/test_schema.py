"""The base of every block of keys: text is read by the annotation, and refused in one line."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import Field, PositiveFloat, ValidationError

from pe_cli.errors import SectionError
from pe_cli.schema import Section, problems


class Inner(Section):
    count: int = Field(3, ge=0)
    """How many."""
    factor: PositiveFloat | Literal["auto"] = "auto"
    window: int | None = None
    label: str | None = None
    weights: dict[str, float] = {}
    pair: tuple[int, float] = (1, 2.0)


class Outer(Section):
    inner: Inner = Inner()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"factor": "AUTO"}, {"factor": "auto"}),
        ({"factor": "1e1"}, {"factor": 10.0}),
        ({"window": "null"}, {"window": None}),
        ({"window": None}, {"window": None}),
        ({"window": "1_0"}, {"window": 10}),
        ({"label": "none"}, {"label": "none"}),
        ({"label": None}, {"label": None}),
        ({"label": ""}, {"label": ""}),
        ({"weights": {"a": "1"}}, {"weights": {"a": 1.0}}),
        ({"pair": "3, 4"}, {"pair": (3, 4.0)}),
        ({"count": 4.0}, {"count": 4}),
    ],
)
def test_text_is_read_by_the_annotation(given: dict[str, Any], expected: dict[str, Any]) -> None:
    block = Outer.model_validate({"inner": given}).inner
    assert {key: getattr(block, key) for key in expected} == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"factor": "-1"}, "inner.factor: must be greater than 0, not -1.0"),
        ({"factor": "fast"}, "inner.factor: must be auto or a number, not 'fast'"),
        ({"window": "wide"}, "inner.window: must be a whole number, not 'wide'"),
        ({"weights": {"a": "x"}}, "inner.weights: must be a finite number, not 'x'"),
        ({"weights": "x"}, "inner.weights: must be a block of keys, not 'x'"),
        ({"count": True}, "inner.count: must be a whole number, not True"),
        ({"count": 10**400}, "inner.count: must be a whole number of at most 9223372036854775807"),
        ({"count": None}, "inner.count: is empty: a whole number is wanted"),
        ({"cout": 1}, "inner.cout: unknown key; did you mean 'count'?"),
        ("x", "inner: must be a block of keys, not 'x'"),
    ],
)
def test_what_is_refused_is_said_in_one_line(given: Any, message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate({"inner": given})
    said = str(SectionError(problems(caught.value)))
    assert said.startswith(message)
    assert len(said.splitlines()) == 1


def test_keys_carry_their_description() -> None:
    assert Inner.model_fields["count"].description == "How many."
