import pytest
import torch

from pe_cli import strategies
from pe_cli.encodings import registry
from pe_cli.encodings.alibi import ALiBi
from pe_cli.encodings.base import ModelSpec, PositionEncoding, Sees
from pe_cli.encodings.mix import Mix
from pe_cli.encodings.views import Block, LayerView
from pe_cli.errors import ConfigError, PositionRangeError, StrategyRefused
from pe_cli.model import Transformer, new_model

SPEC = ModelSpec(d_model=16, n_heads=4, n_layers=2, train_length=16, alphabet="abcdefgh", max_position=16)
TOKENS = torch.randint(8, (2, 16), generator=torch.Generator().manual_seed(0))


def built(*parts: object) -> Mix:
    encoding = registry.build({"name": "mix", "parts": list(parts)}, SPEC)
    assert isinstance(encoding, Mix)
    return encoding


def model(*parts: object) -> Transformer:
    return new_model(SPEC, {"name": "mix", "parts": list(parts)}, seed=1)


def whole_block(encoding: PositionEncoding, length: int = 10) -> Block:
    q = torch.zeros(1, 4, length, 4)
    positions = encoding.positions(TOKENS[:1, :length])
    layer = LayerView(0, torch.zeros(1, length, 16), q, q, positions)
    everything = slice(0, length)
    return Block(layer, encoding.prepare(layer), q, q, everything, everything, encoding)


def window_of(encoding: object) -> dict[str, object]:
    return {"name": "sliding_window", "encoding": encoding}


def test_biases_add_up() -> None:
    encoding = built("alibi", "t5", {"name": "alibi", "max_exponent": 4})
    bias = encoding.dense_bias(whole_block(encoding))
    assert bias is not None
    bias = bias.detach()
    table = dict(encoding.named_parameters())["parts.1.table"].detach()
    for head in range(4):
        slope = 4.0 ** -(head + 1) + 2.0 ** -(head + 1)
        for n in range(10):
            expected = float(table[n, head]) - slope * n  # the first 16 buckets of t5 are distances
            assert float(bias[0, head, 9, 9 - n]) == pytest.approx(expected, abs=1e-6)


def test_embeddings_add_up() -> None:
    encoding = built("sinusoidal", "learned")
    added = encoding.embed(torch.zeros(1, 16, 16), encoding.positions(TOKENS[:1]))
    alone = registry.build("sinusoidal", SPEC)
    table = alone.embed(torch.zeros(1, 16, 16), alone.positions(TOKENS[:1]))
    learned = dict(encoding.named_parameters())["parts.1.table"]
    torch.testing.assert_close(added, table + learned)


def test_masks_intersect() -> None:
    window = {"name": "sliding_window", "encoding": "none", "window": 5}
    stride = {"name": "strided", "encoding": "none", "stride": 2, "pattern": "strided"}
    encoding = built(window, stride)
    mask = encoding.mask(whole_block(encoding))
    assert mask is not None
    assert mask.tril()[9].nonzero().flatten().tolist() == [5, 7, 9]
    assert encoding.reach(whole_block(encoding).layer, slice(9, 10)) == slice(5, 10)


def test_a_part_that_adds_nothing_changes_nothing() -> None:
    for name in ("alibi", "rope", "sinusoidal", "fox", "stick_breaking"):
        torch.testing.assert_close(model(name, "none")(TOKENS), new_model(SPEC, name, seed=1)(TOKENS))


def test_twice_the_penalty_is_a_slope_twice_as_steep() -> None:
    twice = model("alibi", "alibi")
    steep = new_model(SPEC, "alibi", seed=1)
    assert isinstance(steep.encoding, ALiBi)
    steep.encoding.slopes *= 2
    torch.testing.assert_close(twice(TOKENS), steep(TOKENS))
    with torch.no_grad():
        torch.testing.assert_close(twice(TOKENS), steep(TOKENS))


def test_parts_of_one_name_keep_their_numbers_apart() -> None:
    steep, flat = "alibi", {"name": "alibi", "max_exponent": 4}
    numbers = built(steep, "rope", flat, window_of(flat)).numbers(4)
    assert set(numbers) == {
        *("alibi#1.slopes", "rope.inverse_frequencies", "rope.wavelengths", "alibi#2.slopes", "sliding_window.slopes")
    }
    assert numbers["alibi#1.slopes"].tolist() == [4.0**-head for head in (1, 2, 3, 4)]
    assert numbers["alibi#2.slopes"].tolist() == [2.0**-head for head in (1, 2, 3, 4)]


def test_numbers_of_parts_of_parts_are_all_there() -> None:
    numbers = built({"name": "mix", "parts": ["alibi", "alibi"]}, {"name": "mix", "parts": ["alibi"]}).numbers(4)
    assert set(numbers) == {"mix#1.alibi#1.slopes", "mix#1.alibi#2.slopes", "mix#2.alibi.slopes"}


@pytest.mark.parametrize(
    ("parts", "complaint"),
    [
        (("rope", "t5", "rope"), r"encoding\.parts: rope and rope both change 'rotate'"),
        (("stick_breaking", "stick_breaking"), "both change 'weights'"),
        (("shaw", {"name": "stick_breaking", "remainder": True}), "shaw and stick_breaking both change"),
        ((), "parts"),
        (("lerned",), "did you mean 'learned'"),
    ],
)
def test_what_does_not_combine_is_refused(parts: tuple[object, ...], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        built(*parts)


def test_sees_the_most_that_a_part_sees() -> None:
    assert built("none", "fox").sees is Sees.NOTHING
    assert built("none", "t5").sees is Sees.DISTANCE
    assert built("sinusoidal", "rope").sees is Sees.ABSOLUTE


def test_fractional_ids_have_a_meaning_if_they_do_for_all_parts() -> None:
    assert built("learned", "alibi").fractional
    assert not built("learned", "t5").fractional


def test_a_learned_table_is_undefined_beyond_its_rows() -> None:
    with pytest.raises(PositionRangeError, match="16 rows"):
        model("learned", "t5")(TOKENS.repeat(1, 2))


def test_a_part_that_refuses_a_strategy_stays_as_it_is() -> None:
    encoding = built("learned", "alibi")
    changed = strategies.apply("repeat_last", encoding, 16, 32)
    assert isinstance(changed, Mix)
    learned, alibi = changed.members()
    assert alibi is encoding.members()[1]
    assert learned is not encoding.members()[0]
    absolute, relative = changed.positions(TOKENS.repeat(1, 2)).parts
    assert absolute.ids[0, -1] == 15
    assert relative.ids[0, -1] == 31
    assert encoding.members()[0].positions(TOKENS.repeat(1, 2)).ids[0, -1] == 31, "the original is unchanged"


def test_where_every_part_refuses_each_says_why() -> None:
    with pytest.raises(StrategyRefused) as refusal:
        strategies.apply("wrap", built("alibi", "fox", "alibi"), 16, 32)
    assert str(refusal.value) == (
        "wrap has no meaning for alibi: it sees only distances, and ids that repeat would make far "
        "characters look near; wrap has no meaning for fox: it uses no ids"
    )
