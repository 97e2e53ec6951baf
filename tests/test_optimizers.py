"""Which parameter is trained how, at what rate, and that the state of the optimisers is all there is to them."""

from __future__ import annotations

from itertools import chain

import pytest
import torch

from pe_cli.config import TrainingConfig
from pe_cli.encodings import registry
from pe_cli.encodings.base import ModelSpec
from pe_cli.model import Transformer, new_model
from pe_cli.optimizers import Optimizers, parameter_groups, schedule

SPEC = ModelSpec(d_model=16, n_heads=2, n_layers=2, train_length=8, alphabet="abcde", max_position=8)
MATRICES = ("query", "key", "value", "out", "gate", "up", "down")


def fresh(encoding: str, seed: int = 0, qk_norm: bool = False) -> Transformer:
    return new_model(SPEC, encoding, seed, qk_norm=qk_norm)


def with_gradients(model: Transformer, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)


def values(model: Transformer) -> dict[str, torch.Tensor]:
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


# --- groups


@pytest.mark.parametrize("name", registry.names())
@pytest.mark.parametrize("optimizer", ["muon", "adamw"])
def test_every_parameter_is_in_the_group_that_its_role_asks_for(name: str, optimizer: str) -> None:
    model = fresh(name, qk_norm=True)
    names = {parameter: name for name, parameter in model.named_parameters()}
    groups = {
        group: [names[parameter] for parameter in members]
        for group, members in parameter_groups(model, optimizer).items()
    }
    assert sorted(chain.from_iterable(groups.values())) == sorted(names.values())
    matrices = [f"blocks.{layer}.{matrix}.weight" for layer in range(2) for matrix in MATRICES]
    rest = ["embedding.weight", "head.weight"]
    assert sorted(groups["muon"]) == (sorted(matrices) if optimizer == "muon" else [])
    assert sorted(groups["adamw"]) == sorted(rest if optimizer == "muon" else rest + matrices)
    position = {name for name in names.values() if name.startswith("encoding.")}
    assert position <= set(groups["adamw, no weight decay"])
    gains = set(groups["adamw, no weight decay"]) - position
    assert all("norm" in name and model.get_parameter(name).ndim == 1 for name in gains)


@pytest.mark.parametrize("name", registry.names())
@pytest.mark.parametrize("optimizer", ["muon", "adamw"])
def test_weight_decay_alone_shrinks_the_matrices_and_nothing_else(name: str, optimizer: str) -> None:
    rates = {"muon": 0.02, "adamw": 0.004}
    model = fresh(name)
    config = TrainingConfig(
        optimizer=optimizer, learning_rate=rates["adamw"], muon_learning_rate=rates["muon"], weight_decay=10
    )
    optimizers = Optimizers(model, config)
    before = values(model)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizers.step(0.5)
    for group, members in parameter_groups(model, optimizer).items():
        kept = 1.0 if "no weight decay" in group else 1 - 0.5 * rates[group] * 10
        for parameter in members:
            [key] = [key for key, value in model.named_parameters() if value is parameter]
            torch.testing.assert_close(parameter.detach(), before[key] * kept, rtol=1e-6, atol=0)
            assert kept < 1 or torch.equal(parameter, before[key])


# --- rates


@pytest.mark.parametrize(
    ("steps", "warmup", "factors"),
    [
        (10, 4, [1 / 5, 2 / 5, 3 / 5, 4 / 5, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6]),
        (4, 0, [1, 3 / 4, 2 / 4, 1 / 4]),
        (1, 0, [1]),
        (3, 20, [1 / 21, 2 / 21, 3 / 21]),
        (5, 4, [1 / 5, 2 / 5, 3 / 5, 4 / 5, 1]),
    ],
)
def test_the_schedule_rises_and_falls_in_straight_lines(steps: int, warmup: int, factors: list[float]) -> None:
    assert [schedule(step, steps, warmup) for step in range(steps)] == pytest.approx(factors, rel=1e-12)


def test_a_factor_scales_both_rates() -> None:
    model = fresh("learned")
    optimizers = Optimizers(model, TrainingConfig(learning_rate=0.003, muon_learning_rate=0.02))
    for factor in (0.25, 1.0):
        with_gradients(model, seed=0)
        optimizers.step(factor)
        rates = {group["lr"] for optimizer in optimizers.optimizers for group in optimizer.param_groups}
        assert rates == {0.003 * factor, 0.02 * factor}


# --- state


@pytest.mark.parametrize("optimizer", ["muon", "adamw"])
def test_a_restored_state_goes_on_bit_for_bit(optimizer: str) -> None:
    config = TrainingConfig(optimizer=optimizer, weight_decay=0.1)
    straight, resumed = fresh("learned"), fresh("learned", seed=1)
    optimizers = Optimizers(straight, config)
    for step in range(3):
        with_gradients(straight, seed=step)
        optimizers.step(1.0)
    resumed.load_state_dict(straight.state_dict())
    again = Optimizers(resumed, config)
    again.restore({name: tensor.clone() for name, tensor in optimizers.state().items()})
    assert {name: tensor.tolist() for name, tensor in again.state().items()} == {
        name: tensor.tolist() for name, tensor in optimizers.state().items()
    }
    for step in range(3, 5):
        for model, each in ((straight, optimizers), (resumed, again)):
            with_gradients(model, seed=step)
            each.step(0.5)
    first, second = values(straight), values(resumed)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_gradients_are_gone_after_a_step() -> None:
    model = fresh("t5")
    with_gradients(model, seed=0)
    Optimizers(model, TrainingConfig()).step(1.0)
    assert all(parameter.grad is None for parameter in model.parameters())
