"""What every position encoding says of itself is so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from law_cases import ALPHABET, TRAIN_LENGTH, Case, close, every_case, text
from law_cases import one_thread as one_thread
from torch import Tensor

from pe_cli.encodings import registry
from pe_cli.encodings._composition import Renumbered
from pe_cli.encodings.base import Family, ModelSpec, Sees
from pe_cli.encodings.views import Positions
from pe_cli.model import Transformer

every_name = pytest.mark.parametrize("name", registry.names())


def with_ids(model: Transformer, change: Callable[[Positions], Positions]) -> Transformer:
    return model.using(Renumbered(model.encoding, change))


@every_case
def test_sees_is_what_the_logits_show(case: Case) -> None:
    length = 12
    model, tokens = case.model().eval(), text(length)
    order = torch.randperm(length, generator=torch.Generator().manual_seed(5))
    shifted = with_ids(model, lambda positions: replace(positions, ids=positions.ids + 7))
    permuted = with_ids(model, lambda positions: Positions(positions.ids[:, order]))
    with torch.no_grad():
        logits = model(tokens)
        by_shift, by_order = ((other(tokens) - logits).abs().max() for other in (shifted, permuted))
    measured = Sees.ABSOLUTE if by_shift > 1e-3 else Sees.DISTANCE if by_order > 1e-3 else Sees.NOTHING
    assert model.encoding.sees is measured
    if measured is not Sees.ABSOLUTE:
        assert by_shift < 1e-4
    if measured is Sees.NOTHING:
        assert by_order < 1e-4


@every_case
def test_ids_between_whole_numbers_have_a_meaning_where_declared(case: Case) -> None:
    model, tokens = case.model().eval(), text(TRAIN_LENGTH)
    if model.encoding.sees is Sees.NOTHING or not model.encoding.fractional:
        return

    def logits(rounded: Callable[[Tensor], Tensor]) -> Tensor:
        changed = with_ids(model, lambda positions: Positions(rounded(positions.ids / 3)))
        with torch.no_grad():
            return changed(tokens)

    between = logits(lambda ids: ids)
    for rounded in (torch.floor, torch.round, torch.ceil):
        assert (logits(rounded) - between).abs().max() > 1e-4


@every_case
def test_ids_in_batch_shape_are_the_same_ids(case: Case) -> None:
    """Samplers give each row of a batch its own ids, and no step: the distances are then evaluated."""
    model, tokens = case.model().eval(), text(TRAIN_LENGTH)
    spread = with_ids(model, lambda positions: Positions(positions.ids.expand(2, *positions.ids.shape[1:]).clone()))
    with torch.no_grad():
        close(spread(tokens), model(tokens))
    close(spread(tokens), model(tokens))


@every_name
def test_an_encoding_is_documented(name: str) -> None:
    cls = registry.encoding_class(name)
    assert cls.name == name
    assert ".. math::" in (cls.__doc__ or "")
    assert isinstance(cls.family, Family)
    assert str(cls.year) in cls.reference
    for option, field in cls.Options.model_fields.items():
        assert field.description, f"{option} has no docstring"


@every_name
def test_default_options_decode_from_nothing(name: str) -> None:
    cls = registry.encoding_class(name)
    assert cls.Options.model_validate({}) == cls.Options()
    block = registry.canonical_block(name)
    assert registry.canonical_block(block) == block
    registry.build(block, ModelSpec(128, 4, 4, 128, ALPHABET, 128))


def changed_by(name: str, change: Callable[[Positions], Positions]) -> float:
    model, tokens = Case(name).model().eval(), text(12)
    with torch.no_grad():
        return float((with_ids(model, change)(tokens) - model(tokens)).abs().max())


@pytest.mark.parametrize("name", ["rope", "alibi", "t5"])
def test_a_thousand_ids_further_on_distances_are_the_same(name: str) -> None:
    assert changed_by(name, lambda positions: replace(positions, ids=positions.ids + 1000)) < 1e-4
    assert changed_by(name, lambda positions: replace(positions, ids=positions.ids * 2, step=None)) > 1e-3


@pytest.mark.parametrize("name", ["none", "rope", "alibi", "t5", "learned", "sinusoidal"])
@torch.no_grad()
def test_without_an_encoding_one_layer_cannot_tell_an_order(name: str) -> None:
    """The last character sees the others as a set; with an encoding it sees where they stand."""
    model, tokens = Case(name, n_layers=1).model().eval(), text(12)
    order = torch.cat([torch.arange(10, -1, -1), torch.tensor([11])])
    difference = (model(tokens[:, order]) - model(tokens))[:, -1].abs().max()
    assert difference < 1e-5 if name == "none" else difference > 1e-3
