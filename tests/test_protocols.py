"""Which characters are scored, and what a window sees of the text before them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pe_cli.protocols import Targets, Text, TooShort, non_overlapping, same_targets, sampled, sliding


@st.composite
def texts(draw: st.DrawFn) -> Text:
    held_out = draw(st.integers(2, 400))
    return Text(9 * held_out + draw(st.integers(0, 9)) + held_out, 9 * held_out)


LENGTHS = st.integers(2, 300)
WINDOWS = st.integers(1, 40)
SCORED = st.integers(1, 40)


def scored_places(targets: Targets) -> list[int]:
    """The places in the text whose characters count, window by window."""
    return [
        place for end, scored in zip(targets.ends, targets.scored, strict=True) for place in range(end - scored, end)
    ]


def fits(text: Text, length: int, windows: int, scored: int) -> Targets | None:
    try:
        return same_targets(text, length, windows, scored)
    except TooShort:
        return None


def test_same_targets_of_a_text_worked_out_by_hand() -> None:
    """100 held-out characters: the second half is 950 … 999, and six blocks of 8 start 42/5 apart, rounded down."""
    targets = same_targets(Text(1000, 900), 16, windows=6, scored=8)
    assert targets.ends.tolist() == [958, 966, 974, 983, 991, 1000]
    assert targets.lengths.tolist() == [16] * 6
    assert targets.scored.tolist() == [8] * 6
    assert targets.scored_chars == 48


@given(texts(), LENGTHS, WINDOWS, SCORED)
def test_blocks_lie_spread_over_the_second_half_ends_included(
    text: Text, length: int, windows: int, scored: int
) -> None:
    targets = fits(text, length, windows, scored)
    assume(targets is not None)
    assert targets is not None
    middle = text.held_start + text.held_out // 2
    starts = targets.ends - targets.scored
    assert starts[0] == middle
    if len(starts) > 1:
        assert targets.ends[-1] == text.n_chars
        gaps = np.diff(starts)
        assert gaps.max() - gaps.min() <= 1
        assert gaps.min() >= scored
    places = scored_places(targets)
    assert len(set(places)) == len(places) == targets.scored_chars
    assert len(starts) == min(windows, (text.n_chars - middle) // scored)
    assert set(targets.scored.tolist()) == {scored}


@given(texts(), LENGTHS, WINDOWS, SCORED)
def test_a_length_fits_iff_it_is_not_longer_than_the_text_up_to_the_end_of_the_first_block(
    text: Text, length: int, windows: int, scored: int
) -> None:
    middle = text.held_start + text.held_out // 2
    assume(length >= scored)
    assume(text.n_chars - middle >= scored)
    fitting = length <= middle + scored - text.held_start
    assert (fits(text, length, windows, scored) is not None) == fitting


@given(texts(), st.lists(LENGTHS, min_size=2, max_size=4), WINDOWS, SCORED)
def test_all_lengths_score_the_same_characters(text: Text, lengths: list[int], windows: int, scored: int) -> None:
    found = [targets for length in lengths if (targets := fits(text, length, windows, scored)) is not None]
    assert len({tuple(scored_places(targets)) for targets in found}) <= 1


@given(texts(), LENGTHS, WINDOWS, SCORED)
def test_windows_stay_in_the_held_out_text(text: Text, length: int, windows: int, scored: int) -> None:
    targets = fits(text, length, windows, scored)
    assume(targets is not None)
    assert targets is not None
    assert (targets.ends - targets.lengths).min() >= text.held_start
    assert targets.ends.max() <= text.n_chars


@pytest.mark.parametrize(
    ("length", "scored", "numbers"),
    [
        (59, 8, ["59", "58"]),  # 50 up to the second half and the first block of 8
        (60, 51, ["50", "51"]),
        (8, 16, ["8", "16"]),
    ],
)
def test_a_text_too_short_says_the_numbers_needed_and_present(length: int, scored: int, numbers: list[str]) -> None:
    with pytest.raises(TooShort) as error:
        same_targets(Text(1000, 900), length, windows=6, scored=scored)
    assert [number for number in numbers if number not in str(error.value)] == []
    assert same_targets(Text(1000, 900), 58, windows=6, scored=8).scored_chars == 48


def test_fewer_blocks_where_the_half_cannot_hold_them() -> None:
    targets = same_targets(Text(1000, 900), 16, windows=32, scored=8)
    assert targets.scored_chars == 6 * 8


@given(texts(), LENGTHS)
def test_non_overlapping_scores_each_held_out_character_once(text: Text, length: int) -> None:
    assume(length <= text.held_out)
    targets = non_overlapping(text, length)
    assert scored_places(targets) == list(range(text.held_start, text.n_chars))
    assert (targets.lengths == targets.scored).all()
    assert targets.lengths[:-1].tolist() == [length] * (len(targets.lengths) - 1)
    assert 1 <= targets.lengths[-1] <= length


def test_non_overlapping_refuses_a_window_longer_than_the_held_out_text() -> None:
    assert non_overlapping(Text(1000, 900), 100).lengths.tolist() == [100]
    with pytest.raises(TooShort, match=r"101 .* 100"):
        non_overlapping(Text(1000, 900), 101)


@given(texts(), LENGTHS, WINDOWS)
def test_validation_scores_whole_windows_and_none_twice(text: Text, length: int, windows: int) -> None:
    targets = sampled(text, length, windows)
    length = min(length, text.held_out)
    places = scored_places(targets)
    assert len(set(places)) == len(places) == length * min(windows, text.held_out // length)
    assert min(places) == text.held_start
    assert max(places) < text.n_chars


def test_sliding_worked_out_by_hand() -> None:
    """100 held-out characters, windows of 30 by steps of 25: the last step has 20 characters left."""
    targets = sliding(Text(1000, 900), 30, stride=25, piece=8)
    assert targets.ends.tolist() == [930, 955, 980, 1000]
    assert targets.lengths.tolist() == [30] * 4
    assert targets.scored.tolist() == [30, 25, 25, 20]
    assert targets.pieces.tolist() == [8] * 12 + [4]


@given(texts(), LENGTHS, st.integers(1, 100), SCORED)
def test_sliding_scores_each_held_out_character_once(text: Text, length: int, stride: int, piece: int) -> None:
    assume(length <= text.held_out)
    targets = sliding(text, length, stride, piece)
    assert scored_places(targets) == list(range(text.held_start, text.n_chars))
    assert set(targets.lengths.tolist()) == {length}
    assert (targets.ends - targets.lengths).min() >= text.held_start
    assert targets.scored[0] == length
    assert set(targets.scored[1:-1].tolist()) <= {min(stride, length)}
    assert 1 <= targets.scored[-1] <= length
    assert targets.pieces.sum() == targets.scored_chars
    assert set(targets.pieces[:-1].tolist()) <= {piece}


@pytest.mark.parametrize("stride", [1, 7, 64])
def test_all_strides_score_as_many_characters_in_the_same_pieces(stride: int) -> None:
    targets = sliding(Text(2000, 1800), 128, stride, piece=64)
    assert targets.scored_chars == 200
    assert targets.pieces.tolist() == [64, 64, 64, 8]
    assert len(targets.ends) == {1: 73, 7: 12, 64: 3}[stride]


def test_sliding_refuses_a_window_longer_than_the_held_out_text() -> None:
    assert sliding(Text(1000, 900), 100, 64, 8).ends.tolist() == [1000]
    with pytest.raises(TooShort, match=r"101 .* 100"):
        sliding(Text(1000, 900), 101, 64, 8)
