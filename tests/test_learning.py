"""What one layer can learn of where a letter stands, by texts whose best loss is known."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from pathlib import Path

import pytest
from command_line import pe, training

LETTERS = "abcdefghijklmnop"
WINDOW = 12
RECIPE = {
    "model__d_model": 32,
    "model__n_heads": 4,
    "training__length": WINDOW,
    "training__batch_size": 32,
    "training__steps": 150,
    "training__learning_rate": 0.03,
    "training__muon_learning_rate": 0.05,
    "training__precision": "float32",
}


def lag_five(count: int = 20_000) -> str:
    """The letter five places before with probability 0.9, else any."""
    draw = random.Random(0)
    letters = [draw.choice(LETTERS) for _ in range(5)]
    for _ in range(count - 5):
        letters.append(letters[-5] if draw.random() < 0.9 else draw.choice(LETTERS))
    return "".join(letters)


def of_the_last_three(count: int = 20_000) -> str:
    """One of the last three letters with probability 0.9, else any."""
    draw = random.Random(1)
    letters = [draw.choice(LETTERS) for _ in range(3)]
    for _ in range(count - 3):
        letters.append(draw.choice(letters[-3:] if draw.random() < 0.9 else LETTERS))
    return "".join(letters)


def by_the_last_letter(text: str) -> float:
    """The mean loss of who knows how often each letter follows each, but only sees the last one."""
    pairs, letters = Counter(itertools.pairwise(text)), Counter(text[:-1])
    return -sum(count * math.log(count / letters[pair[0]]) for pair, count in pairs.items()) / (len(text) - 1)


@pytest.mark.parametrize("name", ["none", "rope", "learned", "sinusoidal", "t5"])
def test_an_encoding_is_what_finds_the_letter_five_places_before(tmp_path: Path, name: str) -> None:
    """0.906 of the letters are those: 0.565 nats where five are in sight, ln 16 at the first four of twelve places."""
    right, others = 0.9 + 0.1 / 16, 0.1 / 16
    known = -right * math.log(right) - 15 * others * math.log(others)
    assert known == pytest.approx(0.565, abs=5e-4)
    best = (4 * math.log(16) + (WINDOW - 4) * known) / WINDOW
    (tmp_path / "text.txt").write_text(lag_five())
    loss = pe(*training(tmp_path, "--json", "--quiet", encoding=name, **RECIPE)).json["validation_loss"]
    assert best - 0.1 < loss
    assert loss > best + 1 if name == "none" else loss < best + 0.4


def test_a_penalty_by_distance_goes_on_seeing_what_is_near(tmp_path: Path) -> None:
    """alibi loses nothing at eight times the length, of a text for which the last letters matter and no others."""
    text = of_the_last_three()
    (tmp_path / "text.txt").write_text(text)
    run = pe(*training(tmp_path, "--json", "--quiet", encoding="alibi", **RECIPE)).json["directory"]
    asked = ["--lengths", f"{WINDOW},{8 * WINDOW}", "--strategy", "none", "--set", "evaluation.scored=8"]
    rows = pe("extrapolate", run, *asked, "--json", "--quiet").json["rows"]
    near, far = (row["loss"] for row in rows)
    assert near < by_the_last_letter(text) - 0.1
    assert far == pytest.approx(near, abs=0.05)
