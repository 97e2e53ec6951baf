"""Reference numbers of FIRE, with the threshold inside the text, beyond it, and after training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from driving import built, sequential_bias, with_parameters
from reference_cases import Case, agree, fields, run
from torch import Tensor

from pe_cli.encodings.base import PositionEncoding

NOT_COMPARED: dict[str, str] = {}


def encoding_of(case: Case, setting: str, network: dict[str, Tensor], heads: int) -> PositionEncoding:
    stated: dict[str, Any] = case.at(f"expected.{setting}")
    width = len(network["network.biases.0"])
    block = {"name": "fire", "threshold": stated["L_init"], "width": width}
    numbers = {
        "scale": torch.tensor(stated["c"], dtype=torch.float64),
        "multiplier": torch.tensor(stated["L_multiplier"], dtype=torch.float64),
    }
    return with_parameters(built(block, d_model=8 * heads, n_heads=heads), **numbers, **network)


def bias_and_argument(setting: str) -> Callable[[Case], None]:
    def compare(case: Case) -> None:
        heads, length, last_bias = case.size("H"), case.size("T"), case.tensor("parameters.b2")
        published = {
            "network.weights.0": case.tensor("parameters.W1"),
            "network.biases.0": case.tensor("parameters.b1"),
            "network.weights.1": case.tensor("parameters.W2"),
        }
        assert len(published["network.biases.0"]) == case.size("mlp_width")
        # the last bias of the published MLP is the same for all keys, and left out here
        ours = sequential_bias(encoding_of(case, setting, published, heads), length) + last_bias[:, None, None]
        agree(ours, case.tensor(f"expected.{setting}.bias"), abs=case.tolerance())

        one = torch.ones(1, dtype=torch.float64)
        nothing = torch.zeros(1, dtype=torch.float64)
        identity = {"network.weights.0": one, "network.biases.0": nothing, "network.weights.1": one}
        argument = sequential_bias(encoding_of(case, setting, identity, 1), length)[0]
        theirs = case.tensor(f"expected.{setting}.normalised_distance_own_formula")
        agree(argument, theirs, abs=case.tolerance())

    return compare


COMPARISONS = {setting: bias_and_argument(setting) for setting in ("threshold_inside", "threshold_large", "learned")}


@pytest.mark.parametrize(("case", "field"), fields("fire", NOT_COMPARED))
def test_fire_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
