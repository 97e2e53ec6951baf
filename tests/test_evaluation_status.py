"""Rows without a loss say why, and tables and notes say what the losses are of."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stand_in import ALPHABET, TRAIN_LENGTH, KnownLoss, curve, cycle, evaluation_of, model_of, noise, quietly

from pe_cli import extrapolation, reports
from pe_cli.evaluation import Evaluation, is_out_of_memory
from pe_cli.lengths import skipping

LEARNED = model_of("learned")


def statuses(evaluation: Evaluation) -> dict[tuple[str, int], tuple[str, str]]:
    rows = evaluation.run(quietly).extrapolation
    for row in rows:
        if row["status"] != "ok":
            numbers = ("loss", "loss_low", "loss_high", "gain", "gain_low", "gain_high", "bits_per_char", "perplexity")
            assert [row[key] for key in numbers] == [None] * 8
            assert row["scored_chars"] == 0
    return {(row["strategy"], row["length"]): (row["status"], row["reason"]) for row in rows}


def test_parts_that_a_strategy_leaves_as_they_are_are_named() -> None:
    both = {"name": "mix", "parts": ["learned", "t5"]}
    names = ["none", "zero", "truncate"]
    evaluation = evaluation_of(model_of(both), noise(2000), both, lengths=[16, 32], strategies=names)
    notes = extrapolation.report(evaluation, evaluation.run(quietly)).notes
    [note] = [note for note in notes if "stays as it is" in note]
    assert note.startswith("zero: t5 stays as it is: zero has no meaning for t5")


def test_undefined_refused_and_skipped_rows_say_why() -> None:
    names = ["none", "repeat_last", "rerope"]
    found = statuses(evaluation_of(LEARNED, noise(2000), "learned", lengths=[16, 32, 108, 109], strategies=names))
    assert {key: status for key, (status, _) in found.items()} == {
        ("none", 16): "ok",
        ("none", 32): "undefined",
        ("none", 108): "undefined",
        ("none", 109): "skipped",
        ("repeat_last", 16): "ok",
        ("repeat_last", 32): "ok",
        ("repeat_last", 108): "ok",
        ("repeat_last", 109): "skipped",
        ("rerope", 16): "ok",
        ("rerope", 32): "refused",
        ("rerope", 108): "refused",
        ("rerope", 109): "skipped",
    }
    assert "16 rows" in found["none", 32][1]
    assert "rerope has no meaning for learned" in found["rerope", 32][1]
    assert "109" in found["none", 109][1]
    assert "108" in found["none", 109][1]


class Fails(KnownLoss):
    """Gives up, or gives no number, on windows from 48 characters on."""

    def __init__(self, failure: BaseException | None) -> None:
        super().__init__(curve)
        self.failure = failure

    def forward(self, tokens: torch.Tensor, generator: Any = None, scored: int | None = None) -> torch.Tensor:
        logits = super().forward(tokens, generator, scored)
        if tokens.shape[1] < 48:
            return logits
        if self.failure is not None:
            raise self.failure
        logits[-1, -1, 0] = math.nan
        return logits

    def using(self, encoding: Any) -> Fails:
        return self


@pytest.mark.parametrize(
    "failure",
    [
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
            "allocate 1099511627776 bytes. Error code 12 (Cannot allocate memory)"
        ),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:80] DefaultCPUAllocator: not enough memory: you tried to allocate"
        ),
        RuntimeError("MPS backend out of memory (MPS allocated: 18.00 GB, other allocations: 1.00 GB)"),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"),
        MemoryError("Unable to allocate 64.0 GiB for an array"),
    ],
    ids=["cpu", "windows", "mps", "cuda", "numpy"],
)
def test_what_does_not_fit_into_memory_is_a_row(failure: BaseException) -> None:
    found = statuses(evaluation_of(Fails(failure), cycle(2000), lengths=[16, 32, 48, 64], strategies=["none"]))
    assert [status for status, _ in found.values()] == ["ok", "ok", "out_of_memory", "out_of_memory"]
    assert "48" in found["none", 48][1]


def test_another_error_is_not_taken_for_missing_memory() -> None:
    error = RuntimeError("mat1 and mat2 shapes cannot be multiplied")
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        evaluation_of(Fails(error), cycle(2000), lengths=[48]).run(quietly)
    assert not is_out_of_memory(error)


def test_a_loss_that_is_no_number_is_diverged() -> None:
    tables = evaluation_of(Fails(None), cycle(2000), lengths=[16, 48], strategies=["none"]).run(quietly)
    assert [(row["status"], row["loss"]) for row in tables.extrapolation] == [
        ("ok", pytest.approx(np.mean([curve(n) for n in range(9, 17)]), rel=1e-5)),
        ("diverged", None),
    ]
    assert {row["length"] for row in tables.windows} == {16}
    assert {row["length"] for row in tables.positions} == {16}


def test_a_training_length_without_a_loss_leaves_losses_without_gain() -> None:
    class Long(KnownLoss):
        def forward(self, tokens: torch.Tensor, generator: Any = None, scored: int | None = None) -> torch.Tensor:
            return super().forward(tokens, generator, scored) * (math.nan if tokens.shape[1] == TRAIN_LENGTH else 1)

        def using(self, encoding: Any) -> Long:
            return self

    rows = evaluation_of(Long(curve), cycle(2000), lengths=[16, 32], strategies=["none"]).run(quietly).extrapolation
    assert [(row["status"], row["gain"]) for row in rows] == [("diverged", None), ("ok", None)]
    assert rows[1]["loss"] is not None


def test_lengths_that_do_not_fit_are_known_before_anything_runs() -> None:
    evaluation = evaluation_of(
        KnownLoss(curve), cycle(2000), lengths=[16, 109, 150, 201], protocols=["same_targets", "non_overlapping"]
    )
    notes = skipping(evaluation.text, evaluation.settings)
    assert len(notes) == 2
    assert notes[0].startswith("same_targets: skipping 109, 150, 201: a window of 109")
    assert "108" in notes[0]
    assert notes[1].startswith("non_overlapping: skipping 201: a window of 201")
    assert "200" in notes[1]
    assert skipping(evaluation.text, evaluation.settings.model_copy(update={"lengths": (16, 108)})) == []


def test_the_table_says_its_protocol_its_characters_and_its_largest_id() -> None:
    evaluation = evaluation_of(KnownLoss(curve), cycle(2000), lengths=[16, 64], strategies=["none"])
    table = extrapolation.report(evaluation, evaluation.run(quietly))
    text = table.markdown()
    headings = [column.heading for column in table.columns]
    assert [name for name in ("protocol", "scored chars", "largest id", "gain", "status") if name not in headings] == []
    assert [row["largest_id"] for row in table.rows] == [15, 63]
    assert reports.PROTOCOLS["same_targets"] in table.notes
    assert "cycle" in text
    assert "fewer" not in text.replace("fewer characters have little", "")


def test_the_table_says_where_there_are_fewer_blocks_than_asked_for() -> None:
    evaluation = evaluation_of(KnownLoss(curve), cycle(2000), lengths=[16, 64], strategies=["none"], windows=13)
    tables = evaluation.run(quietly)
    assert {row["scored_chars"] for row in tables.extrapolation} == {96}
    [note] = [note for note in extrapolation.report(evaluation, tables).notes if "fewer than" in note]
    assert [number for number in ("12 blocks", "of 8", "13") if number not in note] == []


def test_work_is_counted_as_it_is_planned() -> None:
    told: list[int] = []
    evaluation = evaluation_of(
        model_of("rope"), noise(2000), "rope", lengths=[16, 32], strategies=["none", "interpolate"]
    )
    evaluation.run(told.append)
    assert sum(told) == sum(evaluation.planned_chars().values()) == 6 * (16 + 32 + 32)


def test_the_alphabet_of_the_stand_in_costs_what_it_says() -> None:
    """The stand-in itself: uniform guessing costs ln A."""
    model = KnownLoss(lambda seen: math.log(len(ALPHABET)))
    logits = model(torch.zeros(1, 3, dtype=torch.long))
    assert torch.allclose(logits, torch.zeros(1, 3, len(ALPHABET)), atol=1e-6)


def test_statistics_are_loaded_before_memory_is_needed() -> None:
    """The OpenBLAS that comes with them waits for ever where there is no memory."""
    code = """
import sys
from stand_in import evaluation_of, model_of, noise
assert "scipy.stats" not in sys.modules and "scipy.special" not in sys.modules
evaluation_of(model_of("rope"), noise(2000), "rope")
assert "scipy.stats" in sys.modules and "scipy.special" in sys.modules
"""
    support = Path(__file__).parent / "support"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(support), str(support.parents[1])])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
