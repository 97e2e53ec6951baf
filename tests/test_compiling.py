"""Compiled layers: what is traced whole, and that it computes what the layers compute as they are."""

from __future__ import annotations

import os
import shutil
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from pe_cli.compiling import Compiled
from pe_cli.config import resolve
from pe_cli.encodings.registry import names
from pe_cli.model import Transformer
from pe_cli.trained import fresh_model

pytestmark = pytest.mark.filterwarnings("ignore")  # the compiler has many, about itself
ALPHABET = "abcdefgh() \n0123"
IN_PARTS = {"cope", "tupe", "xpos"}
"""They look at values to decide what to do, which a compiler cannot follow: layers are compiled in parts."""


def model_of(encoding: str, layers: int) -> Transformer:
    sizes = {"model.d_model": "16", "model.n_heads": "2", "model.n_layers": str(layers), "training.length": "16"}
    return fresh_model(resolve(None, {"encoding": encoding, **sizes}).experiment, ALPHABET).train()


def tokens(seed: int) -> Tensor:
    return torch.randint(len(ALPHABET), (3, 16), generator=torch.Generator().manual_seed(seed))


def gradients(model: Transformer, logits: Tensor, wanted: Tensor) -> dict[str, Tensor]:
    model.zero_grad()
    F.cross_entropy(logits.flatten(0, 1), wanted.flatten()).backward()
    return {name: value.grad for name, value in model.named_parameters() if value.grad is not None}


@pytest.mark.parametrize("name", sorted({*names()} - IN_PARTS))
def test_all_layers_are_traced_as_one(name: str) -> None:
    """Nothing in them makes the tracer give up, which would leave attention as slow as it is without a compiler."""
    torch._dynamo.reset()
    model, text = model_of(name, layers=2), tokens(0)
    traced = torch.compile(model.through, backend="eager", fullgraph=True)
    logits = traced(*model.embedded(text, torch.Generator().manual_seed(3)))
    assert torch.equal(logits, model(text, torch.Generator().manual_seed(3)))


@pytest.mark.skipif(shutil.which(os.environ.get("CXX", "g++")) is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("name", ["rope", "t5", "cope"])
def test_compiled_layers_compute_what_they_compute_as_they_are(name: str) -> None:
    model, notes = model_of(name, layers=1), list[str]()
    compiled = Compiled(model, None, notes.append)
    for seed in range(2):
        fed, wanted = tokens(seed), tokens(seed + 10)
        logits, plain = compiled(fed, torch.Generator()), model(fed, torch.Generator())
        torch.testing.assert_close(logits, plain, rtol=1e-5, atol=1e-5)
        found, expected = gradients(model, logits, wanted), gradients(model, plain, wanted)
        assert found.keys() == expected.keys()
        for key, gradient in expected.items():
            torch.testing.assert_close(found[key], gradient, rtol=1e-4, atol=1e-6, msg=key)
    assert notes == []


def graphs(layers: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many pieces of such a model are compiled."""
    torch._dynamo.reset()
    model, found = model_of("cope", layers), list[object]()

    def backend(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> object:
        found.append(graph)
        return graph.forward

    with monkeypatch.context() as patched:
        patched.setattr(torch, "compile", partial(torch.compile, backend=backend))
        compiled = Compiled(model, None, print)
    compiled(tokens(0), torch.Generator())
    return len(found)


def test_a_deep_model_is_compiled_to_its_last_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers that are compiled one by one are many forms of one function, of which torch compiles eight by default."""
    four, eight, twelve = (graphs(layers, monkeypatch) for layers in (4, 8, 12))
    assert twelve - eight == eight - four > 0
