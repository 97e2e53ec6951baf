"""What every sampler keeps to, and what it does not combine with."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from driving import SPEC
from sampled import BLOCKS, WINDOW, evaluated_ids, sampled, tokens, trained_ids
from torch import Tensor

from pe_cli import samplers, strategies
from pe_cli.config import resolve
from pe_cli.encodings import registry
from pe_cli.encodings.base import PositionEncoding, Sees
from pe_cli.errors import ConfigError
from pe_cli.model import new_model, parameter_counts

every_sampler = pytest.mark.parametrize("block", BLOCKS.values(), ids=list(BLOCKS))
STRUCTURAL = ["abacus", "tree", "bipe", "line_column", {"name": "mix", "parts": ["alibi", "abacus"]}]
PARTS = {"name": "mix", "parts": ["learned", {"name": "layered", "pattern": ["rope", "none"]}]}


def rows(encoding: PositionEncoding) -> int:
    return encoding.spec.max_position


def test_every_sampler_is_among_the_cases() -> None:
    assert {block["name"] for block in BLOCKS.values()} | {"sequential"} == set(samplers.names())


@pytest.mark.parametrize("positions", [{"name": "shifted", "shifts": 2**24}, {"name": "scaled", "max_shift": 2**24}])
def test_ids_that_float32_cannot_tell_apart_are_refused(positions: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"positions: ids up to \d+: must be at most 16777216"):
        sampled(positions)


@pytest.mark.parametrize("most", [1e12, 1e308])
def test_a_shift_has_a_largest(most: float) -> None:
    with pytest.raises(ConfigError, match="max_shift: must be less than or equal to 16777216"):
        sampled({"name": "scaled", "max_shift": most})


@pytest.mark.parametrize("block", ["shifted", "shifted, later start", "scaled", "scaled, far"])
@pytest.mark.parametrize("strategy", ["zero", "mean", "random", "fourier", "hierarchical"])
def test_an_extended_table_begins_with_the_rows_of_a_training_window(block: str, strategy: str) -> None:
    """Wherever a sampler starts to count."""
    encoding = sampled(BLOCKS[block], "sinusoidal")
    length = encoding.trained_length(WINDOW) + 3
    extended = strategies.apply(strategy, encoding, WINDOW, length)
    assert extended is not encoding

    def rows(of: PositionEncoding, count: int) -> Tensor:
        return of.embed(torch.zeros(1, count, SPEC.d_model), of.positions(tokens(count, 1)))[0]

    assert torch.allclose(rows(extended, length)[:WINDOW], rows(encoding, WINDOW), atol=1e-5)


# --- ids of training


@every_sampler
@pytest.mark.parametrize("length", [1, 2, 7, WINDOW])
def test_ids_of_training_are_in_order_and_in_range(block: dict[str, Any], length: int) -> None:
    encoding = sampled(block)
    for seed in range(20):
        ids = trained_ids(encoding, length, seed=seed)
        assert ids.dtype == torch.float32
        assert bool((ids.diff(dim=1) >= 0).all())
        assert 0 <= float(ids.min()) <= float(ids.max()) <= rows(encoding) - 1


@every_sampler
def test_ids_of_training_come_from_the_generator_alone(block: dict[str, Any]) -> None:
    before = torch.get_rng_state()
    encoding = sampled(block)
    assert torch.equal(trained_ids(encoding, seed=5), trained_ids(encoding, seed=5))
    assert torch.equal(torch.get_rng_state(), before)
    fixed = block in (BLOCKS["randomized, no room"], BLOCKS["skipped, no room"], BLOCKS["scaled, whole"])
    assert torch.equal(trained_ids(encoding, seed=5), trained_ids(encoding, seed=6)) == fixed


@every_sampler
def test_a_saved_generator_goes_on_where_it_was(block: dict[str, Any]) -> None:
    encoding, generator = sampled(block), torch.Generator().manual_seed(3)
    encoding.positions(tokens(WINDOW), generator)
    state = generator.get_state()
    following = encoding.positions(tokens(WINDOW), generator).ids
    assert torch.equal(encoding.positions(tokens(WINDOW), torch.Generator().set_state(state)).ids, following)


@every_sampler
@pytest.mark.parametrize("training", [True, False])
def test_all_parts_of_a_composition_have_the_same_ids(block: dict[str, Any], training: bool) -> None:
    generator = torch.Generator().manual_seed(0) if training else None
    first, *others = sampled(block, PARTS).positions(tokens(WINDOW), generator).leaves()
    assert len(others) == 2
    assert all(torch.equal(first.ids, other.ids) and first.step == other.step for other in others)


@every_sampler
def test_a_table_has_a_row_for_every_id_of_training(block: dict[str, Any]) -> None:
    model = new_model(SPEC, "learned", 0, positions=block)
    for seed in range(5):
        logits = model(tokens(WINDOW), torch.Generator().manual_seed(seed))
        assert bool(logits.isfinite().all())
    assert bool(model(tokens(WINDOW)).isfinite().all())
    assert sum(parameter.numel() for parameter in model.encoding.parameters()) == rows(model.encoding) * SPEC.d_model
    assert parameter_counts(SPEC, "learned", block)[1] == rows(model.encoding) * SPEC.d_model


# --- ids of evaluation


@every_sampler
def test_ids_of_evaluation_depend_on_the_length_alone(block: dict[str, Any]) -> None:
    encoding = sampled(block)
    for length in (1, 5, WINDOW):
        for one, again in zip(encoding.draws(length), sampled(block).draws(length), strict=True):
            evaluated_ids(one, 40 if block["name"] != "randomized" else WINDOW)
            assert torch.equal(evaluated_ids(one, length), evaluated_ids(again, length, batch=1))
            assert bool((evaluated_ids(one, length).diff() > 0).all())


@every_sampler
@pytest.mark.parametrize("name", ["sinusoidal", "alibi"])
def test_up_to_the_trained_length_evaluation_sees_nothing_new(block: dict[str, Any], name: str) -> None:
    encoding = sampled(block, name)
    trained = encoding.trained_length(WINDOW)
    assert trained >= WINDOW - (block["name"] == "shifted")
    seen = torch.cat([trained_ids(encoding, batch=200, seed=seed) for seed in range(20)])
    for one in encoding.draws(trained):
        ids = evaluated_ids(one, trained)
        if encoding.sees is Sees.ABSOLUTE:
            assert float(ids.max()) <= rows(encoding) - 1
        else:
            # no draw need be as wide as the widest that there can be
            assert float(ids[-1] - ids[0]) <= 1.25 * float((seen[:, -1] - seen[:, 0]).max())


@every_sampler
@pytest.mark.parametrize("name", ["learned", "sinusoidal", "alibi", PARTS], ids=str)
def test_strategies_begin_beyond_the_trained_length(block: dict[str, Any], name: Any) -> None:
    encoding = sampled(block, name)
    inner = encoding.get_submodule("inner")
    assert isinstance(inner, PositionEncoding)
    lengths = [part.trained_length(WINDOW) for part in (inner.members() if name is PARTS else [inner])]  # type: ignore[operator]
    assert strategies.apply("interpolate", encoding, WINDOW, min(lengths)) is encoding
    longer = max(lengths) + 1
    changed = strategies.apply("interpolate", encoding, WINDOW, longer)
    assert changed is not encoding
    positions = changed.positions(tokens(longer))
    for leaf, trained in zip(positions.leaves(), lengths, strict=False):  # the last part has no use for ids
        start = float(sampled(block).positions(tokens(1)).ids[0, 0]) if block["name"] != "randomized" else 0
        assert leaf.ids[0, 0] == start
        assert float(leaf.ids[0, -1]) == pytest.approx(start + trained - 1)
    if name == "learned":
        changed.embed(torch.zeros(1, longer, SPEC.d_model), positions)  # there are rows for all of them


@pytest.mark.parametrize("strategy", ["window", "sinks", "log_n", "truncate"])
def test_strategies_that_leave_ids_alone_meet_every_draw(strategy: str) -> None:
    encoding = sampled({"name": "randomized", "max_position": 2 * WINDOW, "evaluation_draws": 2}, "rope")
    length = 2 * WINDOW - 1
    changed = strategies.apply(strategy, encoding, WINDOW, length)
    seen = WINDOW if strategy == "truncate" else length
    pairs = list(zip(changed.draws(length), encoding.draws(seen), strict=True))
    assert len(pairs) == 2
    for changed_draw, draw in pairs:
        assert type(changed_draw) is type(changed)
        assert torch.equal(evaluated_ids(changed_draw, seen), evaluated_ids(draw, seen))


def test_a_truncated_window_has_the_draws_of_its_own_length() -> None:
    encoding = sampled({"name": "randomized", "max_position": 2 * WINDOW, "evaluation_draws": 2}, "rope")
    assert len(strategies.apply("truncate", encoding, WINDOW, 3 * WINDOW).draws(3 * WINDOW)) == 2


# --- what does not combine


@every_sampler
@pytest.mark.parametrize("encoding", STRUCTURAL, ids=str)
def test_encodings_that_read_ids_from_the_text_are_refused(block: dict[str, Any], encoding: Any) -> None:
    name = "abacus" if isinstance(encoding, dict) else encoding
    with pytest.raises(ConfigError, match=rf"^positions: {name} reads its ids .* those of {block['name']}"):
        sampled(block, encoding)
    sampled("sequential", encoding)


@pytest.mark.parametrize("name", registry.names())
def test_every_encoding_takes_the_ids_of_a_sampler_or_says_why_not(name: str) -> None:
    sizes = {"d_model": 64, "n_heads": 4}
    alone = registry.build(name, SPEC)
    for block in (BLOCKS["randomized"], BLOCKS["shifted"], BLOCKS["scaled"], BLOCKS["skipped"]):
        why = None
        if alone.sees is Sees.NOTHING:
            why = "sees no ids"
        elif "positions" in alone.hooks(0):
            why = "reads its ids"
        elif block["name"] == "scaled" and not alone.fractional:
            why = "between whole numbers"
        if why is not None:
            with pytest.raises(ConfigError, match=why):
                sampled(block, name, **sizes)
        else:
            encoding = sampled(block, name, **sizes)
            assert (encoding.name, encoding.reference) == (name, registry.encoding_class(name).reference)


def test_parts_that_take_no_ids_between_whole_numbers_are_refused_too() -> None:
    with pytest.raises(ConfigError, match=r"^positions: scaled .* mean nothing to mix$"):
        sampled("scaled", {"name": "mix", "parts": ["rope", "t5"]})


WHOLE = [
    (cls.name, option)
    for cls in samplers.catalogue()
    for option, field in cls.Options.model_fields.items()
    if field.annotation is int
]


@pytest.mark.parametrize(("name", "option"), WHOLE)
@pytest.mark.parametrize("count", [0, 2**24 + 1, 10**9])
def test_a_count_that_no_one_means_is_refused_by_key(name: str, option: str, count: int) -> None:
    if (option, count) == ("start", 0):
        return
    with pytest.raises(ConfigError, match=rf"--set positions\.{option}={count}: positions"):
        resolve(None, {"positions": name, f"positions.{option}": str(count)})


def test_every_sampler_with_counts_is_among_them() -> None:
    assert {("randomized", "evaluation_draws"), ("randomized", "max_position"), ("shifted", "shifts")} <= set(WHOLE)
