"""window: queries that see the last characters only, as many as training showed."""

from __future__ import annotations

from pydantic import PositiveInt

from pe_cli.encodings.base import PositionEncoding
from pe_cli.strategies._masks import Lambda
from pe_cli.strategies.registry import Strategy, StrategyOptions, register


@register
class Window(Strategy):
    r"""Every query sees the last L characters, its own included.

    .. math:: A_i = \{j \le i : i - j < w\}

    Ids stay as they are, so that absolute encodings meet ids that were never trained all the same. Every layer
    looks back w − 1 characters from what the one below has gathered, so more than w characters reach a
    prediction. A flat loss under it shows no use of a longer context; see `truncate`.
    """

    name = "window"
    reference = "Beltagy, Peters and Cohan 2020, arXiv:2004.05150"
    needs = "nothing"
    whole = True

    class Options(StrategyOptions):
        window: PositiveInt | None = None
        """w. None: the training length."""

    options: Options

    def change(self, encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
        return Lambda(encoding, 0, self.options.window or train_length)
