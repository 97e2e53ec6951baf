"""What encodings with masks share: rules by token offset, and the keys that a block of queries can meet."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from pe_cli.errors import refused


def root_stride(train_length: int) -> int:
    """The length at which two steps of a factorised pattern cost least: √L, rounded."""
    return round(math.sqrt(train_length))


def halved(pattern: str, n_heads: int) -> int:
    """How many heads have the first of two sets alone: by `heads` half of them and a middle one, else none.

    SectionError where there is a single head to share out.
    """
    if pattern != "heads":
        return 0
    if n_heads == 1:
        raise refused("pattern", "heads gives half of the heads to each, and model.n_heads is 1; write pattern: union")
    return (n_heads + 1) // 2


def combined(pattern: str, sets: Mapping[str, Tensor], n_heads: int, half: int) -> Tensor:
    """Two sets of keys as a pattern has them: both, the first for `half` of the heads, or one by its name."""
    first, second = sets.values()
    match pattern:
        case "union":
            return first | second
        case "heads":
            of_first = torch.arange(n_heads, device=first.device) < half
            return torch.where(of_first.view(-1, *[1] * first.dim()), first, second)
        case _:
            return sets[pattern]


def local(offset: Tensor, size: int) -> Tensor:
    """Whether a key is one of the last `size` characters, the query's own included."""
    return offset < size


def periodic(offset: Tensor, stride: int) -> Tensor:
    """Whether a key lies a whole number of strides back; the query's own character does."""
    return offset % stride == 0


def first_and_local(offset: Tensor, key_index: Tensor, first: int, size: int) -> Tensor:
    """Whether a key is one of the `first` characters of the text or of the last `size`."""
    return local(offset, size) | (key_index < first)


def first_and_local_reach(queries: slice, first: int, size: int, device: torch.device) -> slice | Tensor:
    """The keys that `first_and_local` allows to any of the queries."""
    near = local_reach(queries, size)
    if near.start <= first:
        return slice(0, queries.stop)
    keys = torch.arange(queries.stop, device=device)
    return torch.cat((keys[:first], keys[near])) if first else near


def local_reach(queries: slice, size: int) -> slice:
    """The keys that `local` allows to any of the queries."""
    return slice(max(0, queries.start - size + 1), queries.stop)


def periodic_reach(queries: slice, stride: int, local_size: int, device: torch.device) -> slice | Tensor:
    """The keys that `periodic`, or `local` of `local_size` (0 for none), allows to any of the queries."""
    if queries.stop - queries.start >= stride:
        return slice(0, queries.stop)
    keys = torch.arange(queries.stop, device=device)
    to_last = queries.stop - 1 - keys
    wanted = to_last % stride < queries.stop - queries.start
    return keys[wanted | (keys > queries.start - local_size)]


def dilated_reach(queries: slice, size: int, dilations: Iterable[int], device: torch.device) -> slice | Tensor:
    """The keys at 0, δ, …, (size − 1) δ before any of the queries, for any of the dilations δ."""
    widest = max(dilations)
    start = max(0, queries.start - (size - 1) * widest)
    if queries.stop - queries.start >= widest:
        return slice(start, queries.stop)
    keys = torch.arange(start, queries.stop, device=device)
    wanted = torch.zeros_like(keys, dtype=torch.bool)
    for dilation in dilations:
        steps = ((queries.start - keys + dilation - 1) // dilation).clamp(min=0)  # to the first query that may see it
        wanted |= (steps < size) & (keys + steps * dilation < queries.stop)
    return keys[wanted]


def both_allowed(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    """What two masks allow together; None allows everything."""
    if first is None or second is None:
        return first if second is None else second
    return first & second


def meeting(first: slice | Tensor, second: slice | Tensor) -> slice | Tensor:
    """The keys in both of two reaches, in ascending order."""
    if isinstance(first, slice) and isinstance(second, slice):
        return slice(max(first.start, second.start), min(first.stop, second.stop))
    if isinstance(first, slice):
        return meeting(second, first)
    if isinstance(second, slice):
        return first[(first >= second.start) & (first < second.stop)]
    return first[torch.isin(first, second)]


def count(keys: slice | Tensor) -> int:
    """How many keys a reach has."""
    return keys.stop - keys.start if isinstance(keys, slice) else keys.numel()
