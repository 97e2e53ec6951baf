from driving import random_layer, weights
from longer import at_length


def test_the_first_four_characters_and_the_last_as_many_as_training_showed() -> None:
    layer = random_layer(30)
    seen = weights(at_length("sinks", "none", 30), layer)[0, 0] > 0
    assert seen[29].nonzero().flatten().tolist() == [0, 1, 2, 3, *range(22, 30)]
    assert seen[9].nonzero().flatten().tolist() == list(range(10))
    assert seen[13].nonzero().flatten().tolist() == [0, 1, 2, 3, *range(6, 14)]


def test_both_numbers_can_be_stated() -> None:
    layer = random_layer(30)
    seen = weights(at_length("sinks(sinks=1, window=2)", "none", 30), layer)[0, 0] > 0
    assert seen[29].nonzero().flatten().tolist() == [0, 28, 29]
