"""Tree paths: groups of brackets or indented blocks, read from left to right, and the paper's code of a path."""

from __future__ import annotations

import math

import pytest
import torch
from driving import built, with_parameters
from hypothesis import given, settings
from hypothesis import strategies as st
from strategy_cases import BY_IDS
from torch import Tensor

from pe_cli import strategies
from pe_cli.encodings.base import PositionEncoding
from pe_cli.encodings.views import Positions
from pe_cli.errors import ConfigError, StrategyRefused
from pe_cli.inspection import SAMPLE_TEXT

ALPHABET = "ab([{)]} \t\n"
LAYOUT = {"nesting": "indentation", "branches": 8, "depth": 4}


def tree(**options: object) -> PositionEncoding:
    return built({"name": "tree", **options}, alphabet="".join(sorted({*ALPHABET, *SAMPLE_TEXT, *"xy=1"})))


def ids(encoding: PositionEncoding, *texts: str) -> Tensor:
    alphabet = encoding.spec.alphabet
    return encoding.positions(torch.tensor([[alphabet.index(c) for c in text] for text in texts])).ids


def paths(encoding: PositionEncoding, text: str) -> list[list[int]]:
    """Branches from the innermost group out, as many as there are."""
    return [[int(step) - 1 for step in path if step > 0] for path in ids(encoding, text)[0].tolist()]


class Group:
    """A group of a parser that keeps a stack."""

    def __init__(self, around: Group | None = None, width: int = 0) -> None:
        self.around, self.width, self.children = around, width, 0
        self.branch = 0
        if around is not None:
            self.branch = around.children
            around.children += 1

    def path(self, branches: int, depth: int) -> list[int]:
        steps: list[int] = []
        group: Group = self
        while group.around is not None:
            steps.append(min(group.branch, branches - 1))
            group = group.around
        return steps[:depth]


def parsed_brackets(text: str, branches: int, depth: int) -> list[list[int]]:
    found, group = [], Group()
    for character in text:
        if character in "([{":
            group = Group(group)
        found.append(group.path(branches, depth))
        if character in ")]}" and group.around is not None:
            group = group.around
    return found


def parsed_indentation(text: str, branches: int, depth: int) -> list[list[int]]:
    found, group = [], Group()
    for line in text.splitlines(keepends=True):
        body = line.lstrip(" \t")
        width = len(line) - len(body)
        found += [group.path(branches, depth)] * width
        if body not in ("", "\n"):
            while group.around is not None and group.width > width:
                group = group.around
            if group.width < width:
                group = Group(group, width)
        found += [group.path(branches, depth)] * len(body)
    return found


def test_the_examples_of_the_docstring() -> None:
    assert paths(tree(), "f(a,[b])(c)") == [[], [0], [0], [0], [0, 0], [0, 0], [0, 0], [0], [1], [1], [1]]
    lines = ["def f():\n", "    x = 1\n", "    if x:\n", "        y\n", "b"]
    text = "".join(lines)
    encoding = tree(nesting="indentation")
    by_line, start = [], 0
    for line in lines:
        by_line.append(paths(encoding, text)[start : start + len(line)])
        start += len(line)
    assert by_line[0] == [[]] * 9
    assert by_line[1] == [[]] * 4 + [[0]] * 6
    assert by_line[2] == [[0]] * 10
    assert by_line[3] == [[0]] * 8 + [[0, 0]] * 2
    assert by_line[4] == [[]]


@given(st.text(ALPHABET, min_size=1, max_size=60), st.integers(1, 5), st.integers(1, 5))
def test_brackets_against_a_stack(text: str, branches: int, depth: int) -> None:
    encoding = tree(branches=branches, depth=depth)
    assert paths(encoding, text) == parsed_brackets(text, branches, depth)


@given(st.text("a \t\n", min_size=1, max_size=60), st.integers(1, 5), st.integers(1, 5))
def test_indentation_against_a_stack(text: str, branches: int, depth: int) -> None:
    encoding = tree(nesting="indentation", branches=branches, depth=depth)
    assert paths(encoding, text) == parsed_indentation(text, branches, depth)


def test_a_page_of_code() -> None:
    assert paths(tree(**LAYOUT), SAMPLE_TEXT * 3) == parsed_indentation(SAMPLE_TEXT * 3, 8, 4)
    assert paths(tree(depth=4), SAMPLE_TEXT * 3) == parsed_brackets(SAMPLE_TEXT * 3, 4, 4)


@given(st.text(ALPHABET, min_size=1, max_size=30), st.text(ALPHABET, max_size=30), st.sampled_from([{}, LAYOUT]))
def test_ids_do_not_depend_on_what_follows(start: str, rest: str, options: dict[str, object]) -> None:
    encoding = tree(**options)
    assert torch.equal(ids(encoding, start + rest)[:, : len(start)], ids(encoding, start))


@given(
    st.integers(1, 30).flatmap(lambda n: st.lists(st.text(ALPHABET, min_size=n, max_size=n), min_size=2, max_size=4))
)
def test_each_row_of_a_batch_is_read_by_itself(texts: list[str]) -> None:
    for encoding in (tree(), tree(**LAYOUT)):
        assert torch.equal(ids(encoding, *texts), torch.cat([ids(encoding, text) for text in texts]))


def test_closing_brackets_without_an_open_one_are_ordinary_characters() -> None:
    assert paths(tree(), ")]a(b)}(a") == [[], [], [], [0], [0], [0], [], [1], [1]]
    assert paths(tree(), "([a)b") == [[0], [0, 0], [0, 0], [0, 0], [0]], "any closing one closes the innermost"


def test_deep_and_wide_texts_keep_the_nearest_steps() -> None:
    encoding = tree(branches=3, depth=2)
    assert paths(encoding, 200 * "(")[-1] == [0, 0]
    assert [path[0] for path in paths(encoding, 5 * "()")] == [0, 0, 1, 1, 2, 2, 2, 2, 2, 2]


@pytest.mark.parametrize("nesting", ["brackets", "indentation"])
def test_without_groups_nothing_is_added(nesting: str) -> None:
    encoding = built({"name": "tree", "nesting": nesting}, alphabet="abc")
    tokens = torch.tensor([[0, 1, 2, 1]])
    x = torch.randn(1, 4, 32, dtype=torch.float64)
    assert not encoding.positions(tokens).ids.any()
    assert torch.equal(encoding.embed(x, encoding.positions(tokens)), x)


# ---- the code of a path


def code(encoding: PositionEncoding, *path: int) -> Tensor:
    """What is added at a node, given by its branches from the node up to the root."""
    steps = [step + 1 for step in path] + (ids(encoding, "a").shape[-1] - len(path)) * [0]
    x = torch.zeros(1, 1, encoding.spec.d_model, dtype=torch.float64)
    return encoding.embed(x, Positions(torch.tensor([[steps]], dtype=torch.float32)))[0, 0].detach()


def with_decays(*decays: float, **options: object) -> PositionEncoding:
    width = torch.atanh(torch.tensor(decays, dtype=torch.float64))
    return with_parameters(built({"name": "tree", **options}, d_model=12, n_heads=1), decay=width)


def test_a_plain_path_is_ones_and_zeros_padded_to_the_width() -> None:
    encoding = built({"name": "tree", "branches": 3, "depth": 2, "levels": "plain"}, d_model=8, n_heads=1)
    assert code(encoding, 2, 0).tolist() == [0, 0, 1, 1, 0, 0, 0, 0]
    assert code(encoding).tolist() == 8 * [0]
    assert not list(encoding.parameters())


def test_two_decays_beside_each_other_worked_by_hand() -> None:
    """√(1 − 0.6²) √(12 / 2) = 0.8 √6 for q = 0.6, and 0.6 √6 for q = 0.8; 2 blocks × 3 places × 2 decays."""
    found = code(with_decays(0.6, 0.8, branches=3, depth=2), 2, 0) / math.sqrt(6)
    nearest, second = [0, 0, 0, 0, 0.8, 0.6], [0.6 * 0.8, 0.8 * 0.6, 0, 0, 0, 0]
    assert found.tolist() == pytest.approx(nearest + second, abs=1e-12)


@settings(deadline=None)  # the first comparison of tensors loads a module
@given(st.lists(st.integers(0, 2), max_size=3), st.integers(0, 2), st.floats(0.05, 0.95))
def test_a_step_down_is_one_affine_map_from_every_node(path: list[int], branch: int, decay: float) -> None:
    """The paper's D_b: push the one-hot of the branch, decay and shift the rest."""
    encoding = with_decays(decay, branches=3, depth=4)
    pushed = torch.zeros(12, dtype=torch.float64)
    pushed[branch] = math.sqrt(1 - decay**2) * math.sqrt(6)
    pushed[3:] = decay * code(encoding, *path)[:-3]
    torch.testing.assert_close(code(encoding, branch, *path), pushed)


def test_the_length_of_a_deep_code_comes_near_that_of_a_row_of_sines() -> None:
    norms = [code(with_decays(0.7, branches=1, depth=12), *(depth * [0])).norm().item() for depth in range(13)]
    assert norms == pytest.approx([math.sqrt(6 * (1 - 0.7 ** (2 * depth))) for depth in range(13)])


def test_as_many_decays_as_fit() -> None:
    for width, shape in ((16, (4, 1)), (32, (8, 1)), (39, (8, 1)), (128, (8, 4))):
        encoding = built("tree", d_model=width, n_heads=1)
        decay = encoding.get_parameter("decay")
        assert (ids(encoding, "a").shape[-1], len(decay)) == shape
        assert decay.min() >= 0.7
        assert decay.max() <= 0.999


def test_left_over_columns_stay_as_they_are() -> None:
    encoding = built({"name": "tree", "branches": 2, "depth": 3}, d_model=14, n_heads=1)
    assert code(encoding, 1, 1, 0).ne(0).tolist() == [
        *[False, False, True, True] * 2,
        *[True, True, False, False],
        *[False] * 2,
    ]


def test_ids_of_a_batch_and_bits_of_a_float32_model() -> None:
    encoding = built({"name": "tree", "depth": 2}, dtype=torch.float32, alphabet=ALPHABET)
    positions = Positions(ids(encoding, "(a)b", "a(b)"))
    added = encoding.embed(torch.zeros(2, 4, 32), positions)
    assert added.dtype == torch.float32
    assert added.ne(0).any(dim=-1).tolist() == [[True, True, True, False], [False, True, True, True]]


@pytest.mark.parametrize("name", BY_IDS)
def test_strategies_that_change_ids_are_refused(name: str) -> None:
    with pytest.raises(StrategyRefused, match=f"{name} has no meaning for tree: its ids are read from the"):
        strategies.apply(name, tree(), 16, 32)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"depth": 9}, r"9 blocks of 4 branches do not fit into model\.d_model 32; depth: 8 would do"),
        ({"branches": 33}, r"1 blocks of 33 branches do not fit into model\.d_model 32; branches: 32 would do"),
        ({"branches": 0}, "branches"),
        ({"depth": 0}, "depth"),
        ({"nesting": "words"}, "nesting"),
        ({"levels": "learned"}, "levels"),
    ],
)
def test_options_that_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        built({"name": "tree", **options})


def test_decays_are_shown() -> None:
    assert with_decays(0.6, branches=3, depth=4).numbers(1)["decays"].tolist() == pytest.approx([0.6])
