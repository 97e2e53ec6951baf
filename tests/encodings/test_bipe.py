import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategy_cases import BY_IDS

from pe_cli import strategies
from pe_cli.encodings import registry
from pe_cli.encodings.base import ModelSpec, PositionEncoding, Sees
from pe_cli.encodings.bipe import BiPE
from pe_cli.encodings.views import Block, LayerView
from pe_cli.errors import ConfigError, PositionRangeError, StrategyRefused
from pe_cli.model import new_model

ALPHABET = "\n .abcdef"
SPEC = ModelSpec(d_model=16, n_heads=4, n_layers=2, train_length=16, alphabet=ALPHABET, max_position=16)


def built(**options: object) -> BiPE:
    encoding = registry.build({"name": "bipe", **options}, SPEC)
    assert isinstance(encoding, BiPE)
    return encoding


def encoded(text: str) -> torch.Tensor:
    return torch.tensor([[ALPHABET.index(character) for character in text]])


def ids(encoding: PositionEncoding, text: str) -> tuple[list[float], list[float]]:
    offset, segment = encoding.positions(encoded(text)).parts
    return offset.ids[0].tolist(), segment.ids[0].tolist()


def bias(encoding: PositionEncoding, text: str) -> torch.Tensor:
    length = len(text)
    q = torch.zeros(1, 4, length, 4)
    positions = encoding.positions(encoded(text))
    layer = LayerView(0, torch.zeros(1, length, 16), q, q, positions)
    everything = slice(0, length)
    found = encoding.dense_bias(Block(layer, (None, None), q, q, everything, everything, encoding))
    assert found is not None
    return found[0]


def test_a_separator_belongs_to_the_segment_that_it_ends() -> None:
    assert ids(built(), "ab.cd\nef") == ([0, 1, 2, 0, 1, 2, 0, 1], [0, 0, 0, 1, 1, 1, 2, 2])
    assert ids(built(), "..a") == ([0, 0, 0], [0, 1, 2])
    assert ids(built(separators=" "), "a.b c") == ([0, 1, 2, 3, 0], [0, 0, 0, 0, 1])


@given(st.text(ALPHABET, min_size=1, max_size=40))
def test_ids_against_splitting_the_text(text: str) -> None:
    offsets: list[float] = []
    segments: list[float] = []
    for number, line in enumerate(text.replace(".", ".|").replace("\n", "\n|").split("|")):
        offsets += range(len(line))
        segments += [number] * len(line)
    assert ids(built(), text) == (offsets, segments)


@given(st.text(ALPHABET, min_size=1, max_size=20), st.text(ALPHABET, min_size=1, max_size=20))
def test_ids_do_not_depend_on_what_follows(start: str, rest: str) -> None:
    offsets, segments = ids(built(), start + rest)
    assert (offsets[: len(start)], segments[: len(start)]) == ids(built(), start)


def test_each_row_of_a_batch_has_its_own_ids() -> None:
    tokens = torch.cat((encoded("a.bc"), encoded("abc\n")))
    offset, segment = built().positions(tokens).parts
    assert offset.ids.tolist() == [[0, 1, 0, 1], [0, 1, 2, 3]]
    assert segment.ids.tolist() == [[0, 0, 1, 1], [0, 0, 0, 0]]


def test_embeddings_get_the_table_at_the_offset() -> None:
    encoding, text = built(), "abc.de.f"
    offsets = torch.tensor([0, 1, 2, 3, 0, 1, 2, 0], dtype=torch.float64)
    angle = offsets[:, None] / 10000 ** (torch.arange(0, 16, 2, dtype=torch.float64) / 16)
    table = torch.zeros(8, 16, dtype=torch.float64)
    table[:, 0::2], table[:, 1::2] = angle.sin(), angle.cos()
    added = encoding.embed(torch.zeros(1, 8, 16), encoding.positions(encoded(text)))
    torch.testing.assert_close(added[0].double(), table, atol=1e-6, rtol=0)


def test_alibi_between_segments_has_slopes_96_times_as_steep() -> None:
    """With 4 heads: 1/4, 1/16, 1/64, 1/256 times 96, for each segment between two characters."""
    found = bias(built(relative="alibi", segment_scale=96), "a.b.c")
    assert found[:, 4, :].tolist() == [[-slope * n for n in (2, 2, 1, 1, 0)] for slope in (24, 6, 1.5, 0.375)]
    assert found[:, 1, 0].tolist() == [0, 0, 0, 0], "no penalty inside a segment"


def test_rope_between_segments_does_not_turn_inside_one() -> None:
    """A text without separators is one segment: what is left is the absolute part."""
    tokens = torch.randint(3, 9, (2, 12), generator=torch.Generator().manual_seed(0))
    bipe, plain = (new_model(SPEC, name, seed=1) for name in ("bipe", "sinusoidal"))
    torch.testing.assert_close(bipe(tokens), plain(tokens))
    tokens[:, 5] = ALPHABET.index(".")
    assert (bipe(tokens) - plain(tokens)).abs().max() > 1e-3


def test_separators_that_the_text_lacks_leave_one_segment() -> None:
    assert ids(built(separators=";"), "a.b\n") == ([0, 1, 2, 3], [0, 0, 0, 0])


def test_offsets_can_be_limited() -> None:
    assert ids(built(max_offset=2), "abcde.f")[0] == [0, 1, 2, 2, 2, 2, 0]


def test_a_learned_table_ends_with_the_longest_segment_not_with_the_window() -> None:
    model = new_model(SPEC, {"name": "bipe", "absolute": "learned"}, seed=1)
    lines = encoded("abcdefab.abcdef\nabcdef.ab" + "abc\n")
    assert model(lines).isfinite().all()
    with pytest.raises(PositionRangeError, match="id 24"):
        model(torch.full((1, 25), 4))


def test_parts_may_be_wrapped() -> None:
    encoding = built(relative={"name": "sliding_window", "encoding": "alibi", "window": 3})
    assert ids(encoding, "a.b.c")[1] == [0, 0, 1, 1, 2]
    mixed = built(absolute={"name": "mix", "parts": ["sinusoidal", "learned"]})
    offset = mixed.positions(encoded("a.bc")).parts[0]
    assert [leaf.ids[0].tolist() for leaf in offset.leaves()] == [[0, 1, 0, 1]] * 2


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"absolute": "bipe"}, r"encoding\.absolute: bipe reads its own ids from the text"),
        ({"absolute": "rope", "relative": "rope"}, "rope and rope both change 'rotate'"),
        ({"relative": "t5", "segment_scale": 0.5}, "segment_scale: must be a whole number for t5, not 0.5"),
        ({"separators": ""}, "separators"),
        ({"segment_scale": 0}, "segment_scale"),
        ({"segment_scale": 65537}, "segment_scale"),
        ({"max_offset": -1}, "max_offset"),
        ({"separator": "."}, "did you mean 'separators'"),
    ],
)
def test_what_does_not_combine_is_refused(options: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        built(**options)


@pytest.mark.parametrize("name", BY_IDS)
def test_strategies_that_change_ids_are_refused(name: str) -> None:
    with pytest.raises(StrategyRefused, match=f"{name} has no meaning for bipe: its ids are read from the"):
        strategies.apply(name, built(), 16, 32)


def test_sees_absolute_ids_through_its_absolute_part() -> None:
    assert built().sees is Sees.ABSOLUTE
    assert built(absolute="none", relative="alibi").sees is Sees.DISTANCE
