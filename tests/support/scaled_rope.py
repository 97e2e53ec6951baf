"""Files with the frequencies of scaled rotary encodings, and what a strategy makes of rope in their place."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from driving import built
from reference_cases import Case, agree, as_tensor
from torch import Tensor

from pe_cli import strategies


def numbers(group: Mapping[str, Any], strategy: Mapping[str, Any], train_length: int, length: int) -> dict[str, Tensor]:
    """Those of a head of rope with the size and base of a group, at a length."""
    rope = {"name": "rope", "base": group["base"]}
    encoding = built(rope, d_model=group["head_dim"], n_heads=1, train_length=train_length)
    return strategies.apply(dict(strategy), encoding, train_length, length).numbers(length)


def compare(
    case: Case,
    group: Mapping[str, Any],
    strategy: Mapping[str, Any],
    train_length: int,
    length: int | None = None,
    key: str = "inv_freq",
) -> None:
    """Frequencies of a group, and the factor of attention where it has one. The length: s times the trained one."""
    longer = math.ceil(train_length * group["factor"]) if length is None else length
    found = numbers(group, strategy, train_length, longer)
    agree(found["inverse_frequencies"], as_tensor(group[key]), rel=case.tolerance("rel"))
    if "attention_factor" in group:
        factor = found.get("attention_factor", as_tensor(1.0))
        agree(factor, as_tensor(group["attention_factor"]), rel=case.tolerance("rel"))
