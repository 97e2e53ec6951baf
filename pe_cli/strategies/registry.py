"""Strategies by name: every module of this package without a leading underscore registers one."""

from __future__ import annotations

from typing import Any, ClassVar

from pe_cli.encodings.base import EncodingOptions, PositionEncoding
from pe_cli.errors import StrategyRefused
from pe_cli.named import Registry


class StrategyOptions(EncodingOptions):
    """The options of one strategy, as a block of YAML states them, within the limits of those of encodings."""


class Strategy:
    """What is done with a trained encoding at lengths beyond the trained one. It never changes weights."""

    name: ClassVar[str]
    reference: ClassVar[str]
    needs: ClassVar[str]
    whole: ClassVar[bool] = False
    """Whether a composition is changed as one. Else each simple encoding in it is, by itself."""

    class Options(StrategyOptions):
        pass

    def __init__(self, options: Any) -> None:
        self.options = options

    def change(self, encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
        """The encoding that is used at `length`, which is above `train_length`.

        Raises StrategyRefused, with the reason in words, where it has no meaning.
        """
        raise NotImplementedError

    def __call__(
        self, encoding: PositionEncoding, train_length: int, length: int, refusals: dict[str, str] | None = None
    ) -> PositionEncoding:
        """The very same object up to the training length, and for a simple encoding up to its own.

        Parts of a composition that refuse stay as they are, and are put into `refusals` with the reason; where all
        refuse, StrategyRefused says why.
        """
        if length <= train_length:
            return encoding
        if self.whole:
            return self.change(encoding, train_length, length)

        def changed(part: PositionEncoding) -> PositionEncoding:
            trained = part.trained_length(train_length)
            try:
                return part if length <= trained else self.change(part, trained, length)
            except StrategyRefused as refusal:
                if refusals is not None:
                    refusals[part.name] = str(refusal)
                raise

        return encoding.map(changed)

    @classmethod
    def summary(cls) -> str:
        """The first line of the docstring."""
        return (cls.__doc__ or "").strip().splitlines()[0]


_strategies: Registry[Strategy] = Registry(__package__, "strategies")
strategy_class = _strategies.find


def register(cls: type[Strategy]) -> type[Strategy]:
    """Make a class known by its `name`."""
    return _strategies.add(cls.name, cls)


def catalogue() -> list[type[Strategy]]:
    """All strategies: `none` first, then by name."""
    return sorted(_strategies.classes.values(), key=lambda strategy: (strategy.name != "none", strategy.name))


def names() -> list[str]:
    return [strategy.name for strategy in catalogue()]
