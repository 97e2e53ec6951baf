"""The cases that every law is checked on: each encoding by its defaults, then options and compositions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from pe_cli.attention import cut
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

    def model(self, seed: int = 1, max_position: int = TRAIN_LENGTH) -> Transformer:
        """With every parameter moved a little: a table that starts at zero matters too."""
        model = new_model(replace(self.spec, max_position=max_position), self.block, seed)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
        return model


def window(encoding: str, size: int) -> dict[str, Any]:
    return {"name": "sliding_window", "encoding": encoding, "window": size}


def strided(encoding: str, pattern: str) -> dict[str, Any]:
    return {"name": "strided", "encoding": encoding, "pattern": pattern}


def sparse(name: str, encoding: Any, **options: Any) -> dict[str, Any]:
    return {"name": name, "encoding": encoding, **options}


def bipe(relative: str, scale: float) -> dict[str, Any]:
    return {"name": "bipe", "relative": relative, "segment_scale": scale}


SIZES: dict[str, dict[str, int]] = {"layered": {"n_layers": 4}, "rope_partial": {"d_head": 8}}
"""What the defaults of an encoding need, if other than the defaults of a case."""

CASES = {name: Case(name, **SIZES.get(name, {})) for name in registry.names()} | {
    "alibi, 6 heads": Case("alibi", n_heads=6),
    "alibi, learned": Case({"name": "alibi", "slopes": "learned"}),
    "fire, shared": Case({"name": "fire", "layers": "shared"}),
    "fire, early threshold": Case({"name": "fire", "threshold": 1.5}),
    "log_cpb, linear": Case({"name": "log_cpb", "spacing": "linear", "activation": "silu", "hidden_layers": 2}),
    "window, fire": Case(window("fire", 6)),
    "strided, fire": Case(strided("fire", "union")),
    "strided, log_cpb": Case(strided("log_cpb", "union")),
    "mix, kerple_log and fire": Case({"name": "mix", "parts": ["kerple_log", "fire"]}),
    "mix, retnet_decay and rope": Case({"name": "mix", "parts": ["retnet_decay", "rope"]}),
    "rope, interleaved": Case({"name": "rope", "layout": "interleaved"}),
    "rope_partial, interleaved": Case({"name": "rope_partial", "fraction": 0.5, "layout": "interleaved"}),
    "rope_partial, nothing": Case({"name": "rope_partial", "fraction": 0}),
    "p_rope, interleaved": Case({"name": "p_rope", "p": 0.5, "layout": "interleaved"}, d_head=8),
    "xpos, fast, halves": Case({"name": "xpos", "scale_base": 16, "layout": "halves"}),
    "hope, low base": Case({"name": "hope", "base": 10}, d_head=8),
    "fope, several mixed": Case({"name": "fope", "base": 10, "others": "unchanged"}, d_head=12),
    "fope, more kept than mixed": Case({"name": "fope", "base": 2, "layout": "interleaved", "gain": 0.6}, d_head=8),
    "pope, odd head": Case({"name": "pope", "initial_phase": "uniform"}, n_heads=2, d_head=5),
    "rope_evq, left": Case({"name": "rope_evq", "grid": "left", "tau": 0}),
    "window, xpos": Case(window("xpos", 5)),
    "window, pope": Case(window("pope", 5)),
    "mix, pope and alibi": Case({"name": "mix", "parts": ["pope", "alibi"]}),
    "mix, pope and shaw": Case({"name": "mix", "parts": ["shaw", "pope"]}),
    "layers, pope and xpos": Case({"name": "layered", "pattern": ["pope", "xpos", "none"]}, n_layers=3),
    "deberta, same row": Case({"name": "deberta", "p2c": "same_row"}),
    "deberta, log, no p2c": Case({"name": "deberta", "buckets": "log", "clip": 6, "max_distance": 12, "p2c": "off"}),
    "strided, deberta": Case(strided("deberta", "strided")),
    "rel_proj, short curves": Case({"name": "rel_proj", "basis": 3, "max_distance": 7}),
    "strided, rel_proj": Case(strided("rel_proj", "strided")),
    "transformer_xl, clamped": Case({"name": "transformer_xl", "clamp": 6}),
    "strided, transformer_xl": Case(strided("transformer_xl", "strided")),
    "stick_breaking, remainder": Case({"name": "stick_breaking", "remainder": True}),
    "window of two": Case(window("none", 2)),
    "window, alibi": Case(window("alibi", 5)),
    "window, stick_breaking": Case(window("stick_breaking", 5)),
    "stick_breaking, own first": Case({"name": "stick_breaking", "nearest": "own", "remainder": True}),
    "strided, fox_row": Case(strided("fox_row", "strided")),
    "cope, few rows, scaled": Case({"name": "cope", "positions": 4, "term": "scaled"}),
    "strided, cope": Case(strided("cope", "strided")),
    "window, cope": Case(window("cope", 5)),
    "path, wide": Case({"name": "path", "rank": 2, "width": 5}),
    "mix, path and fox": Case({"name": "mix", "parts": ["path", "fox"]}),
    "strided, path": Case(strided("path", "strided")),
    "window, path": Case(window("path", 5)),
    "dape, t5, few columns": Case({"name": "dape", "encoding": "t5", "hidden": 3}),
    "dape, fire": Case({"name": "dape", "encoding": "fire"}),
    "dape, rope and kerple_log": Case({"name": "dape", "encoding": {"name": "mix", "parts": ["rope", "kerple_log"]}}),
    "dape around a window": Case({"name": "dape", "encoding": window("alibi", 5)}),
    "strided, dape": Case(strided("dape", "strided")),
    "mix, dape and rope": Case({"name": "mix", "parts": ["dape", "rope"]}),
    "dape_v2, kernel 5": Case({"name": "dape_v2", "encoding": "kerple_log", "kernel": 5}),
    "strided, dape_v2": Case(strided("dape_v2", "strided")),
    "window, dape_v2": Case(window("dape_v2", 4)),
    "dape_v2 around rope and fox": Case({"name": "dape_v2", "encoding": {"name": "mix", "parts": ["rope", "fox"]}}),
    "mix, dape_v2 and shaw": Case({"name": "mix", "parts": ["dape_v2", "shaw"]}),
    "strided, alibi": Case(strided("alibi", "union")),
    "strided, one set, none": Case(strided("none", "strided")),
    "strided, near set, fox": Case(strided("fox", "local")),
    "strided, by heads, t5": Case(strided("t5", "heads"), n_heads=3),
    "strided, shaw": Case(strided("shaw", "strided")),
    "strided window": Case({"name": "sliding_window", "encoding": strided("rope", "strided"), "window": 9}),
    "fixed, fox": Case(sparse("fixed", "fox", stride=5, summary=2)),
    "fixed, own block, stick_breaking": Case(sparse("fixed", "stick_breaking", pattern="block", stride=6)),
    "fixed, summaries, alibi": Case(sparse("fixed", "alibi", pattern="summary", stride=5, summary=2)),
    "fixed, by heads, shaw": Case(sparse("fixed", "shaw", pattern="heads", stride=6, subblocks=2), n_heads=5),
    "dilated, t5": Case(sparse("dilated", "t5", window=4, dilations=[3])),
    "dilated by head, fox": Case(sparse("dilated", "fox", window=3, dilations=[1, 2, 5])),
    "dilated, none": Case(sparse("dilated", "none", dilations=[1, 2])),
    "sinks, shaw": Case(sparse("sinks", "shaw", sinks=2, window=5)),
    "sinks, stick_breaking": Case(sparse("sinks", "stick_breaking", window=3)),
    "sinks around a dilated window": Case(sparse("sinks", sparse("dilated", "rope"), window=9)),
    "mix, learned and t5": Case({"name": "mix", "parts": ["learned", "t5"]}),
    "mix, alibi and window": Case({"name": "mix", "parts": ["alibi", window("none", 6)]}),
    "mix, two masks": Case({"name": "mix", "parts": [strided("fox", "strided"), window("rope", 11)]}),
    "mix, rope and shaw and alibi": Case({"name": "mix", "parts": ["rope", "shaw", "alibi"]}),
    "mix, stick_breaking and rope": Case({"name": "mix", "parts": ["stick_breaking", "rope"]}),
    "mix, sinks and fox": Case({"name": "mix", "parts": [sparse("sinks", "none"), "fox"]}),
    "mix, tupe and t5": Case({"name": "mix", "parts": ["tupe", "t5"]}),
    "mix around layers": Case({"name": "mix", "parts": ["sinusoidal", {"name": "layered", "pattern": ["t5", "none"]}]}),
    "layers, rope and none": Case({"name": "layered", "pattern": ["rope", "none"]}, n_layers=3),
    "layers, windows and shaw": Case(
        {"name": "layered", "pattern": [window("t5", 5), "shaw", window("t5", 5)]}, n_layers=3
    ),
    "layers, sparse and by content": Case(
        {"name": "layered", "pattern": [sparse("sinks", "fox"), sparse("fixed", "shaw"), sparse("dilated", "none")]},
        n_layers=3,
    ),
    "layers of a mix": Case({"name": "layered", "pattern": [{"name": "mix", "parts": ["rope", "t5"]}, "fox"]}),
    "anchored, learned": Case({"name": "anchored", "encoding": "learned", "every": 3}),
    "factored, uneven rows": Case({"name": "factored", "stride": 7}),
    "line_column in a window": Case(window("line_column", 6)),
    "tree, plain": Case({"name": "tree", "levels": "plain", "depth": 3}),
    "mix, sinusoidal and blocks of lines": Case(
        {"name": "mix", "parts": ["sinusoidal", {"name": "tree", "nesting": "indentation", "levels": "plain"}]}
    ),
    "mix, tree and abacus and rope": Case({"name": "mix", "parts": ["tree", "abacus", "rope"]}),
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


def blocks_of(rows: int) -> Callable[[slice, int], list[slice]]:
    """In the place of `attention.cut`: blocks of a given number of queries."""
    return lambda queries, most: cut(queries, rows)


def assert_causal(run: Callable[[Tensor], Tensor], length: int) -> None:
    before = text(length)
    logits = run(before)
    for place in (1, length // 2, length - 1):
        after = torch.cat((before[:, :place], (before[:, place:] + 1) % len(ALPHABET)), dim=1)
        changed = run(after)
        close(changed[:, :place], logits[:, :place], 1e-6)
        assert not torch.equal(changed[:, place:], logits[:, place:])
