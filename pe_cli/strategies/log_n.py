"""log_n: logits that grow with the logarithm of the number of keys."""

from __future__ import annotations

import copy

from pe_cli.encodings.base import PositionEncoding
from pe_cli.errors import StrategyRefused
from pe_cli.strategies.registry import Strategy, register


@register
class LogN(Strategy):
    r"""Query i, counted from 0, is multiplied by a factor that grows beyond the trained length L.

    .. math:: q_i' = \max(1, \ln(i + 1) / \ln L)\; q_i

    It keeps the softmax from going flat over ever more keys. It is what `model.log_n` does, and a model that was
    trained with that has it already. Biases that do not depend on the query are not multiplied.
    """

    name = "log_n"
    reference = "Su 2021, kexue.fm/archives/8823; Chiang and Cholak 2022, arXiv:2202.12172"
    needs = "a model without it (model.log_n: false)"
    whole = True

    def change(self, encoding: PositionEncoding, train_length: int, length: int) -> PositionEncoding:
        if encoding.spec.log_n:
            raise StrategyRefused("log_n has no meaning for this model: it was trained with model.log_n and has it")
        changed = copy.copy(encoding)
        changed.log_n_length = train_length
        return changed
