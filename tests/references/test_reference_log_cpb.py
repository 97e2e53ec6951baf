"""Reference numbers of a network that reads the distance or its logarithm: two hidden layers of SiLU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from driving import built, sequential_bias, with_parameters
from reference_cases import Case, agree, fields, run

NOT_COMPARED: dict[str, str] = {}


def spaced(spacing: str) -> Callable[[Case], None]:
    def compare(case: Case) -> None:
        heads, length = case.size("H"), case.size("T")
        *hidden, last = sorted(case.at("parameters"))
        published = {f"network.weights.{n}": case.tensor(f"parameters.{layer}.W") for n, layer in enumerate(hidden)}
        published |= {f"network.biases.{n}": case.tensor(f"parameters.{layer}.b") for n, layer in enumerate(hidden)}
        published[f"network.weights.{len(hidden)}"] = case.tensor(f"parameters.{last}.W")
        width = published["network.biases.0"].numel()
        options = {"spacing": spacing, "width": width, "hidden_layers": len(hidden), "activation": "silu"}
        encoding = built({"name": "log_cpb", **options}, d_model=8 * heads, n_heads=heads)
        ours = sequential_bias(with_parameters(encoding, **published), length)
        # the last bias of the published network is the same for all keys, and left out here
        shifted = ours + case.tensor(f"parameters.{last}.b")[:, None, None]
        agree(shifted, case.tensor(f"expected.{spacing}.bias"), abs=case.tolerance())

    return compare


COMPARISONS = {spacing: spaced(spacing) for spacing in ("linear", "log")}


@pytest.mark.parametrize(("case", "field"), fields("dynamic_position_bias", NOT_COMPARED))
def test_log_cpb_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
