"""Strategies by name: every module of this package without a leading underscore registers one."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import pe_cli.strategies
from pe_cli.encodings.base import PositionEncoding
from pe_cli.errors import ConfigError, canonical, nearest
from pe_cli.schema import shown

Change = Callable[[PositionEncoding, int, int], PositionEncoding]
"""(encoding, trained length L, evaluation length T > L) to the encoding that is used at T.

It never changes weights, and raises StrategyRefused, with the reason in words, where it has no meaning.
"""


@dataclass(frozen=True)
class Strategy:
    """A strategy as `pe list strategies` shows it."""

    name: str
    summary: str
    reference: str
    needs: str
    change: Change

    def __call__(self, encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
        """For one simple encoding: the very same object up to its trained length."""
        trained = encoding.trained_length(train_length)
        return encoding if length <= trained else self.change(encoding, trained, length)


_strategies: dict[str, Strategy] = {}


def register(*, reference: str, needs: str) -> Callable[[Change], Change]:
    """Make a function known by its own name; the first line of its docstring is the summary."""

    def known(change: Change) -> Change:
        name = change.__name__
        if name in _strategies and _strategies[name].change.__module__ != change.__module__:
            raise TypeError(f"two strategies are named '{name}'")
        summary = (change.__doc__ or "").strip().splitlines()[0]
        _strategies[name] = Strategy(name, summary, reference, needs, change)
        return change

    return known


@cache
def _import_all() -> None:
    for module in pkgutil.iter_modules(pe_cli.strategies.__path__):
        if not module.name.startswith("_") and module.name != "registry":
            importlib.import_module(f"pe_cli.strategies.{module.name}")


def catalogue() -> list[Strategy]:
    """All strategies: `none` first, then by name."""
    _import_all()
    return sorted(_strategies.values(), key=lambda strategy: (strategy.name != "none", strategy.name))


def names() -> list[str]:
    return [strategy.name for strategy in catalogue()]


def strategy(name: str) -> Strategy:
    """ConfigError with the nearest name where there is none."""
    _import_all()
    known = canonical(name)
    if known not in _strategies:
        raise ConfigError(f"strategy: {shown(name)} is not known{nearest(name, names())}")
    return _strategies[known]


def apply(name: str, encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
    """The encoding for evaluation at `length`; the very same object up to the training length.

    The parts of a composition are changed each by itself. Parts that refuse stay as they are; where all
    refuse, StrategyRefused says why. ConfigError for an unknown name.
    """
    chosen = strategy(name)
    if length <= train_length:
        return encoding
    return encoding.map(lambda part: chosen(part, train_length, length))
