"""What holds for a model with any position encoding: in training, in evaluation, and under each strategy."""

from __future__ import annotations

import pytest
import torch
from law_cases import CASES, TRAIN_LENGTH, Case, assert_causal, close, every_case, text
from law_cases import one_thread as one_thread
from torch import Tensor
from torch.nn import functional as F

from pe_cli import strategies
from pe_cli.encodings import registry
from pe_cli.errors import PositionRangeError, StrategyRefused
from pe_cli.model import Transformer

# ---- training


def loss_of(model: Transformer, tokens: Tensor) -> Tensor:
    logits = model(tokens[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())


def all_gradients(model: Transformer, tokens: Tensor) -> dict[str, Tensor]:
    parameters = dict(model.named_parameters())
    found = torch.autograd.grad(loss_of(model, tokens), list(parameters.values()), allow_unused=True)
    assert None not in found, [name for name, g in zip(parameters, found, strict=True) if g is None]
    return dict(zip(parameters, found, strict=True))


@every_case
def test_every_parameter_gets_a_gradient(case: Case) -> None:
    for name, gradient in all_gradients(case.model(), text(TRAIN_LENGTH + 1, batch=4)).items():
        assert gradient.isfinite().all(), name
        assert gradient.abs().max() > 0, name


@every_case
def test_a_bfloat16_step_is_close_to_a_float32_step(case: Case) -> None:
    model, tokens = case.model(), text(TRAIN_LENGTH + 1, batch=16)  # so many that a few kinks passed do not count
    exact = all_gradients(model, tokens)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = all_gradients(model, tokens)
    for name, gradient in rounded.items():
        assert gradient.isfinite().all(), name
        assert (gradient - exact[name]).norm() < 0.1 * exact[name].norm(), name


# ---- evaluation


@every_case
@torch.no_grad()
def test_four_times_the_training_length_is_finite_or_undefined(case: Case) -> None:
    model = case.model().eval()
    try:
        logits = model(text(4 * TRAIN_LENGTH))
    except PositionRangeError:
        return
    assert logits.isfinite().all()


@pytest.mark.parametrize("name", registry.names())
@torch.no_grad()
def test_4096_characters_are_finite_or_undefined(name: str) -> None:
    """With every parameter away from where it starts."""
    model = CASES[name].model().eval()
    try:
        logits = model(text(4096, batch=1), scored=8)
    except PositionRangeError:
        return
    assert logits.isfinite().all()


@every_case
@torch.no_grad()
def test_evaluation_is_deterministic_and_one_character_is_enough(case: Case) -> None:
    model, tokens = case.model().eval(), text(TRAIN_LENGTH)
    first = model(tokens)
    torch.rand(3)
    assert torch.equal(model(tokens), first)
    alone = model(tokens[:, :1])
    assert alone.isfinite().all()
    close(alone, first[:, :1])


@every_case
def test_one_character_can_be_trained_on(case: Case) -> None:
    loss_of(model := case.model(), text(2)).backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


@every_case
@torch.no_grad()
def test_the_state_holds_everything(case: Case) -> None:
    model, other, tokens = case.model(1).eval(), case.model(2).eval(), text(TRAIN_LENGTH)
    assert not torch.equal(other(tokens), model(tokens))
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(tokens), model(tokens))


@every_case
def test_a_row_of_a_batch_is_the_row_alone(case: Case) -> None:
    model, tokens = case.model(), text(TRAIN_LENGTH, batch=3)
    close(model(tokens[1:2]), model(tokens)[1:2])
    with torch.no_grad():
        close(model(tokens[1:2]), model(tokens)[1:2])


@every_case
@torch.no_grad()
def test_the_last_logits_alone_are_the_last_of_all(case: Case) -> None:
    model, tokens = case.model().eval(), text(TRAIN_LENGTH)
    logits = model(tokens)
    for scored in (1, 5, TRAIN_LENGTH):
        close(model(tokens, scored=scored), logits[:, -scored:])


# ---- strategies


@every_case
def test_no_strategy_changes_anything_up_to_the_training_length(case: Case) -> None:
    encoding = case.model().encoding
    for name in strategies.names():
        for length in (1, TRAIN_LENGTH - 1, TRAIN_LENGTH):
            assert strategies.apply(name, encoding, TRAIN_LENGTH, length) is encoding


@every_case
@torch.no_grad()
def test_a_strategy_is_causal_and_finite_or_refused(case: Case) -> None:
    model, length = case.model().eval(), 2 * TRAIN_LENGTH
    tokens = text(TRAIN_LENGTH)
    before = model(tokens)
    for name in strategies.names():
        try:
            longer = model.using(strategies.apply(name, model.encoding, TRAIN_LENGTH, length))
            assert longer(text(length)).isfinite().all()
        except (StrategyRefused, PositionRangeError):
            continue
        assert_causal(longer, length)
    assert torch.equal(model(tokens), before)
