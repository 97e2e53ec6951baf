"""Where queries look: numbers known by hand, and the same from the kernels that never show a weight."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from largest import LargestTensor
from stand_in import SPEC, cycle, evaluation_of, model_of, noise, quietly
from torch import Tensor

from pe_cli import attended, attention, samplers
from pe_cli.attended import COLUMNS, FIRST, MEASURES, Watching, measure, planned_chars, waves_in_words
from pe_cli.attention import attend
from pe_cli.encodings import registry
from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.registry import build
from pe_cli.encodings.views import LayerView
from pe_cli.model import new_model

LENGTHS = [16, 40]
SCORED = 8


def indifferent(block: Any) -> Any:
    """A model whose queries are zero: without a bias it looks at all allowed keys alike."""
    model = model_of(block)
    with torch.no_grad():
        for layer in model.blocks:
            layer.query.weight.zero_()  # type: ignore[union-attr]
    return model


def rows_of(model: Any, block: Any = "none", **settings: Any) -> list[dict[str, Any]]:
    evaluation = evaluation_of(model, noise(2000), block, lengths=LENGTHS, **{"strategies": ["none"], **settings})
    return measure(evaluation, quietly).rows


def test_even_attention_is_known_by_hand() -> None:
    """Query i has i + 1 keys, at a mean distance of i / 2."""
    rows = rows_of(indifferent("none"))
    assert [(row["length"], row["layer"], row["head"]) for row in rows] == [
        (length, layer, head) for length in LENGTHS for layer in (0, 1) for head in (0, 1)
    ]
    for row in rows:
        assert tuple(row) == COLUMNS
        last = range(row["length"] - SCORED, row["length"])
        assert row["entropy"] == pytest.approx(np.mean([math.log(i + 1) for i in last]), rel=1e-5)
        assert row["relative_entropy"] == pytest.approx(1.0, rel=1e-5)
        assert row["distance"] == pytest.approx(np.mean([i / 2 for i in last]), rel=1e-5)
        assert row["first"] == pytest.approx(np.mean([FIRST / (i + 1) for i in last]), rel=1e-5)
        assert row["attended"] == pytest.approx(1.0, rel=1e-5)
        assert row["queries"] == 6 * SCORED


def test_even_attention_in_a_window_is_known_by_hand() -> None:
    block = {"name": "sliding_window", "encoding": "none", "window": 5}
    for row in rows_of(indifferent(block), block):
        assert row["entropy"] == pytest.approx(math.log(5), rel=1e-5)
        assert row["relative_entropy"] == pytest.approx(1.0, rel=1e-5)
        assert row["distance"] == pytest.approx(2.0, rel=1e-5)
        assert row["first"] == 0


def test_a_single_key_has_no_relative_entropy() -> None:
    block = {"name": "sliding_window", "encoding": "none", "window": 1}
    for row in rows_of(indifferent(block), block):
        assert [row[key] for key in ("entropy", "relative_entropy", "distance")] == [0.0, None, 0.0]


def test_a_linear_penalty_is_a_geometric_row() -> None:
    """With a slope m and much text before it, weights fall by e^−m: entropy and mean distance of that distribution."""
    model = indifferent("alibi")
    slopes = model.encoding.numbers(1)["slopes"].tolist()
    rows = [row for row in rows_of(model, "alibi", scored=1) if row["length"] == 40 and row["layer"] == 0]
    for row, slope in zip(rows, slopes, strict=True):
        weights = np.exp(-slope * np.arange(40))
        weights /= weights.sum()
        assert row["distance"] == pytest.approx((weights * np.arange(40)).sum(), rel=1e-4)
        assert row["entropy"] == pytest.approx(-(weights * np.log(weights)).sum(), rel=1e-4)
        assert row["relative_entropy"] == pytest.approx(row["entropy"] / math.log(40), rel=1e-6)
        assert row["first"] == pytest.approx(weights[-FIRST:].sum(), rel=1e-4)


def test_weights_that_leave_something_over_say_so() -> None:
    """Stick-breaking with equal logits of 0 gives each key half of what is left: 1/2, 1/4, … from the nearest on."""
    for row in rows_of(indifferent("stick_breaking"), "stick_breaking", scored=1):
        count = row["length"] - 1
        assert row["attended"] == pytest.approx(1 - 0.5**count, abs=1e-6)
        assert row["distance"] == pytest.approx(2.0, abs=1e-3)
        assert row["entropy"] == pytest.approx(2 * math.log(2), abs=2e-3)


class Answers(Watching):
    """Keeps beside the sums what the kernels make of values that ask for them: 1, the key's index, the first keys."""

    def __init__(self, inner: PositionEncoding, scored: int) -> None:
        super().__init__(inner, scored)
        self.answers: dict[int, Tensor] = {}

    def prepare(self, layer: LayerView) -> Any:
        state = super().prepare(layer)
        index = torch.arange(layer.q.shape[2], dtype=torch.float32)
        asked = torch.stack([torch.ones_like(index), index, (index < FIRST).float()], dim=1)
        v = torch.zeros_like(layer.q)
        v[..., :3] = asked
        rows = slice(len(index) - self.scored, len(index))
        self.answers[layer.index] = attend(self.inner, layer, v, rows)[..., :3]
        return state


@pytest.mark.parametrize("name", registry.names())
def test_every_encoding_is_measured_as_its_kernels_compute_it(name: str) -> None:
    model, length = model_of(name), 12
    if "values" in model.encoding.hooks(0) and name != "stick_breaking":
        pytest.skip("its output is more than weights times values")
    watching = Answers(model.encoding, scored=4)
    tokens = torch.from_numpy(noise(200).ids[: 3 * length].astype(np.int64)).view(3, length)
    with torch.inference_mode():
        model.using(watching)(tokens, scored=4)
    for layer in range(SPEC.n_layers):
        means = dict(zip(MEASURES, (watching.sums[layer] / watching.counts[layer]).T, strict=True))
        total, index, first = watching.answers[layer].unbind(-1)
        queries = torch.arange(length - 4, length)
        assert means["attended"].tolist() == pytest.approx(total.mean((0, 2)).tolist(), abs=1e-4)
        assert means["first"].tolist() == pytest.approx(first.mean((0, 2)).tolist(), abs=1e-4)
        distance = queries - index / total
        assert means["distance"].tolist() == pytest.approx(distance.mean((0, 2)).tolist(), abs=1e-3)
        assert (means["relative_entropy"] <= 1 + 1e-6).all()


@pytest.mark.parametrize("block", ["rope", "fox", "t5", {"name": "strided", "encoding": "rope"}], ids=str)
def test_neither_batches_nor_blocks_of_queries_change_a_number(block: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(block)
    usual = rows_of(model, block)
    monkeypatch.setattr(attention, "BLOCK_BYTES", 1)  # 16 queries at a time
    for one, two in zip(usual, rows_of(model, block, batch_size=1, scored=SCORED), strict=True):
        assert {key: two[key] for key in MEASURES} == pytest.approx({key: one[key] for key in MEASURES}, abs=1e-5)
    monkeypatch.setattr(attended, "cut", lambda rows, _: [slice(i, i + 1) for i in range(rows.start, rows.stop)])
    for one, two in zip(usual, rows_of(model, block), strict=True):
        assert {key: two[key] for key in MEASURES} == pytest.approx({key: one[key] for key in MEASURES}, abs=1e-5)


def test_a_square_of_weights_is_never_held() -> None:
    """The weights of 2048 queries on 4096 keys in two heads take 64 MiB."""
    model = model_of("rope", replace(SPEC, d_model=4))
    evaluation = evaluation_of(model, noise(100_000), "rope", lengths=[4096], scored=2048, batch_size=1, windows=1)
    with LargestTensor() as largest:
        assert measure(evaluation, quietly).rows
    assert largest.bytes <= attention.BLOCK_BYTES


def test_watching_changes_no_logit() -> None:
    model = model_of("transformer_xl")
    tokens = torch.from_numpy(noise(200).ids[:48].astype(np.int64)).view(2, 24)
    with torch.inference_mode():
        assert torch.equal(model(tokens), model.using(Watching(model.encoding, 4))(tokens))


def test_strategies_are_measured_as_they_change_the_encoding() -> None:
    """Up to the training length they change nothing; a refused one has a reason and no rows."""
    model = model_of("rope")
    names = ["none", "interpolate", "repeat_last"]
    evaluation = evaluation_of(model, noise(2000), "rope", lengths=[40, 300], strategies=names)
    told: list[int] = []
    found = measure(evaluation, told.append)
    by = {(row["strategy"], row["length"], row["layer"], row["head"]): row["entropy"] for row in found.rows}
    assert {key[:2] for key in by} == {
        (name, length) for name in names for length in (16, 40) if (name, length) != ("repeat_last", 40)
    }
    assert by["interpolate", 16, 0, 0] == by["none", 16, 0, 0]
    assert by["interpolate", 40, 0, 0] != by["none", 40, 0, 0]
    assert [reason.split(":")[0] for reason in found.reasons] == [
        "none at 300", "interpolate at 300", "repeat_last at 40", "repeat_last at 300",
    ]  # fmt: skip
    assert sum(told) == planned_chars(evaluation) == 6 * (16 + 40 + 40)


def test_strategies_that_act_on_the_model_are_measured_too() -> None:
    """A truncated window looks as one of the training length does, and log_n makes queries look more sharply."""
    model = model_of("rope")
    rows = rows_of(model, "rope", strategies=["none", "truncate", "log_n", "window(window=3)"])
    by = {(row["strategy"], row["length"], row["layer"], row["head"]): row["entropy"] for row in rows}
    assert by["truncate", 40, 1, 0] == pytest.approx(by["none", 16, 1, 0], rel=1e-6)
    assert by["log_n", 40, 0, 0] < by["none", 40, 0, 0]
    assert by["window(window=3)", 40, 0, 0] < math.log(3)


def test_ids_that_are_drawn_give_means_over_the_draws() -> None:
    positions = {"name": "randomized", "max_position": 64, "evaluation_draws": 2}
    model = new_model(SPEC, "rope", 0, positions=positions)
    means = rows_of(model, "rope")
    draws = []
    for number in (0, 1):
        clone = copy.copy(model.encoding)
        clone.draws = lambda length, number=number: [model.encoding.draws(length)[number]]  # type: ignore[assignment]
        draws.append(rows_of(model.using(clone), "rope"))
    for mean, one, two in zip(means, *draws, strict=True):
        assert one["entropy"] != two["entropy"]
        assert mean["entropy"] == pytest.approx((one["entropy"] + two["entropy"]) / 2, rel=1e-6)


def test_ids_beyond_a_learned_table_are_a_reason() -> None:
    evaluation = evaluation_of(model_of("learned"), cycle(2000), "learned", lengths=[40], strategies=["none"])
    found = measure(evaluation, quietly)
    assert {row["length"] for row in found.rows} == {16}
    assert "the learned table has 16 rows" in found.reasons[0]


def test_waves_that_never_completed_a_turn_are_counted() -> None:
    """Heads of 32 columns and base 10000: waves of 2π·10000^(k/16), of which 6 are at most 128 characters long."""
    rope = build("rope", replace(SPEC, d_model=64, train_length=128))
    [words] = waves_in_words(rope, 128)
    assert words.startswith("rope: 10 of 16 waves never completed a turn in training")
    assert words.endswith("longer than the 128 characters that it showed")
    assert waves_in_words(build("alibi", SPEC), 16) == []
    [hope] = waves_in_words(build("hope", replace(SPEC, d_model=64, train_length=128)), 128)
    assert hope.startswith("hope: 0 of ")


def test_waves_are_measured_by_the_distances_that_training_showed() -> None:
    """With skipped ids up to 4095, those of 2π·10000^(k/16) up to 4096 are complete: k = 0 … 11."""
    spec = replace(SPEC, d_model=64, train_length=128, max_position=128)
    rope = samplers.build({"name": "skipped", "max_position": 4096}, "rope", spec)
    [words] = waves_in_words(rope, 128)
    assert words.startswith("rope: 4 of 16 waves never completed a turn in training")
