import pytest
import torch

from pe_cli import strategies
from pe_cli.encodings import registry
from pe_cli.encodings.base import ModelSpec, PositionEncoding
from pe_cli.errors import StrategyRefused

SPEC = ModelSpec(d_model=16, n_heads=4, n_layers=2, train_length=8, alphabet="ab", max_position=8)


def added(encoding: PositionEncoding, length: int) -> torch.Tensor:
    """What is added to the embeddings (T, D)."""
    positions = encoding.positions(torch.zeros(1, length, dtype=torch.long))
    return encoding.embed(torch.zeros(1, length, 16), positions)[0]


def test_characters_beyond_the_trained_length_carry_the_last_trained_id() -> None:
    changed = strategies.apply("repeat_last", registry.build("learned", SPEC), 8, 12)
    positions = changed.positions(torch.zeros(1, 12, dtype=torch.long))
    assert positions.ids[0].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 7, 7, 7, 7]
    assert positions.step is None, "ids are equally spaced no more"


@pytest.mark.parametrize("name", ["learned", "sinusoidal"])
def test_rows_are_those_of_the_trained_range(name: str) -> None:
    encoding = registry.build(name, SPEC)
    trained = added(encoding, 8)
    longer = added(strategies.apply("repeat_last", encoding, 8, 20), 20)
    assert torch.equal(longer[:8], trained)
    assert torch.equal(longer[8:], trained[7].expand(12, 16))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("alibi", "it sees only distances, and ids that repeat would make far characters look near"),
        ("rope", "it sees only distances"),
        ("t5", "it sees only distances"),
        ("none", "it uses no ids"),
        ("fox", "it uses no ids"),
        ("bipe", "its ids are read from the text"),
        ("sliding_window", "it sees only distances"),
    ],
)
def test_refused_with_the_reason(name: str, why: str) -> None:
    with pytest.raises(StrategyRefused, match=f"repeat_last has no meaning for .*: {why}"):
        strategies.apply("repeat_last", registry.build(name, SPEC), 8, 16)
