import pytest
import torch
from driving import random_layer, weights
from longer import at_length

ENCODINGS = ["none", "alibi", "rope", "stick_breaking", {"name": "mix", "parts": ["rope", "t5"]}]


@pytest.mark.parametrize("block", ENCODINGS)
def test_queries_see_as_many_characters_as_training_showed(block: object) -> None:
    found = at_length("window", block, 20)
    layer = random_layer(20)
    layer = layer.at(found.positions(torch.zeros(2, 20, dtype=torch.long)))
    seen = weights(found, layer)[0, 0] > 0
    expected = torch.ones(20, 20, dtype=torch.bool).tril().triu(-7)
    assert not seen[~expected].any()
    assert seen[19, 13:19].all()


def test_the_window_can_be_stated() -> None:
    layer = random_layer(20)
    seen = weights(at_length("window(window=3)", "none", 20), layer)[0, 0] > 0
    assert torch.equal(seen, torch.ones(20, 20, dtype=torch.bool).tril().triu(-2))
