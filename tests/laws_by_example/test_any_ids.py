"""Ids at any length: what strategies make of them beyond the trained length, and what samplers draw."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from by_example import examples
from driving import SPEC, built
from hypothesis import assume, given
from hypothesis import strategies as st
from sampled import evaluated_ids, sampled, trained_ids
from strategy_cases import BY_IDS, ON_ANY
from torch import Tensor

from pe_cli import strategies
from pe_cli.encodings.base import PositionEncoding
from pe_cli.errors import PositionRangeError, StrategyRefused

trained_lengths, lengths = st.integers(1, 40), st.integers(1, 300)
RENUMBERING = ("interpolate", "mirror", "nearest", "repeat_last", "wrap")
ENCODINGS: list[Any] = [
    "learned",
    "sinusoidal",
    "rope",
    "alibi",
    "t5",
    "none",
    {"name": "mix", "parts": ["learned", "t5"]},
]


def changed(strategy: str, block: Any, trained: int, length: int) -> tuple[PositionEncoding, PositionEncoding]:
    """The encoding trained at a length, and what the strategy makes of it at another."""
    encoding = built(block, train_length=trained, max_position=trained)
    return encoding, strategies.apply(strategy, encoding, trained, length)


def ids_of(encoding: PositionEncoding, length: int) -> Tensor:
    return encoding.positions(torch.zeros(1, length, dtype=torch.long)).leaves()[0].ids[0]


@pytest.mark.parametrize("strategy", strategies.names())
@examples(12)
@given(st.sampled_from(ENCODINGS), trained_lengths, lengths)
def test_any_strategy_is_nothing_up_to_the_trained_length_and_finite_beyond(
    strategy: str, block: Any, trained: int, length: int
) -> None:
    try:
        encoding, used = changed(strategy, block, trained, length)
    except StrategyRefused:
        assert length > trained, "up to the trained length nothing is even refused"
        return
    if length <= trained:
        assert used is encoding
        return
    shown = min(length, used.piece or length)
    ids = ids_of(used, shown)
    assert ids.shape == (shown,)
    assert bool(ids.isfinite().all())
    if block == "learned" and strategy in BY_IDS:  # there are rows for all that it is shown
        x = torch.zeros(1, length, SPEC.d_model, dtype=torch.float64)
        positions = used.positions(torch.zeros(1, length, dtype=torch.long))
        if strategy == "hierarchical" and length > trained**2:
            with pytest.raises(PositionRangeError, match=f"has {trained**2} rows"):
                used.embed(x, positions)
        else:
            assert bool(used.embed(x, positions).isfinite().all())


@pytest.mark.parametrize("strategy", ON_ANY)
@examples(10)
@given(trained_lengths, lengths)
def test_what_acts_on_any_encoding_counts_as_ever(strategy: str, trained: int, length: int) -> None:
    _, used = changed(strategy, "sinusoidal", trained, length)
    assert ids_of(used, length).tolist() == list(range(length))


@pytest.mark.parametrize("strategy", RENUMBERING)
@examples(40)
@given(trained_lengths, st.integers(2, 20_000))
def test_new_ids_lie_in_the_trained_range_and_as_near_as_they_should(strategy: str, trained: int, length: int) -> None:
    assume(length > trained)
    ids = ids_of(changed(strategy, "learned", trained, length)[1], length).double()
    steps = ids.diff()
    assert 0 <= float(ids.min()) <= float(ids.max()) <= trained - 1
    assert float(ids[0]) == 0
    if strategy == "wrap":
        assert ids.tolist() == [place % trained for place in range(length)]
    elif strategy == "mirror":
        assert bool((steps.abs() == min(1, trained - 1)).all())
    else:
        assert bool((steps >= 0).all())
        assert float(ids[-1]) == trained - 1
    if strategy == "repeat_last":
        assert ids.tolist() == [min(place, trained - 1) for place in range(length)]
    if strategy == "interpolate":
        assert float(steps.max() - steps.min()) <= 1e-3  # even, as far as float32 has it
    if strategy == "nearest":
        sizes = torch.unique_consecutive(ids, return_counts=True)[1]
        assert len(sizes) == trained
        assert int(sizes.max() - sizes.min()) <= 1


@pytest.mark.parametrize("strategy", ["repeat_last", "interpolate", "wrap", "truncate"])
@examples(10)
@given(trained_lengths, lengths)
def test_a_length_has_its_ids_whatever_was_asked_before(strategy: str, trained: int, length: int) -> None:
    encoding = built("sinusoidal", train_length=trained, max_position=trained)
    alone = ids_of(strategies.apply(strategy, encoding, trained, length), length)
    ids_of(strategies.apply(strategy, encoding, trained, 2 * length), 2 * length)
    assert torch.equal(ids_of(strategies.apply(strategy, encoding, trained, length), length), alone)


# ---- samplers

windows = st.integers(2, 64)
seeds = st.integers(0, 2**63 - 1)
many = st.integers(64, 3000)
blocks = st.one_of(
    st.fixed_dictionaries(
        {
            "name": st.just("randomized"),
            "max_position": many,
            "per": st.sampled_from(["batch", "example"]),
            "evaluation_draws": st.integers(1, 3),
        }
    ),
    st.builds(lambda shifts, start: {"name": "shifted", "shifts": shifts, "start": min(start, shifts)}, many, many),
    st.fixed_dictionaries({"name": st.just("skipped"), "max_position": many}),
    st.fixed_dictionaries(
        {
            "name": st.just("scaled"),
            "max_shift": st.floats(0, 100),
            "max_jitter": st.floats(0, 0.5),
            "max_scale": st.floats(1, 50),
        }
    ),
)


@examples(120)
@given(blocks, windows, st.data(), seeds)
def test_ids_of_training_are_counted_sorted_in_range_and_of_their_seed(
    block: dict[str, Any], window: int, data: st.DataObject, seed: int
) -> None:
    encoding = sampled(block, max_position=window, train_length=window)
    length = data.draw(st.integers(1, window))
    ids = trained_ids(encoding, length, seed=seed)
    steps = ids.diff(dim=1)
    assert ids.shape == (3, length)
    assert ids.dtype == torch.float32
    assert bool((steps >= 0).all())
    assert 0 <= float(ids.min()) <= float(ids.max()) <= encoding.spec.max_position - 1
    assert torch.equal(trained_ids(encoding, length, seed=seed), ids)
    if block["name"] != "scaled":
        assert torch.equal(ids, ids.round())
        assert bool((steps >= 1).all()), "no two characters of a window have one id"
    if block["name"] == "shifted":
        assert bool((steps == 1).all())
        assert 0 <= float(ids[:, 0].min()) <= float(ids[:, 0].max()) < block["shifts"]
    if block["name"] == "skipped":
        assert bool((ids[:, 0] == 0).all())
        assert bool(((steps > 1).sum(dim=1) <= 1).all()), "it jumps at most once"


@examples(80)
@given(blocks, windows, st.data())
def test_ids_of_evaluation_are_counted_sorted_and_the_same_every_time(
    block: dict[str, Any], window: int, data: st.DataObject
) -> None:
    encoding = sampled(block, max_position=window, train_length=window)
    length = data.draw(st.integers(1, min(encoding.spec.max_position, 200)))
    for one in encoding.draws(length):
        ids = evaluated_ids(one, length)
        assert ids.shape == (length,)
        assert bool((ids.diff() > 0).all())
        assert float(ids[0]) >= 0
        assert torch.equal(evaluated_ids(one, length, batch=1), ids)
        assert block["name"] != "randomized" or float(ids[-1]) <= block["max_position"] - 1


@examples(20)
@given(windows, lengths, seeds)
def test_sequential_counts_the_characters(window: int, length: int, seed: int) -> None:
    encoding = sampled("sequential", "sinusoidal", max_position=window, train_length=window)
    expected = list(range(length))
    assert evaluated_ids(encoding, length).tolist() == expected
    assert trained_ids(encoding, length, seed=seed).tolist() == 3 * [expected]
