"""Inequalities as text: what each part means, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from pe_cli.errors import ConfigError
from pe_cli.inequalities import Inequality, Side, Term, inequality, one_of


def alone(*parts: Any, **more: Any) -> Side:
    return Side(((1, Term(*parts, **more)),))


@pytest.mark.parametrize(
    ("text", "left", "right", "less"),
    [
        ("loss(a, 64) < loss(b, 64)", alone("loss", "a", length=64), alone("loss", "b", length=64), True),
        ("gain(a,1_024)>0.9", alone("gain", "a", length=1024), Side((), 0.9), False),
        ("0.5 > margin(a, 64)", Side((), 0.5), alone("margin", "a", length=64), False),
        (
            "loss(alibi-2.b, 8) < loss(a + Repeat-Last, 8, Sliding) - 1e-2",
            alone("loss", "alibi-2.b", length=8),
            Side(((1, Term("loss", "a", strategy="repeat_last", length=8, protocol="sliding")),), -0.01),
            True,
        ),
        (
            "accuracy(a on sparse + yarn(beta_fast=4, beta_slow=2), 8) + 0.1 < 1",
            Side(((1, Term("accuracy", "a", "sparse", "yarn(beta_slow=2, beta_fast=4)", 8)),), 0.1),
            Side((), 1.0),
            True,
        ),
        (
            "1 - loss(a, 8) + loss(b, 8) - 0.5 < -loss(c, 8)",
            Side(((-1, Term("loss", "a", length=8)), (1, Term("loss", "b", length=8))), 0.5),
            Side(((-1, Term("loss", "c", length=8)),)),
            True,
        ),
        ("overfitting(a) > -0.5", alone("overfitting", "a"), Side((), -0.5), False),
    ],
)
def test_an_inequality_is_read(text: str, left: Side, right: Side, less: bool) -> None:
    assert inequality(text) == Inequality(text, left, right, less)


def test_spaces_and_line_ends_do_not_count() -> None:
    assert inequality("loss( a ,\n 8 )<loss(b,8)").left == inequality("loss(a, 8) < 1").left


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("loss(a, 8) = 3", "must be LEFT < RIGHT or LEFT > RIGHT"),
        ("1 < loss(a, 8) < 3", "must be LEFT < RIGHT or LEFT > RIGHT"),
        ("loss(a, 8) <= 3", "'= 3' cannot be read"),
        ("1 < 2", "no measured number"),
        ("loss(a, 8) 0.1 < 2", "'0.1' cannot be read"),
        ("loss(a, 8) * 2 < 2", "cannot be read"),
        ("loss(a, 8) < 1.2.3", "must be a finite number, not '1.2.3'"),
        ("los(a, 8) < 2", "'los' is no measure; did you mean 'loss'?"),
        ("loss(a) < 2", "write loss(a, LENGTH)"),
        ("loss(a, b) < 2", "the length must be a whole number, not 'b'"),
        ("loss(a b, 8) < 2", "'a b' is no run"),
        ("loss(a + yarm, 8) < 2", "did you mean 'yarn'?"),
        ("overfitting(a, 8) < 2", "write overfitting(a)"),
        ("neighbour_distance(a + ntk) < 2", "write neighbour_distance(a)"),
    ],
)
def test_what_cannot_be_meant_is_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        inequality(text)
    assert said in str(refusal.value)
    assert text in str(refusal.value)


def test_a_name_among_none_is_refused_with_no_empty_list() -> None:
    with pytest.raises(ConfigError, match=r"^there is no run 'a'; there are none$"):
        one_of("run", "a", {})
