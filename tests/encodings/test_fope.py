"""FoPE: each pair of columns sees a fixed mixture of the frequencies that complete a turn."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from driving import at, built, logits, random_layer
from torch import Tensor

from pe_cli.encodings.base import ModelSpec, PositionEncoding, Sees
from pe_cli.errors import ConfigError
from pe_cli.model import new_model

SIZES: dict[str, Any] = {"d_model": 64, "n_heads": 4, "train_length": 64}
"""Heads of 16: the frequencies 1, 0.316 and 0.1 of 8 complete a turn in 64 ids."""


def fope(**options: object) -> PositionEncoding:
    return built({"name": "fope", **options}, **SIZES)


def test_waves_longer_than_training_are_dropped() -> None:
    numbers = fope().numbers(1)
    assert numbers["inverse_frequencies"].tolist() == pytest.approx([1, 10**-0.5, 0.1], rel=1e-14)
    assert (numbers["wavelengths"] <= 64).all()
    assert numbers["mixed_pairs"] == 3


@pytest.mark.parametrize("others", ["both_one", "unchanged"])
@pytest.mark.parametrize("layout", ["halves", "interleaved"])
def test_queries_and_keys_by_the_equation(others: str, layout: str) -> None:
    layer = random_layer(4, **SIZES).at(at([0, 1, 2.5, 1000]))
    encoding = fope(others=others, layout=layout)
    cosines, sines = encoding.get_buffer("cosines"), encoding.get_buffer("sines")
    for before, after in zip((layer.q, layer.k), encoding.rotate(layer), strict=True):
        for n, p in enumerate(layer.positions.ids[0].tolist()):
            for pair in range(8):
                first, second = (pair, pair + 8) if layout == "halves" else (2 * pair, 2 * pair + 1)
                c, s = 1.0, 1.0 if others == "both_one" else 0.0
                if pair < 3:
                    c = sum(cosines[2, w, pair].item() * math.cos(p * 10 ** (-w / 2)) for w in range(3))
                    s = sum(sines[2, w, pair].item() * math.sin(p * 10 ** (-w / 2)) for w in range(3))
                x, y = before[1, 2, n, first].item(), before[1, 2, n, second].item()
                assert after[1, 2, n, first].item() == pytest.approx(x * c - y * s, abs=1e-12)
                assert after[1, 2, n, second].item() == pytest.approx(y * c + x * s, abs=1e-12)


def products(encoding: PositionEncoding, columns: list[int]) -> tuple[Tensor, Tensor]:
    """Logits × √d, and q·k, of queries and keys with entries in these columns only."""
    layer = random_layer(3, **SIZES)
    kept = torch.zeros(16, dtype=torch.float64)
    kept[columns] = 1
    only = type(layer)(0, layer.x, layer.q * kept, layer.k * kept, layer.positions)
    return logits(encoding, only).tril() * math.sqrt(16), (only.q @ only.k.transpose(-2, -1)).tril()


def test_pairs_that_see_no_ids_count_double_as_published() -> None:
    slow = [3, 4, 5, 6, 7, 11, 12, 13, 14, 15]
    ours, plain = products(fope(), slow)
    torch.testing.assert_close(torch.where(plain != 0, ours, 0), 2 * plain)
    ours, plain = products(fope(others="unchanged"), slow)
    torch.testing.assert_close(torch.where(plain != 0, ours, 0), plain)


def test_without_noise_the_mixed_pairs_are_those_of_hope() -> None:
    """All frequencies are leaders then, and the mixture is a rotation."""
    layer = random_layer(6, **SIZES).at(at([0, 1, 7, 8, 63, 500]))
    ours = logits(fope(gain=0, others="unchanged"), layer)
    torch.testing.assert_close(ours, logits(built("hope", **SIZES), layer))


def test_logits_depend_on_more_than_the_distance() -> None:
    layer = random_layer(5, **SIZES)
    moved = layer.at(at(layer.positions.ids[0] + 7))
    causal = torch.ones(5, 5).tril().bool()
    difference = (logits(fope(gain=0.6), moved) - logits(fope(gain=0.6), layer))[..., causal].abs()
    assert difference.max() > 0.05
    assert fope().sees is Sees.ABSOLUTE


def test_at_most_a_quarter_of_the_columns_are_mixed_with_spread_leaders() -> None:
    """Base 2 keeps all of 4 frequencies for 2 pairs of a head of 8: every second one leads a pair."""
    encoding = built({"name": "fope", "base": 2, "gain": 0})
    assert encoding.get_buffer("cosines")[3].tolist() == [[1, 0], [0, 0], [0, 1], [0, 0]]
    assert torch.equal(encoding.get_buffer("cosines"), encoding.get_buffer("sines"))


def test_where_the_step_does_not_fit_the_last_pair_has_no_leader() -> None:
    """5 frequencies for 4 pairs: 0, 2 and 4 lead, as in the released code."""
    encoding = built({"name": "fope", "gain": 0}, d_model=16, n_heads=1, train_length=629)
    assert encoding.get_buffer("sines").shape == (1, 5, 4)
    assert encoding.get_buffer("sines")[0].argmax(dim=0).tolist()[:3] == [0, 2, 4]
    assert encoding.get_buffer("sines")[0].sum(dim=0).tolist() == [1, 1, 1, 0]


def test_coefficients_are_drawn_by_the_rule_of_xavier_for_the_stack() -> None:
    sizes: dict[str, Any] = {"d_model": 4096, "n_heads": 16, "train_length": 10**6}
    drawn = built({"name": "fope", "gain": 0.3}, **sizes).get_buffer("sines")
    leaders = built({"name": "fope", "gain": 0}, **sizes).get_buffer("sines")
    wanted = torch.nn.init.xavier_normal_(
        torch.empty(drawn.shape), gain=0.3, generator=torch.Generator().manual_seed(1)
    )
    assert (drawn - leaders).std().item() == pytest.approx(wanted.std().item(), rel=0.01)


SPEC = ModelSpec(64, 4, 2, 64, "ab", 64)


def coefficients(seed: int) -> dict[str, Tensor]:
    return {key: value for key, value in new_model(SPEC, "fope", seed).state_dict().items() if "encoding." in key}


def test_a_seed_gives_the_coefficients_and_the_state_has_them() -> None:
    first, again, other = coefficients(3), coefficients(3), coefficients(4)
    assert first.keys() == {"encoding.cosines", "encoding.sines"}
    for name, value in first.items():
        assert torch.equal(value, again[name])
        assert not torch.equal(value, other[name])
    assert not torch.equal(*first.values())


@torch.no_grad()
def test_a_checkpoint_brings_its_coefficients() -> None:
    """Loaded into a model of another seed, it gives the same logits."""
    trained, other = new_model(SPEC, "fope", 3).eval(), new_model(SPEC, "fope", 4).eval()
    tokens = torch.arange(20)[None] % 2
    other.load_state_dict(trained.state_dict())
    assert torch.equal(other(tokens), trained(tokens))
    assert not list(trained.encoding.parameters())


def test_heads_and_lengths_without_a_mixture_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"heads of 2 columns, .* 16 columns or more would do"):
        built("fope", d_model=8)
    with pytest.raises(ConfigError, match=r"encoding: training.length 6 is shorter .* 7 or more would do"):
        built("fope", train_length=6)
    with pytest.raises(ConfigError, match=r"encoding: model.d_model 15 .* 10 or 20 would do"):
        built("fope", d_model=15, n_heads=5)
    with pytest.raises(ConfigError, match=r"gain"):
        fope(gain=-1)
