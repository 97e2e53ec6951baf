"""What holds for every task, whatever it is."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest
import torch

from pe_cli.encodings._composition import Wrapper
from pe_cli.encodings.base import ModelSpec, PositionEncoding
from pe_cli.instances import (
    UNSCORED,
    InstanceBatches,
    TaskData,
    evaluation_set,
    load_task,
    rows_of,
    validation_set,
)
from pe_cli.model import new_model
from pe_cli.protocols import TooShort
from pe_cli.scoring import answer_losses
from pe_cli.tasks import canonical_data, names, task_class
from pe_cli.tasks.base import PAD, Instance

every_task = pytest.mark.parametrize("name", names())


def data_of(name: str, **options: object) -> TaskData:
    block = canonical_data({"task": name, **options})
    assert isinstance(block, dict)
    return load_task(block)


@every_task
def test_an_instance_follows_from_its_seed_and_has_a_size_that_follows_from_its_length(name: str) -> None:
    task = data_of(name).task
    for length in (task.options.min_length, task.options.max_length, 3 * task.options.max_length):
        made = [task.instance(length, Random(number)) for number in range(20)]
        assert made == [task.instance(length, Random(number)) for number in range(20)]
        assert {len(one.text) - 1 for one in made} == {task.fed(length)}
        assert len({len(one.answer) for one in made}) == 1
        assert all(one.answer for one in made)


@every_task
def test_the_alphabet_is_closed_in_order_and_has_a_neutral_end(name: str) -> None:
    data = data_of(name)
    assert data.alphabet == "".join(sorted(set(data.alphabet)))
    assert PAD in data.alphabet
    assert PAD not in data.task.characters
    options = data.task.options
    texts = "".join(data.task.instance(options.max_length, Random(number)).text for number in range(100))
    assert set(texts) <= set(data.task.characters)


@every_task
def test_scored_places_are_those_of_the_answer_and_come_in_order(name: str) -> None:
    task = data_of(name).task
    made = task.instance(task.options.max_length, Random(5))
    assert list(made.scored) == sorted(set(made.scored))
    assert made.scored[0] > 0
    assert "".join(made.text[place] for place in made.scored).endswith(made.answer)


@every_task
def test_training_batches_score_what_instances_say(name: str) -> None:
    data = data_of(name)
    batches = InstanceBatches(data, 6, seed=4)
    for _ in range(8):
        fed, wanted = batches.pair()
        counts = wanted != UNSCORED
        assert counts.any(dim=1).all()
        assert torch.equal(wanted[:, :-1][counts[:, :-1]], fed[:, 1:][counts[:, :-1]])
        assert not torch.cat((fed, wanted)).eq(data.alphabet.index(PAD)).any()


@every_task
def test_a_batch_has_one_length_and_all_lengths_are_drawn(name: str) -> None:
    """A model is then fed as many characters of each length as in evaluation, and a sampler draws ids for as many."""
    smallest = 48 if name == "passkey" else 2
    data = data_of(name, min_length=smallest, max_length=smallest + 3)
    batches = InstanceBatches(data, 2, seed=4)
    widths = Counter(batches.pair()[0].shape[1] for _ in range(400))
    expected = Counter(data.task.fed(length) for length in range(smallest, smallest + 4))
    assert widths.keys() == expected.keys()
    for width, lengths in expected.items():
        assert widths[width] == pytest.approx(100 * lengths, abs=4 * 100**0.5 * lengths)


@every_task
def test_batches_depend_on_the_seed_and_go_on_bit_for_bit(name: str) -> None:
    data = data_of(name)
    one, same, other = (InstanceBatches(data, 4, seed) for seed in (1, 1, 2))
    first = [one.pair()[0] for _ in range(4)]
    for batch in first[:2]:
        assert torch.equal(batch, same.pair()[0])
    state = same.state()
    later = [same.pair()[0] for _ in range(2)]
    assert all(torch.equal(a, b) for a, b in zip(first[2:], later, strict=True))
    assert one.digest == same.digest
    again = InstanceBatches(data, 4, seed=9)
    again.restore(state)
    assert torch.equal(again.pair()[0], first[2])
    other.pair()
    assert not torch.equal(other.pair()[0], first[1])


@every_task
def test_an_evaluation_set_depends_on_its_length_alone(name: str) -> None:
    data = data_of(name)
    longest = data.task.options.max_length
    alone = evaluation_set(data, longest, 8)
    evaluation_set(data, 2 * longest, 3)
    assert evaluation_set(data, longest, 8).instances == alone.instances
    assert evaluation_set(data, longest, 3).instances == alone.instances[:3]
    assert len({one.text for one in evaluation_set(data, 4 * longest, 16).instances}) == 16


@every_task
def test_training_validation_and_evaluation_draw_from_streams_of_their_own(name: str) -> None:
    data = data_of(name, min_length=128, max_length=128, **({"key_length": 12} if name == "passkey" else {}))
    batches = InstanceBatches(data, 50, seed=1337)
    trained = {tuple(row.tolist()) for row in batches.pair()[0]}
    for targets in (validation_set(data, 50), evaluation_set(data, data.task.options.max_length, 50)):
        assert not trained & {tuple(row[:-1].tolist()) for row in targets.rows.tokens}


@every_task
def test_the_hash_is_of_the_options_and_of_how_instances_are_drawn(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = data_of(name)
    assert data_of(name).data_hash == data.data_hash
    longer = data.task.options.max_length + 1
    assert data_of(name, max_length=longer).data_hash != data.data_hash
    cls = task_class(name)
    before = cls.instance
    monkeypatch.setattr(cls, "instance", lambda task, length, draw: (draw.random(), before(task, length, draw))[1])
    assert data_of(name).data_hash != data.data_hash


def test_rows_by_hand() -> None:
    data = data_of("copy")
    made = data.task.instance(2, Random(0))
    rows = rows_of([made, Instance("abcd>", "dc")], ">_abcdefghij")
    places = {character: number for number, character in enumerate(">_abcdefghij")}
    assert rows.tokens[0].tolist() == [*(places[character] for character in made.text), 1, 1]
    assert np.flatnonzero(rows.scored[0]).tolist() == [2, 3]  # what is predicted after the third and fourth


def test_a_length_that_a_task_does_not_have_is_said() -> None:
    with pytest.raises(TooShort, match="677 pairs need as many keys"):
        evaluation_set(data_of("associative_recall"), 677, 1)


def test_instances_take_the_draws_of_a_sampler_in_turn() -> None:
    data = data_of("copy", max_length=4)
    spec = ModelSpec(16, 2, 1, train_length=8, alphabet=data.alphabet, max_position=8)
    model = new_model(spec, "rope", 0, positions={"name": "randomized", "max_position": 64, "evaluation_draws": 3})
    targets = evaluation_set(data, 4, 7)
    found = answer_losses(model, targets, batch_size=2)
    of_draws = [
        answer_losses(model.using(Alone(draw)), targets, batch_size=7).losses for draw in model.encoding.draws(8)
    ]
    for number, losses in enumerate(found.losses):
        assert losses == pytest.approx(of_draws[number % 3][number], abs=1e-5)
        assert losses != pytest.approx(of_draws[(number + 1) % 3][number], abs=1e-5)
    assert len(found.right) == 7


class Alone(Wrapper):
    """One draw of a sampler, as if there were no other."""

    def __init__(self, draw: PositionEncoding) -> None:
        super().__init__(draw.options, draw.spec, draw)

    def draws(self, length: int) -> list[PositionEncoding]:
        return [self]
