"""What `inspect_encoding` says, against numbers worked out by hand or stated in the papers."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pe_cli.config import resolve
from pe_cli.encodings import registry
from pe_cli.encodings.base import EncodingOptions, ModelSpec, PositionEncoding, Sees
from pe_cli.encodings.views import Block, Positions
from pe_cli.errors import ConfigError, PositionRangeError, StrategyRefused
from pe_cli.inspection import MOST_ENTRIES, inspect_encoding, static
from pe_cli.inspection_tables import LISTED, Table, readable

SMALL = {"model.d_model": "16", "model.n_heads": "2", "model.n_layers": "2", "training.length": "8"}


def facts(
    encoding: str,
    length: int = 8,
    *,
    at_length: int | None = None,
    strategy: str = "none",
    text: str | None = None,
    **sets: object,
) -> dict[str, Any]:
    overrides = {key.replace("__", "."): str(value) for key, value in sets.items()}
    experiment = resolve(None, {"encoding": encoding, **overrides}).experiment
    return inspect_encoding(experiment, length, at_length=at_length, strategy=strategy, text=text)


def small(encoding: str, length: int = 8, **others: Any) -> dict[str, Any]:
    sizes = {key.replace(".", "__"): value for key, value in SMALL.items()}
    return facts(encoding, length, **{**sizes, **others})


# --- laws for every encoding


@pytest.mark.parametrize("name", registry.names())
def test_facts_are_strict_json_of_the_promised_shapes(name: str) -> None:
    found = small(name)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert list(found)[:6] == ["encoding", "family", "options", "parameters", "reference", "sees"]
    assert found["encoding"] == name
    if "table" in found:
        assert (len(found["table"]), len(found["table"][0])) == (8, 16)
    for head in found.get("bias", []):
        assert [[j for j, entry in enumerate(row) if entry is not None] for row in head] == [
            list(range(i + 1)) for i in range(8)
        ]
    mask = found.get("mask", [])
    for head in mask if mask and isinstance(mask[0][0], list) else [mask]:
        assert all(not entry for i, row in enumerate(head) for entry in row[i + 1 :])
    assert all(isinstance(cell, str) for table in readable(found) for row in table.rows for cell in row.values())


@pytest.mark.parametrize("name", registry.names())
def test_a_strategy_up_to_the_training_length_changes_nothing(name: str) -> None:
    """One without meaning for the encoding is refused there, as it is beyond."""
    try:
        found = small(name, strategy="interpolate", at_length=8)
    except StrategyRefused as refusal:
        with pytest.raises(StrategyRefused, match=re.escape(str(refusal))):
            small(name, strategy="interpolate", at_length=16)
    else:
        note = {"strategy_note": "interpolate changes nothing up to the training length 8"}
        assert found == small(name) | {"strategy": "interpolate"} | note


# --- parameters


def test_only_a_learned_table_has_parameters() -> None:
    counts = {name: facts(name)["parameters"] for name in ("none", "rope", "alibi", "sinusoidal", "learned")}
    assert counts == {"none": 0, "rope": 0, "alibi": 0, "sinusoidal": 0, "learned": 128 * 128}
    assert facts("learned", training__length=32, model__d_model=64)["parameters"] == 32 * 64
    assert facts("t5")["parameters"] == 32 * 4


# --- slopes and biases

EIGHT = [2.0**-head for head in range(1, 9)]


@pytest.mark.parametrize(
    ("heads", "slopes"),
    [
        (1, [0.00390625]),
        (3, [0.0625, 0.00390625, 0.25]),
        (4, [0.25, 0.0625, 0.015625, 0.00390625]),
        (6, [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125]),
        (12, [*EIGHT, 0.70710678, 0.35355339, 0.1767767, 0.08838835]),
    ],
)
def test_alibi_slopes(heads: int, slopes: list[float]) -> None:
    found = facts("alibi", model__n_heads=heads, model__d_model=12 * heads)["slopes"]
    assert found == pytest.approx(slopes, rel=1e-7)


def test_alibi_row_is_the_slope_times_minus_the_distance() -> None:
    found = facts("alibi", 5)
    assert found["positions"] == [0, 1, 2, 3, 4]
    for slope, head in zip([0.25, 0.0625, 0.015625, 0.00390625], found["bias"], strict=True):
        for i, row in enumerate(head):
            assert row == [slope * (j - i) if j <= i else None for j in range(5)]
    assert math.copysign(1, found["bias"][0][0][0]) == 1  # no negative zero


def test_a_bias_is_shown_where_the_text_does_not_matter() -> None:
    assert {name for name in ("alibi", "t5", "mix", "shaw", "fox") if "bias" in facts(name)} == {
        "alibi",
        "t5",
        "mix",
    }


class StartsAtZero(PositionEncoding):
    """A term that depends on the text, by parameters that are zero before training."""

    sees = Sees.NOTHING

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(EncodingOptions(), spec)
        self.weight = nn.Parameter(torch.zeros(spec.d_head))

    def bias(self, block: Block) -> Tensor:
        return (block.q @ self.weight)[..., None]


def test_a_term_that_starts_at_zero_is_not_taken_for_a_fixed_one() -> None:
    spec = ModelSpec(8, 2, 1, 4, "ab", 4)
    with torch.no_grad():
        assert static("bias", StartsAtZero(spec), spec, Positions.sequential(4), 0) is None


# --- frequencies


def test_rope_frequencies_of_a_head_of_eight() -> None:
    found = facts("rope", model__d_model=32, model__n_heads=4)
    assert found["inverse_frequencies"] == pytest.approx([1, 0.1, 0.01, 0.001], rel=1e-12)
    turns = [2 * math.pi, 20 * math.pi, 200 * math.pi, 2000 * math.pi]
    assert found["wavelengths"] == pytest.approx(turns, rel=1e-12)
    assert found["incomplete_wavelengths"] == 2  # 628 and 6283 ids, in 128 characters
    longer = facts("rope", model__d_model=32, model__n_heads=4, training__length=1000)
    assert longer["incomplete_wavelengths"] == 1


def test_a_frequency_of_zero_is_no_wave_that_fails_to_complete_a_turn() -> None:
    found = facts("p_rope", model__d_model=32, model__n_heads=4)
    assert found["inverse_frequencies"] == pytest.approx([1, 0.1, 0.01, 0], rel=1e-12)
    assert found["wavelengths"][3] is None
    assert found["incomplete_wavelengths"] == 1  # 628 ids, in 128 characters


def test_a_base_is_an_option() -> None:
    found = facts("rope", model__d_model=16, model__n_heads=4, encoding__base="100")
    assert found["inverse_frequencies"] == pytest.approx([1, 0.1], rel=1e-12)
    assert found["options"]["base"] == 100.0


def test_sinusoidal_row_of_position_one() -> None:
    found = facts("sinusoidal", 2, model__d_model=8, model__n_heads=1)
    waves = [f(angle) for angle in (1, 0.1, 0.01, 0.001) for f in (math.sin, math.cos)]
    assert found["table"][0] == [0, 1] * 4
    assert found["table"][1] == pytest.approx(waves, abs=1e-7)


# --- distances


def test_t5_buckets() -> None:
    found = facts("t5", 4097)
    distances = [0, 15, 16, 18, 19, 24, 32, 64, 127, 128, 4096]
    assert [found["buckets"][n] for n in distances] == [0, 15, 16, 16, 17, 19, 21, 26, 31, 31, 31]
    assert found["left_out"] == {"bias": "4 × 4097 × 4097"}


def test_distances_from_the_clip_on_share_a_row() -> None:
    rows = facts("shaw", 4097, encoding__clip=16)["rows"]
    assert (rows[15], rows[16], rows[17], rows[4096]) == (15, 16, 16, 16)


# --- masks and layers


def test_a_window_is_a_band_under_the_diagonal() -> None:
    mask = small("sliding_window", encoding__window=3)["mask"]
    assert mask == [[max(0, i - 2) <= j <= i for j in range(8)] for i in range(8)]


def test_layers_are_named_where_not_all_act() -> None:
    pattern = "{name: layered, pattern: [none, alibi]}"
    found = facts(pattern, 4, model__n_layers=4)
    assert found["layers"] == {"bias": [1, 3]}
    assert found["bias"][0][3][0] == -0.75
    assert "layers" not in facts("alibi", 4)


# --- ids and strategies


def test_positions_under_a_strategy() -> None:
    squeezed = small("rope", at_length=15, strategy="interpolate")
    assert squeezed["positions"] == pytest.approx([p * 7 / 14 for p in range(15)], abs=1e-6)
    assert (squeezed["length"], squeezed["train_length"]) == (15, 8)
    assert small("learned", 11, strategy="Repeat-Last")["positions"] == [0, 1, 2, 3, 4, 5, 6, 7, 7, 7, 7]


def test_numbers_are_of_the_ids_that_a_strategy_gives() -> None:
    found = small("anchored", 12, strategy="repeat_last", encoding__every=7)
    assert found["anchors"] == [0, 7, 8, 9, 10, 11], "their ids are 0 and 7"
    mixed = small("{name: mix, parts: [factored, t5]}", 11, strategy="repeat_last")
    assert mixed["factored.row_of_id"] == [0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2]
    assert mixed["factored.column_of_id"] == [0, 1, 2, 0, 1, 2, 0, 1, 1, 1, 1]
    assert "row_of_id" not in small("factored", 11, strategy="interpolate")


def test_a_flattened_bias_under_a_strategy() -> None:
    found = small("alibi", at_length=15, strategy="interpolate")
    assert found["bias"][0][14][0] == pytest.approx(-7 * 2**-4, rel=1e-6)


def test_refusals() -> None:
    with pytest.raises(StrategyRefused, match="alibi"):
        small("alibi", at_length=16, strategy="repeat_last")
    with pytest.raises(ConfigError, match="did you mean 'interpolate'"):
        small("rope", strategy="interpolat")
    with pytest.raises(PositionRangeError, match="8 rows"):
        small("learned", 9)
    for length in (0, -1, 2**16 + 1):
        with pytest.raises(ConfigError, match=str(length)):
            small("rope", length)
    with pytest.raises(ConfigError, match="empty"):
        small("rope", text="")


def test_ids_read_from_the_text() -> None:
    found = small("bipe", 7, text="ab.cde\n")
    assert found["text"] == "ab.cde\n"
    assert found["positions"] == [[0, 1, 2, 0, 1, 2, 3], [0, 0, 0, 1, 1, 1, 1]]
    assert "text" not in small("rope", 7, text="ab.cde\n")


def test_parts_with_the_same_ids_share_one_list() -> None:
    assert facts("mix", 3)["positions"] == [0, 1, 2]
    parts = facts("{name: mix, parts: [bipe, t5]}", 4, text="a.b.")["positions"]
    assert parts == [[0, 1, 0, 1], [0, 0, 1, 1], [0, 1, 2, 3]]


# --- for people


def by_title(tables: list[Table], title: str) -> Table:
    return next(table for table in tables if table.title.startswith(title))


def test_readable_shows_single_values_first() -> None:
    first = readable(facts("alibi"))[0]
    assert {row["fact"]: row["value"] for row in first.rows} == {
        "encoding": "alibi",
        "family": "relative bias",
        "options": "max_exponent: 8; slopes: fixed",
        "parameters": "0",
        "reference": "Press, Smith and Lewis 2022, arXiv:2108.12409",
        "sees": "distances only",
        "length": "8",
        "train length": "128",
        "d model": "128",
        "n heads": "4",
        "n layers": "4",
        "strategy": "none",
        "positions": "0 to 7",
    }


def test_readable_shows_the_corner_of_a_big_matrix() -> None:
    tables = readable(facts("alibi", 20))
    bias = by_title(tables, "bias, head 1")
    assert bias.title == "bias, head 1 (20 × 20)"
    assert bias.columns == ["", *"01234567", "…"]
    assert len(bias.rows) == 9
    assert bias.rows[7]["0"] == "-0.4375"
    assert bias.rows[0]["1"] == "–"
    assert set(bias.rows[8].values()) == {"…"}
    assert by_title(readable(facts("alibi", 4)), "bias").columns == ["", *"0123"]


def test_readable_joins_equal_neighbours() -> None:
    buckets = by_title(readable(facts("t5", 4097)), "buckets")
    assert len(buckets.rows) == 32
    assert buckets.rows[16] == {"distance": "16–18", "buckets": "16"}
    assert buckets.rows[-1] == {"distance": "113–4096", "buckets": "31"}


def test_readable_shows_text_beside_its_ids_and_masks_as_pictures() -> None:
    ids = by_title(readable(small("bipe", 4, text="a.\nb")), "positions")
    assert ids.rows[2] == {"character": "2", "text": "'\\n'", "id 0": "0", "id 1": "1"}
    long = by_title(readable(small("bipe", 100)), "positions")
    assert (len(long.rows), long.rows[-1]["character"]) == (LISTED + 2, "99")
    mask = by_title(readable(small("sliding_window", 4, encoding__window=2)), "mask")
    assert [row["keys"] for row in mask.rows] == ["■···", "■■··", "·■■·", "··■■"]


def test_what_is_too_big_is_said_to_be_left_out() -> None:
    length = math.isqrt(MOST_ENTRIES // 4)
    assert "left_out" not in facts("none", length + 1)
    assert facts("alibi", length + 1)["left_out"] == {"bias": f"4 × {length + 1} × {length + 1}"}


def test_a_table_that_is_left_out_is_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.encoding_class("sinusoidal"), "embed", None)
    assert small("sinusoidal", 2**16, model__d_model=128)["left_out"] == {"table": "65536 × 128"}


def test_what_became_of_an_option_without_a_value() -> None:
    assert facts("strided", 4)["chosen"] == {"stride": round(math.sqrt(128))}
    assert facts("{name: sliding_window, encoding: none}", 4)["chosen"] == {"window": 64}
    assert "chosen" not in facts("{name: strided, stride: 3}", 4)
