"""How large a model would be is known before anything is made of it."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from pe_cli.encodings import registry
from pe_cli.encodings.base import ModelSpec
from pe_cli.model import new_model, parameter_counts

SPEC = ModelSpec(d_model=32, n_heads=4, n_layers=4, train_length=24, alphabet="abc", max_position=24)


@pytest.mark.parametrize("name", registry.names())
def test_parameters_are_counted_without_making_them(name: str) -> None:
    state = torch.get_rng_state()
    layers, own = parameter_counts(SPEC, name)
    assert torch.equal(torch.get_rng_state(), state)
    model = new_model(SPEC, name, seed=1)
    assert own == sum(parameter.numel() for parameter in model.encoding.parameters())
    assert layers == sum(parameter.numel() for parameter in model.blocks.parameters())


def test_no_size_takes_memory() -> None:
    layers, own = parameter_counts(
        ModelSpec(2**20, 2**10, 2**10, train_length=2**30, alphabet="ab", max_position=2**30), "learned"
    )
    assert layers > 2**50
    assert own == 2**50


def test_counting_loads_no_compiler() -> None:
    """torch loads its compiler for some operations where there is no memory: a second at every start."""
    code = (
        "import sys; from pe_cli.config import resolve; from pe_cli.encodings import registry\n"
        "for name in registry.names(): resolve(None, {'encoding': name})\n"
        "sys.exit('torch._dynamo' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=300, check=False).returncode == 0
