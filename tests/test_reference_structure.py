"""Published numbers for masks, ids and strategies: the files say which program they came from.

PE_REFERENCE_DIR may name another folder of such files. Sizes, options and tolerances are read from them.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pe_cli import strategies
from pe_cli.attention import attend
from pe_cli.encodings import registry
from pe_cli.encodings.base import ModelSpec, PositionEncoding
from pe_cli.encodings.views import Block, LayerView, Positions
from pe_cli.strategies.rerope import ReRoPE

FOLDER = Path(os.environ.get("PE_REFERENCE_DIR") or Path(__file__).parent / "reference")


def reference(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def numbers(values: list[Any]) -> Tensor:
    """float64; null, a masked entry, becomes nan."""

    def known(value: Any) -> Any:
        if isinstance(value, list):
            return [known(entry) for entry in value]
        return float("nan") if value is None else value

    return torch.tensor(known(values), dtype=torch.float64)


def assert_known(found: Tensor, expected: Tensor, tolerance: dict[str, float] | str) -> None:
    """Equal wherever the file has a number."""
    assert found.shape == expected.shape
    there = ~expected.isnan()
    limits = {"abs": 0.0, "rel": 0.0} if isinstance(tolerance, str) else {"abs": 0.0, "rel": 0.0, **tolerance}
    torch.testing.assert_close(found.double()[there], expected[there], atol=limits["abs"], rtol=limits["rel"])


def whole_block(encoding: PositionEncoding, layer: LayerView) -> Block:
    q, k = encoding.rotate(layer)
    everything = slice(0, q.shape[2])
    return Block(layer, encoding.prepare(layer), q, k, everything, everything, encoding)


# ---- bipe


def bipe_of(data: dict[str, Any], **options: Any) -> tuple[PositionEncoding, Tensor]:
    """An alphabet in which the ids of the file's separators stand for two characters that end a segment."""
    tokens = torch.tensor(data["inputs"]["ids"])
    alphabet = "".join(chr(0x4E00 + index) for index in range(int(tokens.max()) + 1))
    separators = "".join(alphabet[index] for index in data["hyperparameters"]["separators"])
    n_heads = data["expected"]["alibi_x96"]["H"]
    spec = ModelSpec(4 * n_heads, n_heads, 1, tokens.shape[1], alphabet, tokens.shape[1])
    return registry.build({"name": "bipe", "separators": separators, **options}, spec), tokens


def test_reference_bipe_ids() -> None:
    data = reference("bipe")
    for key, expected in data["expected"].items():
        if not key.startswith("train_scale_"):
            continue
        encoding, tokens = bipe_of(data, max_offset=int(key.removeprefix("train_scale_")) - 1)
        offset, segment = encoding.positions(tokens).parts
        assert_known(offset.ids, numbers(expected["intra"]), data["tolerance"])
        assert_known(segment.ids, numbers(expected["segment"]), data["tolerance"])


def test_reference_bipe_alibi_between_segments() -> None:
    data = reference("bipe")
    expected = data["expected"]["alibi_x96"]
    encoding, tokens = bipe_of(data, relative="alibi", segment_scale=96)
    q = torch.zeros(1, expected["H"], tokens.shape[1], 4)
    layer = LayerView(0, torch.zeros(1, tokens.shape[1], 4), q, q, encoding.positions(tokens[:1]))
    bias = encoding.dense_bias(whole_block(encoding, layer))
    assert bias is not None
    assert_known(bias[0], numbers(expected["bias_row0"]), data["tolerance"])
    # the published term looks at keys only; rows differ from ours by a constant, which softmax cannot tell
    by_key = numbers(expected["key_only_bias"])[0]
    assert_known(bias[0, :, -1] - bias[0, :, -1, :1], by_key - by_key[:, :1], data["tolerance"])


# ---- masks


def mask_of(block: dict[str, Any], length: int) -> Tensor:
    encoding = registry.build(block, ModelSpec(4, 1, 1, length, "ab", length))
    q = torch.zeros(1, 1, length, 4)
    layer = LayerView(0, torch.zeros(1, length, 4), q, q, Positions.sequential(length))
    mask = encoding.mask(whole_block(encoding, layer))
    assert mask is not None
    return mask.tril()


def test_reference_sparse_masks() -> None:
    data = reference("sparse_masks")
    length, compared = data["hyperparameters"]["T"], 0
    for key, expected in data["expected"].items():
        kind, _, size = key.removesuffix("_own_formula").partition("_")
        if kind in ("local", "strided", "union"):
            block = {"name": "strided", "encoding": "none", "pattern": kind, "stride": int(size)}
            assert_known(mask_of(block, length), numbers(expected), data["tolerance"])
            compared += 1
        if kind == "local":
            block = {"name": "sliding_window", "encoding": "none", "window": int(size)}
            assert_known(mask_of(block, length), numbers(expected), data["tolerance"])
    assert compared >= 3


# ---- rerope


@pytest.mark.parametrize("log_n", [True, False])
def test_reference_rerope(log_n: bool) -> None:
    data = reference("rerope")
    sizes, expected = data["hyperparameters"], data["expected"]
    n_heads, d_head, length = sizes["H"], sizes["d_head"], sizes["T"]
    trained = sizes["training_length"]
    spec = ModelSpec(n_heads * d_head, n_heads, 1, trained, "ab", trained)
    encoding = ReRoPE(registry.build("rope", spec), sizes["window"], trained if log_n else None)
    q, k, v = (numbers(data["inputs"][name]).movedim(0, 1)[None] for name in ("q", "k", "v"))
    layer = LayerView(0, torch.zeros(1, length, n_heads * d_head), q, k, Positions.sequential(length))
    logits = whole_block(encoding, layer).scores[0]
    assert_known(logits, numbers(expected["logits" if log_n else "logits_without_logn"]), data["tolerance"])
    if log_n:
        output = attend(encoding, layer, v)[0].movedim(0, 1)
        assert_known(output, numbers(expected["output"]), data["tolerance"])


# ---- interpolation of a learned table


def test_reference_table_interpolation() -> None:
    data = reference("table_interpolation")
    rows, width = data["hyperparameters"]["L"], data["hyperparameters"]["D"]
    encoding = registry.build("learned", ModelSpec(width, 1, 1, rows, "ab", rows)).double()
    (table,) = encoding.parameters()
    assert isinstance(table, nn.Parameter)
    table.data.copy_(numbers(data["parameters"]["W"]))
    # ids are float32: a fraction between two rows is off by as much as an id of size L is rounded
    rounding = torch.finfo(torch.float32).eps * rows * table.detach().diff(dim=0).abs().max().item()
    tolerance = {"abs": max(data["tolerance"]["abs"], rounding)}
    for key, expected in data["expected"].items():
        length = int(key.removeprefix("T"))
        changed = strategies.apply("interpolate", encoding, rows, length)
        positions = changed.positions(torch.zeros(1, length, dtype=torch.long))
        found = changed.embed(torch.zeros(1, length, width, dtype=torch.float64), positions)[0].detach()
        assert_known(found, numbers(expected["linear_align_corners_True"]), tolerance)
