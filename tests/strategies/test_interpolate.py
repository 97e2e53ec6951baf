import numpy as np
import pytest
import torch

from pe_cli import strategies
from pe_cli.encodings import registry
from pe_cli.encodings.base import ModelSpec, PositionEncoding
from pe_cli.encodings.views import LayerView, Positions
from pe_cli.errors import StrategyRefused

SPEC = ModelSpec(d_model=16, n_heads=4, n_layers=2, train_length=32, alphabet="ab", max_position=32)


def ids_at(encoding: PositionEncoding, length: int) -> Positions:
    return encoding.positions(torch.zeros(1, length, dtype=torch.long))


@pytest.mark.parametrize("length", [33, 47, 61, 127, 4096])
def test_ids_are_spread_evenly_from_the_first_to_the_last_trained_id(length: int) -> None:
    positions = ids_at(strategies.apply("interpolate", registry.build("rope", SPEC), 32, length), length)
    expected = np.linspace(0, 31, length)
    np.testing.assert_allclose(positions.ids[0].double().numpy(), expected, rtol=1e-7, atol=0)
    assert positions.step == pytest.approx(31 / (length - 1), rel=1e-15)


def test_the_last_id_is_exactly_the_last_trained_one_at_every_length() -> None:
    """One rounding above it would be beyond the end of a table."""
    encoding = registry.build("learned", SPEC)
    for length in range(33, 33 * 32):
        ids = ids_at(strategies.apply("interpolate", encoding, 32, length), length).ids
        assert ids[0, 0] == 0
        assert ids[0, -1] == ids.max() == 31


@pytest.mark.parametrize("length", [33, 47, 61, 127])
def test_rows_of_a_table_lie_on_the_lines_between_trained_ones(length: int) -> None:
    encoding = registry.build("learned", SPEC)
    changed = strategies.apply("interpolate", encoding, 32, length)
    rows = changed.embed(torch.zeros(1, length, 16), ids_at(changed, length))[0].detach().double().numpy()
    (table,) = (parameter.detach().double().numpy() for parameter in encoding.parameters())
    expected = [np.interp(np.linspace(0, 31, length), np.arange(32), column) for column in table.T]
    np.testing.assert_allclose(rows, np.stack(expected, axis=1), rtol=0, atol=1e-6)
    np.testing.assert_array_equal(rows[[0, -1]], table[[0, -1]])


def test_rope_at_twice_the_intervals_turns_by_half_the_angles() -> None:
    changed = strategies.apply("interpolate", registry.build("rope", SPEC), 32, 63)
    q = torch.randn(1, 4, 63, 4, generator=torch.Generator().manual_seed(0))
    turned, _ = changed.rotate(LayerView(0, torch.zeros(1, 63, 16), q, q, ids_at(changed, 63)))
    for pair, frequency in ((0, 1.0), (1, 0.01)):
        columns = [pair, pair + 2]
        before, after = (x[0, ..., columns].double().numpy() for x in (q, turned))
        angle = np.exp(1j * np.arange(63) / 2 * frequency)
        expected = (before[..., 0] + 1j * before[..., 1]) * angle
        np.testing.assert_allclose(after[..., 0] + 1j * after[..., 1], expected, atol=1e-6)


def test_alibi_gets_flatter_slopes() -> None:
    """By (L − 1) / (T − 1): with 4 heads the first slope is 1/4 and becomes 1/4 · 31/124 = 1/16."""
    changed = strategies.apply("interpolate", registry.build("alibi", SPEC), 32, 125)
    q = torch.zeros(1, 4, 125, 4)
    layer = LayerView(0, torch.zeros(1, 125, 16), q, q, ids_at(changed, 125))
    bias = changed.offset_bias(layer, 125)
    assert bias is not None
    torch.testing.assert_close(bias[0], -torch.arange(125) / 16)


def test_places_without_aligned_corners_and_those_of_the_paper() -> None:
    """Four ids for eight characters."""
    encoding = registry.build("rope", SPEC)
    for places, expected in (
        ("centres", [0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3]),
        ("ratio", [0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5]),
    ):
        positions = ids_at(strategies.apply({"name": "interpolate", "places": places}, encoding, 4, 8), 8)
        assert positions.ids[0].tolist() == expected
        assert positions.step == (0.5 if places == "ratio" else None)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("t5", "ids between whole numbers mean nothing to it"),
        ("shaw", "ids between whole numbers mean nothing to it"),
        ("none", "it uses no ids"),
        ("bipe", "its ids are read from the text"),
    ],
)
def test_refused_with_the_reason(name: str, why: str) -> None:
    with pytest.raises(StrategyRefused, match=f"interpolate has no meaning for {name}: {why}"):
        strategies.apply("interpolate", registry.build(name, SPEC), 32, 64)
