"""What is measured of speed and memory: the counts are right, the ratios are of the same turn, and memory is real."""

from __future__ import annotations

import signal
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
import torch
from command_line import TINY, pe
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode
from works import cannot, ends, takes

from pe_cli import benching, benchmark, benchmark_tables, subjects
from pe_cli.benchmark import Measured
from pe_cli.config import EvaluationConfig, TrainingConfig
from pe_cli.errors import PositionRangeError
from pe_cli.peaks import peak
from pe_cli.trained import fresh_model

CPU = torch.device("cpu")
MIB = 2**20
MEASURED = {key: value for key, value in TINY.items() if key not in benching.WITHOUT_EFFECT}
SMALL = [part for key, value in MEASURED.items() for part in ("--set", f"{key}={value}")] + [
    "--threads",
    "1",
    "--quiet",
]


@pytest.mark.parametrize("changes", [{}, {"model.n_layers": "2", "training.length": "48"}])
def test_the_operations_are_those_that_torch_counts(changes: dict[str, str]) -> None:
    experiment = subjects.fresh("none", changes)
    model, length = fresh_model(experiment, "abcdefgh"), experiment.training.length
    tokens = torch.randint(8, (3, length + 1), generator=torch.Generator().manual_seed(0))
    with FlopCounterMode(display=False) as counter:
        F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()).backward()
    assert benchmark.training_flops(experiment, 8) * 3 * length == counter.get_total_flops()


def test_medians_and_ratios_of_each_turn() -> None:
    rope, alibi = (subjects.subject(name, {"evaluation.lengths": "8"}) for name in ("rope", "alibi"))
    plan = [
        Measured(rope, benchmark.TRAINING, 128, 32, seconds=[1.0, 2.0, 8.0]),
        Measured(rope, benchmark.EVALUATION, 8, 1, seconds=[0.5, 0.5, 0.5]),
        Measured(alibi, benchmark.TRAINING, 128, 32, seconds=[3.0, 4.0, 8.0]),
        Measured(alibi, benchmark.EVALUATION, 8, 1, status="out_of_memory", reason="too much"),
    ]
    rows = benchmark.rows(plan, "rope", letters=10, flops=1e9)
    assert [row["seconds"] for row in rows] == [2.0, 0.5, 4.0, None]
    assert [row["times"] for row in rows] == [1.0, 1.0, 2.0, None]
    assert [row["chars_per_second"] for row in rows] == [2048.0, 16.0, 1024.0, None]
    done = benchmark.training_flops(rope.experiment, 10) * 4096
    assert [row["fraction"] for row in rows] == [done / 2e9, None, done / 4e9, None]


@pytest.mark.parametrize("size", [40 * MIB, 400 * MIB])
def test_memory_is_what_the_work_takes_beyond_its_preparation(size: int) -> None:
    for _ in range(2):  # what was measured before does not count
        found = peak(partial(takes, size), CPU, 1)
        assert found.error is None
        assert found.bytes is not None
        assert size * 0.95 <= found.bytes <= size * 1.05 + 10 * MIB


def test_what_fails_apart_comes_back_as_what_it_was() -> None:
    undefined = peak(partial(cannot, PositionRangeError("beyond the table")), CPU, 1).error
    assert isinstance(undefined, PositionRangeError)
    assert str(undefined) == "beyond the table"
    assert isinstance(peak(partial(cannot, RuntimeError("can't allocate memory")), CPU, 1).error, MemoryError)
    assert isinstance(peak(partial(ends, signal.SIGKILL), CPU, 1).error, MemoryError)


def test_every_encoding_is_timed_at_every_length_that_it_has(tmp_path: Path) -> None:
    asked = ["bench", "rope", "learned", "--lengths", "16,24", "--rounds", "2", "--out", tmp_path, *SMALL]
    done = pe(*asked, "--json")
    assert done.code == 0, done.err
    rows = pd.read_csv(tmp_path / "bench" / "bench.csv")
    assert list(rows["length"]) == [16, 16, 24] * 2
    assert list(rows["status"]) == ["ok"] * 5 + ["undefined"]
    assert (rows["seconds"][:5] > 0).all()
    assert (rows["seconds_low"][:5] <= rows["seconds"][:5]).all()
    assert (rows["times"][:3] == 1).all()
    assert [row["encoding"] for row in done.json["rows"]] == list(rows["encoding"])
    text = (tmp_path / "bench" / "bench.md").read_text(encoding="utf-8")
    assert "learned: undefined at 24: the learned table has 16 rows" in text
    assert (tmp_path / "bench" / "bench.png").stat().st_size > 10_000


def test_longer_tables_compare_the_longest_length() -> None:
    rope, alibi = (subjects.subject(name, {"evaluation.lengths": "8,16"}) for name in ("rope", "alibi"))
    plan = [
        replace(one, seconds=[one.length * (1.0 if one.subject is rope else 3.0)], peak_bytes=one.length * MIB)
        for one in benchmark.planned([rope, alibi])
    ]
    rows = benchmark.rows(plan, "rope", letters=10, flops=1e9)
    _, seconds, memory = benchmark_tables.tables(rows, "rope", [])
    assert [row["against"] for row in seconds.rows] == [1.0, 3.0]
    assert [row["16"] for row in memory.rows] == [16.0, 16.0]
    assert [row["against"] for row in memory.rows] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["rop"], "'rop' is neither an encoding nor a run"),
        (["rope", "--baseline", "alibi"], "--baseline alibi: is not among those that are measured"),
        (["rope", "--rounds", "0"], "--rounds: must be a whole number from 1 to 1000, not '0'"),
        (["rope", "--set", "data=task:copy"], "--set data=task:copy: windows of a text are timed"),
        (
            ["rope", "--set", "training.steps=5"],
            "--set training.steps=5: training.steps has no effect on what pe bench",
        ),
        (["rope", "--set", "training.stepz=5"], "did you mean 'steps'?"),
        (["rope", "--set", "evaluation.scord=5"], "did you mean 'scored'?"),
        (["rope", "--lengths", "8", "--max-len", "16"], "--max-len and --lengths both say how long"),
    ],
)
def test_what_cannot_be_measured_is_refused_and_leaves_nothing(tmp_path: Path, asked: list[str], said: str) -> None:
    done = pe("bench", *asked, "--out", tmp_path / "new")
    assert done.code == 2
    assert said in done.err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("key", EvaluationConfig.model_fields)
def test_of_evaluation_the_lengths_alone_are_measured(tmp_path: Path, key: str) -> None:
    value = {"protocols": "sliding", "strategies": "none"}.get(key, "8")
    changes = {f"evaluation.{key}": value}
    if key == "lengths":
        benching.refuse_without_effect(changes)
        return
    done = pe("bench", "rope", "--set", f"evaluation.{key}={value}", "--out", tmp_path / "new")
    assert done.code == 2
    assert f"--set evaluation.{key}={value}: evaluation.{key} has no effect on what pe bench measures" in done.err
    assert "evaluation.lengths alone" in done.err
    assert not (tmp_path / "new").exists()


def test_keys_without_effect_are_keys() -> None:
    known = {"name", *(f"training.{key}" for key in TrainingConfig.model_fields)}
    assert set(benching.WITHOUT_EFFECT) <= known
