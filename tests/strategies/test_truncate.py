import pytest
import torch
from stand_in import evaluation_of, model_of, noise, quietly

from pe_cli import strategies
from pe_cli.encodings import registry
from pe_cli.inspection import window


@pytest.mark.parametrize("name", ["rope", "learned", "path", "bipe", "fox"])
def test_the_loss_is_that_at_the_training_length_to_the_last_bit(name: str) -> None:
    evaluation = evaluation_of(model_of(name), noise(2000), name, lengths=[16, 48, 64], strategies=["truncate"])
    rows = evaluation.run(quietly).extrapolation
    assert {row["status"] for row in rows} == {"ok"}
    assert len({row["loss"] for row in rows}) == 1
    assert [row["gain"] for row in rows] == [0, 0, 0]
    assert {row["largest_id"] for row in rows} == {rows[0]["largest_id"]}


@torch.no_grad()
def test_pieces_are_cut_from_the_end_and_read_by_themselves() -> None:
    model = model_of("rope").eval()
    encoding = strategies.apply("truncate", model.encoding, 16, 40)
    tokens = torch.randint(8, (2, 40), generator=torch.Generator().manual_seed(0))
    found = model.using(encoding)(tokens)
    expected = torch.cat([model(tokens[:, :8]), model(tokens[:, 8:24]), model(tokens[:, 24:])], dim=1)
    assert torch.equal(found, expected)
    assert torch.equal(model.using(encoding)(tokens, scored=20), expected[:, -20:])


def test_what_is_looked_at_is_what_the_model_is_shown() -> None:
    model = model_of("rope")
    assert (
        window(registry.build("rope", model.encoding.spec), model.encoding.spec, "abc", 40, "truncate").text
        == ("abc" * 6)[:16]
    )
    assert model.encoding.piece is None
