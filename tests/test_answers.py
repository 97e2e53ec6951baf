"""What is right: a model whose every probability is written down, and what models with weights go on to write."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from stand_in import quietly
from torch import Tensor, nn
from torch.nn import functional as F

from pe_cli import answer_tables
from pe_cli.config import EvaluationConfig, load_experiment
from pe_cli.encodings.base import ModelSpec, PositionEncoding
from pe_cli.encodings.registry import build
from pe_cli.evaluation import Measurement
from pe_cli.instances import (
    UNSCORED,
    InstanceBatches,
    TaskData,
    evaluation_set,
    load_task,
    targets_of,
    validation_set,
)
from pe_cli.model import Transformer, new_model
from pe_cli.runs import Run
from pe_cli.sampling import sample
from pe_cli.scoring import answer_losses
from pe_cli.task_evaluation import TaskEvaluation, characters_right
from pe_cli.tasks import Instance, canonical_data
from pe_cli.trained import Trained

ALPHABET = "_abc"
KNOWN = {
    "ab": (1, 1, 2, 4), "abc": (1, 2, 4, 1), "abb": (1, 2, 1, 4),
    "ba": (2, 2, 2, 2), "bac": (1, 2, 1, 4), "baa": (1, 1, 4, 2),
    "cc": (1, 4, 2, 1), "cca": (1, 1, 3, 3), "ccc": (1, 5, 1, 1),
    "c": (2, 4, 1, 1), "cba": (1, 1, 4, 2), "cbab": (1, 2, 1, 4),
}  # fmt: skip
"""After these texts the eighths in which _, a, b and c follow. After any other text _ follows, but for one in 1000."""
HALF, QUARTER, EIGHTH = math.log(2), math.log(4), math.log(8)
INSTANCES = (
    Instance("ab", "ca", decoy="bb", depth=0.5),  # right, wrong
    Instance("ba", "cc", decoy="ab", depth=0.0),  # wrong: all alike, and c is not the first; right
    Instance("cc", "ab", decoy="cc", depth=0.5),  # right; right: like c, and before it
    Instance("cbab", "a", also=(1, 3), decoy="c", depth=1.0),  # wrong, right, wrong
)
LOSSES = [[HALF, QUARTER], [QUARTER, HALF], [HALF, math.log(8 / 3)], [EIGHTH, HALF, QUARTER]]
RIGHT = [[True, False], [False, True], [True, True], [False, True, False]]
MARGINS = [QUARTER, 0.0, math.log(12), -HALF]
"""ln 32 − ln 8, ln 8 − ln 8, ln 64 − ln 16/3, and ln 32 − ln 64."""


class Written(nn.Module):
    """Says what KNOWN has, whatever batches it meets."""

    def __init__(self, alphabet: str = ALPHABET) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))
        spec = ModelSpec(d_model=4, n_heads=1, n_layers=1, train_length=4, alphabet=alphabet, max_position=4)
        self.encoding: PositionEncoding = build("none", spec)

    def forward(self, tokens: Tensor, generator: Any = None, scored: int | None = None) -> Tensor:
        texts = ["".join(ALPHABET[number] for number in row) for row in tokens.tolist()]
        eighths = [[KNOWN.get(text[:seen], (7.976, 0.008, 0.008, 0.008)) for seen in range(1, len(text) + 1)]
                   for text in texts]  # fmt: skip
        logits = (torch.tensor(eighths) / 8).log()
        return logits if scored is None else logits[:, -scored:]

    def using(self, encoding: PositionEncoding) -> Written:
        return self


def data_of(name: str, alphabet: str | None = None) -> TaskData:
    block = canonical_data({"task": name, "max_length": 8} if name != "passkey" else "task:passkey")
    data = load_task(block)  # type: ignore[arg-type]
    return data if alphabet is None else replace(data, alphabet=alphabet)


def evaluation_of(model: Any, data: TaskData, **settings: Any) -> TaskEvaluation:
    experiment = load_experiment(f"{{name: run, data: 'task:{data.task.name}', encoding: none}}", "a test")
    trained = Trained(Run(Path("run-0123456789-s3"), {}), experiment, data.alphabet, model)
    return TaskEvaluation(trained, data, EvaluationConfig.model_validate({"strategies": ["none"], **settings}))


def measured(instances: tuple[Instance, ...], **settings: Any) -> tuple[TaskEvaluation, Measurement]:
    """The written model on instances in the alphabet of KNOWN."""
    data, model = data_of("copy", ALPHABET), Written()
    evaluation = evaluation_of(model, data, **settings)
    return evaluation, evaluation.passed(model, targets_of(data, instances), quietly)  # type: ignore[arg-type]


# --- by hand ---


@pytest.mark.parametrize("batch_size", [1, 2, 3, 100])
def test_losses_and_what_is_right_by_hand(batch_size: int) -> None:
    """Two instances of four characters and one of five, which also counts two in its prompt."""
    targets = targets_of(data_of("copy", ALPHABET), INSTANCES)
    found = answer_losses(Written(), targets, batch_size)  # type: ignore[arg-type]
    assert [losses.tolist() for losses in found.losses] == [pytest.approx(losses, rel=1e-6) for losses in LOSSES]
    assert [right.tolist() for right in found.right] == RIGHT


def test_of_equal_logits_the_first_in_the_alphabet_is_written() -> None:
    """After "ba" all four are alike, of which the neutral end is the first."""
    for answer, first in (("_", True), ("a", False), ("b", False), ("c", False)):
        targets = targets_of(data_of("copy", ALPHABET), (Instance("ba", answer),))
        found = answer_losses(Written(), targets, 1)  # type: ignore[arg-type]
        assert (found.right[0].tolist(), found.losses[0].tolist()) == ([first], [pytest.approx(QUARTER)])


def test_shares_and_margin_by_hand() -> None:
    """5 of 9 characters, which is not the mean of the shares of answers; one whole answer of four."""
    evaluation, found = measured(INSTANCES)
    accuracy, exact, margin = evaluation.answers(found)
    # four answers: t(3) at 97.5 % is 3.182446; 1, 1, 2, 1 right of 2, 2, 2, 3 are −1/9, −1/9, 8/9, −6/9 off the share
    assert accuracy == pytest.approx((5 / 9, 5 / 9 - 3.182446 * math.sqrt(4 / 3 * 102 / 81) / 9, 1.0), rel=1e-6)
    # Wilson with z² = 3.8415: (1/4 + z²/8 ± z √(3/64 + z²/64)) / (1 + z²/4)
    assert exact == pytest.approx((0.25, 0.045588, 0.699358), abs=1e-6)
    assert margin == pytest.approx((math.log(24) / 4, -1.46555, 3.05458), abs=1e-4)


def test_rows_of_windows_and_places_by_hand() -> None:
    evaluation, found = measured(INSTANCES, batch_size=3)
    windows = evaluation.window_rows({"length": 2}, found)
    assert [row["loss"] for row in windows] == pytest.approx([sum(losses) / len(losses) for losses in LOSSES])
    assert [row["margin"] for row in windows] == pytest.approx(MARGINS, abs=1e-6)
    assert [row["right_chars"] for row in windows] == [1, 1, 2, 1]
    assert [row["scored_chars"] for row in windows] == [2, 2, 2, 3]
    assert [row["depth"] for row in windows] == [0.5, 0.0, 0.5, 1.0]
    places = evaluation.position_rows({"length": 2}, found)
    assert [(row["position"], row["scored_chars"]) for row in places] == [(0, 1), (1, 3), (2, 4), (3, 1)]
    by_hand = [EIGHTH, (HALF + QUARTER + HALF) / 3, (QUARTER + HALF + math.log(8 / 3) + HALF) / 4, QUARTER]
    assert [row["loss"] for row in places] == pytest.approx(by_hand)


def test_without_a_decoy_everywhere_there_is_no_margin() -> None:
    evaluation, found = measured((*INSTANCES[:3], replace(INSTANCES[3], decoy=None)))
    accuracy, exact, margin = evaluation.answers(found)
    assert (accuracy.value, exact.value) == (pytest.approx(5 / 9), 0.25)
    assert np.isnan(margin).all()
    assert [row["margin"] for row in evaluation.window_rows({}, found)] == [None] * 4


def test_right_answers_by_depth_by_hand() -> None:
    """At depth 0 one of two keys of two characters is said in whole; at depth 1 the only one is not."""
    keys = {"strategy": "none", "length": 9, "scored_chars": 2}
    answers = [(0.0, 2, 1.5), (0.0, 1, 0.5), (1.0, 0, -2.0)]
    rows = [{**keys, "depth": depth, "right_chars": right, "margin": margin} for depth, right, margin in answers]
    exact, margin = answer_tables.by_depth(pd.DataFrame(rows))
    assert exact.rows == [{"depth": 0.0, "9": 0.5}, {"depth": 1.0, "9": 0.0}]
    assert margin.rows == [{"depth": 0.0, "9": 1.0}, {"depth": 1.0, "9": -2.0}]
    assert exact.notes[-1].endswith("instances in a cell: 1 to 2")


# --- the interval of the characters ---


def test_where_all_or_none_are_right_the_interval_is_of_whole_answers() -> None:
    """Wilson of 4 answers and not of 9 characters: the other end is z² / (4 + z²) away."""
    sizes = np.array([2, 2, 2, 3])
    assert characters_right(np.zeros(4, dtype=int), sizes) == pytest.approx((0, 0, 0.489890), abs=1e-6)
    assert characters_right(sizes, sizes) == pytest.approx((1, 0.510110, 1), abs=1e-6)


def test_characters_of_one_answer_are_one_observation() -> None:
    """Answers that are half right have a share without doubt, and answers right or wrong as one the doubt of 40."""
    tens = np.full(40, 10)
    assert characters_right(np.full(40, 5), tens) == pytest.approx((0.5, 0.5, 0.5))
    share, low, high = characters_right(np.repeat([0, 10], 20), tens)
    half = 1.96 * math.sqrt(0.25 / 40)
    assert (share, low, high) == pytest.approx((0.5, 0.5 - half, 0.5 + half), abs=0.02)


# --- against generation ---


def model_of(data: TaskData, block: object = "rope") -> Transformer:
    """Random weights, large enough that what is likeliest changes from place to place."""
    model = new_model(ModelSpec(16, 2, 2, train_length=16, alphabet=data.alphabet, max_position=16), block, seed=1)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return model.eval()


def beginner(data: TaskData) -> Transformer:
    """Trained for a moment: it knows which characters answers are made of, and not which are right."""
    model = model_of(data)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    batches = InstanceBatches(data, batch_size=16, seed=0)
    for _ in range(20):
        fed, wanted = batches.pair()
        optimizer.zero_grad()
        F.cross_entropy(model(fed).flatten(0, 1), wanted.flatten(), ignore_index=UNSCORED).backward()
        optimizer.step()
    return model.eval()


def drawn(data: TaskData) -> tuple[Instance, ...]:
    """Of the trained lengths, and longer ones: their rows are not of one length."""
    longer = evaluation_set(data, data.task.options.max_length + 5, 2)
    return (*validation_set(data, 6).instances, *longer.instances)


def writes(evaluation: TaskEvaluation, text: str, chars: int) -> str:
    return "".join(sample(evaluation.trained, text, chars, greedy=True))


def right_of(model: Transformer, data: TaskData, instances: Sequence[Instance]) -> list[list[bool]]:
    found = answer_losses(model, targets_of(data, tuple(instances)), batch_size=3)
    return [right.tolist() for right in found.right]


@pytest.mark.parametrize("name", ["copy", "dyck", "flip_flop", "parity", "passkey"])
def test_right_is_what_generation_writes_there(name: str) -> None:
    data = data_of(name)
    model, instances = beginner(data), drawn(data)
    evaluation = evaluation_of(model, data)
    expected = [
        [writes(evaluation, one.text[:place], 1) == one.text[place] for place in one.scored] for one in instances
    ]
    assert right_of(model, data, instances) == expected
    assert {right for answer in expected for right in answer} == {True, False}


@pytest.mark.parametrize("block", ["none", "rope", "alibi", {"name": "sliding_window", "encoding": "rope"}], ids=str)
def test_an_answer_is_exact_where_generation_writes_the_whole_of_it(block: object) -> None:
    """What a model writes is made the answer, and then each character of it in turn is made another one."""
    data = data_of("copy")
    model = model_of(data, block)
    evaluation = evaluation_of(model, data)
    for one in drawn(data)[::3]:
        written = writes(evaluation, one.prompt, 5)
        [exact] = right_of(model, data, [replace(one, answer=written)])
        assert exact == [True] * 5
        others = [next(other for other in data.alphabet if other != character) for character in written]
        slips = [written[:place] + other + written[place + 1 :] for place, other in enumerate(others)]
        for place, right in enumerate(right_of(model, data, [replace(one, answer=slip) for slip in slips])):
            assert right[: place + 1] == [True] * place + [False]


def test_a_margin_is_of_the_likelihoods_of_two_whole_texts() -> None:
    data = data_of("passkey")
    model = model_of(data)
    evaluation = evaluation_of(model, data, batch_size=3)
    instances = drawn(data)

    def likelihood(prompt: str, answer: str) -> float:
        ids = torch.tensor([data.alphabet.index(character) for character in prompt + answer])
        with torch.no_grad():
            likely = model(ids[None])[0].double().log_softmax(-1)
        return sum(likely[place - 1, ids[place]].item() for place in range(len(prompt), len(ids)))

    expected = [likelihood(one.prompt, one.answer) - likelihood(one.prompt, one.decoy or "") for one in instances]
    found = evaluation.passed(model, targets_of(data, instances), quietly)
    assert found.margins is not None
    assert found.margins.tolist() == pytest.approx(expected, abs=1e-4)
    assert min(expected) < -0.1 < 0.1 < max(expected)


# --- the work ---


@pytest.mark.parametrize("name", ["copy", "passkey"])
def test_work_is_counted_as_it_is_planned(name: str) -> None:
    """A passkey is asked twice: for the key, and for the decoy."""
    data, told = data_of(name), list[int]()
    evaluation = evaluation_of(model_of(data), data, lengths=[40, 48], protocols=["instances"], windows=5)
    evaluation.run(told.append)
    assert sum(told) == sum(evaluation.planned_chars().values()) > 0


def test_work_is_planned_without_drawing_it() -> None:
    data = data_of("copy")
    evaluation = evaluation_of(model_of(data), data, lengths=[1000], protocols=["instances"], windows=2**20)
    assert evaluation.planned_chars() == {"instances": 2**20 * 2000}
    assert evaluation.sets == {}
