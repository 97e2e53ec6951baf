"""What the released code of randomized positions has: properties of the ids, as they depend on the generator."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from reference_cases import Case, fields, run
from sampled import sampled, trained_ids
from torch import Tensor

DRAWS = 4000
NOT_COMPARED: dict[str, str] = {}


def sampler(case: Case, **sizes: Any) -> Any:
    length, most = case.size("T"), case.size("L_max")
    return sampled({"name": "randomized", "max_position": most}, train_length=length, max_position=length, **sizes)


def drawn(case: Case, draws: int = DRAWS) -> Tensor:
    """(draws, T): the ids of one forward each."""
    generator = torch.Generator().manual_seed(0)
    encoding, tokens = sampler(case), torch.zeros(2, case.size("T"), dtype=torch.long)
    return torch.cat([encoding.positions(tokens, generator).ids for _ in range(draws)])


def length(case: Case) -> None:
    assert drawn(case, 1).shape == (1, case.size("T"))  # for all windows of the batch


def increasing(case: Case) -> None:
    assert bool((drawn(case).diff(dim=1) > 0).all())


def lowest(case: Case) -> None:
    assert float(drawn(case).min()) >= 0


def highest(case: Case) -> None:
    assert float(drawn(case).max()) <= case.size("L_max") - 1


def seeds(case: Case) -> None:
    size = case.size("T")
    first, again, other = (trained_ids(sampler(case), size, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def all_of_them(case: Case) -> None:
    most = case.size("L_max")
    encoding = sampled({"name": "randomized", "max_position": most}, train_length=most, max_position=most)
    assert torch.equal(trained_ids(encoding, most)[0], torch.arange(float(most)))


def mean_by_formula(case: Case) -> None:
    size, most = case.size("T"), case.size("L_max")
    means(case, torch.tensor([(place + 1) * (most + 1) / (size + 1) - 1 for place in range(size)]))


def means(case: Case, expected: Tensor) -> None:
    ids = drawn(case).double()
    error = ids.std(dim=0) / DRAWS**0.5
    assert bool(((ids.mean(dim=0) - expected).abs() < 4 * error).all())


PROPERTIES = {
    "length T": length,
    "strictly increasing (hence unique)": increasing,
    "min >= 0": lowest,
    "max <= L_max-1": highest,
    "different draws for different seeds, equal draws for equal seeds": seeds,
    "T == L_max gives exactly 0..L_max-1": all_of_them,
    "mean of draw index t (0-based) over many draws = (t+1)*(L_max+1)/(T+1)-1": mean_by_formula,
}


def every_property(case: Case) -> None:
    for stated in case.at("expected.properties"):
        PROPERTIES[stated](case)


COMPARISONS = {
    "properties": every_property,
    "expected_mean_of_index_t": lambda case: means(case, case.tensor("expected.expected_mean_of_index_t")),
}


@pytest.mark.parametrize(("case", "field"), fields("randomized_positions", NOT_COMPARED))
def test_randomized_positions_reference(case: Case, field: str) -> None:
    run(COMPARISONS, case, field)
