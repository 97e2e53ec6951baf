import math

import pytest
import torch
from driving import layer_of, logits
from longer import LENGTH, at_length, frequencies_at

from pe_cli import strategies
from pe_cli.errors import ConfigError, StrategyRefused

SIZES = {"d_model": 16, "n_heads": 1, "train_length": 128}


def test_frequencies_are_those_of_ntk_by_parts() -> None:
    for beta in (4, 16):
        parts = frequencies_at({"name": "ntk_by_parts", "beta": beta}, 512, **SIZES)
        assert frequencies_at({"name": "yarn", "beta_fast": beta}, 512, **SIZES) == parts
    assert frequencies_at("yarn", 512, **SIZES) == frequencies_at("ntk_by_parts", 512, **SIZES)


@pytest.mark.parametrize("block", ["rope", {"name": "rope_partial", "fraction": 0.5}])
def test_all_logits_are_multiplied_by_the_square_of_the_attention_factor(block: object) -> None:
    """m = 0.1 ln 4 + 1 at four times the length; columns that do not turn have it too."""
    q, k = torch.randn(2, 1, 32, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    sizes = {"d_model": 8, "n_heads": 1}
    plain = logits(at_length("ntk_by_parts", block, 32, **sizes), layer_of(q, k))
    found = logits(at_length("yarn", block, 32, **sizes), layer_of(q, k))
    m = 0.1 * math.log(4) + 1
    assert m == pytest.approx(1.1386, abs=1e-4)
    seen = plain.isfinite()
    torch.testing.assert_close(found[seen], plain[seen] * m**2)


def test_the_ramp_by_pairs_is_another_function() -> None:
    by_turns, by_pairs = (
        frequencies_at({"name": "yarn", "ramp": ramp, "beta_fast": 32}, 512, **SIZES) for ramp in ("turns", "pairs")
    )
    assert by_pairs[0] == 1  # it begins at pair 0, where the paper's makes 20.4 of 32 turns
    assert by_turns[0] == pytest.approx(1 / 4 + 3 / 4 * (128 / (2 * math.pi) - 1) / 31)


def test_a_factor_of_one_changes_nothing() -> None:
    encoding = at_length("none", "rope", LENGTH)
    assert strategies.apply("yarn(factor=1)", encoding, LENGTH, 64) is encoding


def test_refused() -> None:
    with pytest.raises(StrategyRefused, match="yarn has no meaning for rope_evq: the ramp by pairs is made for"):
        at_length("yarn(ramp=pairs)", {"name": "rope_evq", "tau": 2}, 16, d_model=16, n_heads=1)
    with pytest.raises(ConfigError, match="beta_slow and beta_fast: the first must be below the second, not 2 and 2"):
        strategies.canonical_block("yarn(beta_slow=2, beta_fast=2)")
    with pytest.raises(StrategyRefused, match="yarn has no meaning for alibi"):
        at_length("yarn", "alibi", 16)
