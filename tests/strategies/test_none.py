import pytest

from pe_cli import strategies
from pe_cli.encodings import registry
from pe_cli.encodings.base import ModelSpec

SPEC = ModelSpec(d_model=32, n_heads=4, n_layers=4, train_length=16, alphabet="a.", max_position=16)


@pytest.mark.parametrize("name", registry.names())
def test_nothing_is_changed_at_any_length(name: str) -> None:
    encoding = registry.build(name, SPEC)
    assert strategies.apply("none", encoding, 16, 4096) is encoding
