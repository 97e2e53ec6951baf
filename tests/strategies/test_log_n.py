import dataclasses

import pytest
import torch
from stand_in import SPEC, model_of

from pe_cli import strategies
from pe_cli.encodings import registry
from pe_cli.errors import StrategyRefused
from pe_cli.model import Transformer, new_model


@pytest.mark.parametrize("name", ["rope", "shaw", "path", "none"])
@torch.no_grad()
def test_it_is_what_a_model_with_log_n_does(name: str) -> None:
    plain, tokens = model_of(name).eval(), torch.randint(8, (1, 40), generator=torch.Generator().manual_seed(0))
    with_factor: Transformer = new_model(dataclasses.replace(SPEC, log_n=True), name, 0).eval()
    with_factor.load_state_dict(plain.state_dict())
    changed = plain.using(strategies.apply("log_n", plain.encoding, 16, 40))(tokens)
    assert torch.equal(changed, with_factor(tokens))
    assert torch.equal(changed[:, :16], plain(tokens)[:, :16])
    assert not torch.allclose(changed[:, 20:], plain(tokens)[:, 20:])


def test_refused_where_the_model_has_it() -> None:
    encoding = registry.build("rope", dataclasses.replace(SPEC, log_n=True))
    with pytest.raises(StrategyRefused, match=r"it was trained with model\.log_n and has it"):
        strategies.apply("log_n", encoding, 16, 40)
