"""sequential: characters are counted from the start of the window."""

from __future__ import annotations

from pe_cli.encodings.base import PositionEncoding
from pe_cli.samplers.base import Sampler
from pe_cli.samplers.registry import register


@register
class Sequential(Sampler):
    r"""Characters are counted from the start of the window, in training and in evaluation.

    .. math:: p_t = t

    An encoding that reads its ids from the text reads them as ever.
    """

    name = "sequential"
    reference = "the common rule"

    def applied(self, encoding: PositionEncoding) -> PositionEncoding:
        return encoding
