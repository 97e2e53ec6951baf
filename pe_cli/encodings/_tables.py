"""What encodings with learned tables share: where a table ends, and what lies between two of its rows."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pe_cli.errors import PositionRangeError


def refuse_beyond(ids: Tensor, last: int, table: str) -> None:
    """PositionRangeError unless all ids are from 0 to `last`; `table` begins the message."""
    lowest, highest = (bound.item() for bound in torch.aminmax(ids))
    if lowest < 0 or highest > last:
        beyond = highest if highest > last else lowest
        raise PositionRangeError(f"{table}, for the ids 0 to {last}; the text asks for id {beyond:.10g}")


def between(ids: Tensor, last: int, row: Callable[[Tensor], Tensor]) -> Tensor:
    """The rows (…, D) of ids (…) from 0 to `last`; an id between whole numbers lies on the line between theirs."""
    below = ids.floor()
    whole = below.long()
    first, second = row(whole), row((whole + 1).clamp(max=last))
    return torch.lerp(first, second, (ids - below)[..., None].to(first.dtype))
