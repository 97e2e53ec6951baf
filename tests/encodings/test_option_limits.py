"""Numbers that no one means: every option of every encoding takes them or refuses them by name."""

from __future__ import annotations

import re

import pytest
import torch

from pe_cli.config import resolve
from pe_cli.corpus import encode
from pe_cli.encodings import registry
from pe_cli.encodings.base import LARGEST_NUMBER, SMALLEST_NUMBER
from pe_cli.errors import ConfigError
from pe_cli.inspection import SAMPLE_TEXT
from pe_cli.trained import fresh_model

NUMBERS = [
    (name, option, "float" not in str(field.annotation))
    for name in registry.names()
    for option, field in registry.encoding_class(name).Options.model_fields.items()
    if re.search(r"\b(int|float)\b", str(field.annotation))
]
VALUES = ["0", "-1", "1e-300", "-1e-300", "1e18", "9223372036854775807", "1e30", "1e308", "-1e308"]
BEYOND_ANY = {"1e30", "1e308", "-1e308", "1e-300", "-1e-300", "9223372036854775807"}


@pytest.mark.parametrize(("name", "option", "whole"), NUMBERS)
def test_a_number_is_taken_or_refused_by_name(name: str, option: str, whole: bool) -> None:
    refused: dict[str, str] = {}
    for value in VALUES:
        try:
            resolve(None, {"encoding": name, f"encoding.{option}": value})
        except ConfigError as error:
            refused[value] = str(error)
    assert all(f"--set encoding.{option}=" in message for message in refused.values())
    assert set(refused) >= BEYOND_ANY


@pytest.mark.parametrize(("name", "option"), [(name, option) for name, option, whole in NUMBERS if not whole])
@pytest.mark.parametrize("value", [SMALLEST_NUMBER, LARGEST_NUMBER])
def test_a_number_that_is_taken_computes_numbers(name: str, option: str, value: float) -> None:
    sizes = {"model.d_model": "32", "model.n_layers": "1"}
    try:
        experiment = resolve(None, {"encoding": name, f"encoding.{option}": f"{value}", **sizes}).experiment
    except ConfigError:
        return
    alphabet = "".join(sorted(set(SAMPLE_TEXT)))
    model = fresh_model(experiment, alphabet)
    tokens = torch.from_numpy(encode(SAMPLE_TEXT[:128], alphabet)).long()[None]
    said = model(tokens)
    said.sum().backward()
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    assert said.isfinite().all()
    assert all(gradient.isfinite().all() for gradient in gradients)
