import pytest
import torch

from pe_cli import strategies
from pe_cli.encodings import registry
from pe_cli.encodings.base import ModelSpec
from pe_cli.errors import StrategyRefused

SPEC = ModelSpec(d_model=16, n_heads=4, n_layers=2, train_length=8, alphabet="ab", max_position=8)


def test_the_trained_ids_come_over_and_over() -> None:
    changed = strategies.apply("wrap", registry.build("learned", SPEC), 8, 19)
    ids = changed.positions(torch.zeros(1, 19, dtype=torch.long)).ids[0]
    assert ids.tolist() == [*range(8), *range(8), 0, 1, 2]


def test_a_table_is_copied_as_longformer_copies_that_of_roberta() -> None:
    encoding = registry.build("learned", SPEC)
    changed = strategies.apply("wrap", encoding, 8, 32)
    longer = changed.embed(torch.zeros(1, 32, 16), changed.positions(torch.zeros(1, 32, dtype=torch.long)))
    (table,) = encoding.parameters()
    assert torch.equal(longer[0], torch.cat((table, table, table, table)))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("alibi", "it sees only distances"),
        ("none", "it uses no ids"),
        ("bipe", "its ids are read from the text"),
    ],
)
def test_refused_with_the_reason(name: str, why: str) -> None:
    with pytest.raises(StrategyRefused, match=f"wrap has no meaning for {name}: {why}"):
        strategies.apply("wrap", registry.build(name, SPEC), 8, 16)
