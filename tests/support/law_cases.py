"""The cases that every law is checked on: each encoding by its defaults, then options and compositions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from pe_cli.encodings import registry
from pe_cli.encodings.base import ModelSpec
from pe_cli.model import Transformer, new_model

TRAIN_LENGTH = 20
ALPHABET = "\n .abc01()[]"


@dataclass(frozen=True)
class Case:
    block: Any
    n_heads: int = 4
    d_head: int = 4
    n_layers: int = 2

    @property
    def spec(self) -> ModelSpec:
        width = self.n_heads * self.d_head
        return ModelSpec(width, self.n_heads, self.n_layers, TRAIN_LENGTH, ALPHABET, TRAIN_LENGTH)

    def model(self, seed: int = 1) -> Transformer:
        """With every parameter moved a little: a table that starts at zero matters too."""
        model = new_model(self.spec, self.block, seed)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
        return model


def window(encoding: str, size: int) -> dict[str, Any]:
    return {"name": "sliding_window", "encoding": encoding, "window": size}


def strided(encoding: str, pattern: str) -> dict[str, Any]:
    return {"name": "strided", "encoding": encoding, "pattern": pattern}


def bipe(relative: str, scale: float) -> dict[str, Any]:
    return {"name": "bipe", "relative": relative, "segment_scale": scale}


CASES = {name: Case(name, n_layers=4 if name == "layered" else 2) for name in registry.names()} | {
    "alibi, 6 heads": Case("alibi", n_heads=6),
    "rope, interleaved": Case({"name": "rope", "layout": "interleaved"}),
    "rope, part of the head": Case({"name": "rope", "rotary_fraction": 0.5}),
    "stick_breaking, remainder": Case({"name": "stick_breaking", "remainder": True}),
    "window of two": Case(window("none", 2)),
    "window, alibi": Case(window("alibi", 5)),
    "window, stick_breaking": Case(window("stick_breaking", 5)),
    "strided, alibi": Case(strided("alibi", "union")),
    "strided, one set, none": Case(strided("none", "strided")),
    "strided, near set, fox": Case(strided("fox", "local")),
    "strided, by heads, t5": Case(strided("t5", "heads"), n_heads=3),
    "strided, shaw": Case(strided("shaw", "strided")),
    "strided window": Case({"name": "sliding_window", "encoding": strided("rope", "strided"), "window": 9}),
    "mix, learned and t5": Case({"name": "mix", "parts": ["learned", "t5"]}),
    "mix, alibi and window": Case({"name": "mix", "parts": ["alibi", window("none", 6)]}),
    "mix, two masks": Case({"name": "mix", "parts": [strided("fox", "strided"), window("rope", 11)]}),
    "mix, rope and shaw and alibi": Case({"name": "mix", "parts": ["rope", "shaw", "alibi"]}),
    "mix, stick_breaking and rope": Case({"name": "mix", "parts": ["stick_breaking", "rope"]}),
    "mix around layers": Case({"name": "mix", "parts": ["sinusoidal", {"name": "layered", "pattern": ["t5", "none"]}]}),
    "layers, rope and none": Case({"name": "layered", "pattern": ["rope", "none"]}, n_layers=3),
    "layers, windows and shaw": Case(
        {"name": "layered", "pattern": [window("t5", 5), "shaw", window("t5", 5)]}, n_layers=3
    ),
    "layers of a mix": Case({"name": "layered", "pattern": [{"name": "mix", "parts": ["rope", "t5"]}, "fox"]}),
    "bipe, alibi": Case(bipe("alibi", 0.5)),
    "bipe, window": Case({"name": "bipe", "relative": window("t5", 7), "absolute": "learned"}),
}


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Products this small lose more by sharing them out than they take."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def text(length: int, batch: int = 2, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(len(ALPHABET), (batch, length), generator=generator)


def close(actual: Tensor, expected: Tensor, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=tolerance)


def blocks_of(rows: int) -> Callable[[slice, int], Iterator[slice]]:
    """In the place of `attention.cut`: blocks of a given number of queries."""

    def cut(queries: slice, bytes_per_query: int) -> Iterator[slice]:
        for start in range(queries.start, queries.stop, rows):
            yield slice(start, min(start + rows, queries.stop))

    return cut


def assert_causal(run: Callable[[Tensor], Tensor], length: int) -> None:
    before = text(length)
    logits = run(before)
    for place in (1, length // 2, length - 1):
        after = torch.cat((before[:, :place], (before[:, place:] + 1) % len(ALPHABET)), dim=1)
        changed = run(after)
        close(changed[:, :place], logits[:, :place], 1e-6)
        assert not torch.equal(changed[:, place:], logits[:, place:])
