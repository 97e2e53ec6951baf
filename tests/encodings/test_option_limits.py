"""Numbers that no one means: every option of every encoding takes them or refuses them by name."""

from __future__ import annotations

import re

import pytest

from pe_cli.config import resolve
from pe_cli.encodings import registry
from pe_cli.errors import ConfigError

NUMBERS = [
    (name, option, "float" not in str(field.annotation))
    for name in registry.names()
    for option, field in registry.encoding_class(name).Options.model_fields.items()
    if re.search(r"\b(int|float)\b", str(field.annotation))
]
VALUES = ["0", "-1", "1e-300", "1e18", "9223372036854775807", "1e30", "1e308", "-1e308"]


@pytest.mark.parametrize(("name", "option", "whole"), NUMBERS)
def test_a_number_is_taken_or_refused_by_name(name: str, option: str, whole: bool) -> None:
    refused: dict[str, str] = {}
    for value in VALUES:
        try:
            resolve(None, {"encoding": name, f"encoding.{option}": value})
        except ConfigError as error:
            refused[value] = str(error)
    assert all(option in message or "parameters" in message for message in refused.values())
    assert {"1e308", "-1e308", *(["9223372036854775807"] if whole else [])} <= set(refused)
