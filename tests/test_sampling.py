"""Generated text against predictions of whole texts by the training path."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import torch

from pe_cli.config import resolve
from pe_cli.corpus import encode
from pe_cli.encodings import registry
from pe_cli.errors import ConfigError, CorpusError, PositionRangeError, RunFailed
from pe_cli.runs import Run
from pe_cli.sampling import default_prompt, sample
from pe_cli.trained import Trained, fresh_model

ALPHABET = "\n .abcdefgh"
LENGTH = 12


def trained(encoding: str, alphabet: str = ALPHABET, positions: str = "sequential") -> Trained:
    sizes = {
        "model.d_model": "16",
        "model.n_heads": "2",
        "model.n_layers": "2",
        "training.length": str(LENGTH),
    }
    experiment = resolve(None, {"encoding": encoding, "positions": positions, **sizes}).experiment
    model = fresh_model(experiment, alphabet)
    return Trained(Run(Path("unused"), {}), experiment, alphabet, model.eval())


def predictions(run: Trained, text: str) -> str:
    """The likeliest character after every character of `text`, in one pass of the training path."""
    tokens = torch.from_numpy(encode(text, run.alphabet)).long()[None]
    with torch.enable_grad():
        return "".join(run.alphabet[number] for number in run.model(tokens)[0].argmax(dim=-1).tolist())


@pytest.mark.parametrize("name", registry.names())
@pytest.mark.parametrize("length", [1, 7, LENGTH - 1, LENGTH, LENGTH + 1])
def test_greedy_text_is_what_the_training_path_predicts(name: str, length: int) -> None:
    run = trained(name)
    prompt = "abc. a\nhd. eg"[:length]
    cuts: list[int] = []
    text = "".join(sample(run, prompt, 10, greedy=True, on_cut=lambda why, length: cuts.append(length)))
    assert len(text) == 10
    whole = prompt + text
    try:
        expected = predictions(run, whole[:-1])[length - 1 :]
        assert cuts == []
    except PositionRangeError:
        places = range(length, len(whole))
        expected = "".join(predictions(run, whole[max(0, n - LENGTH) : n])[-1] for n in places)
        assert cuts == [LENGTH]
    assert text == expected


def test_a_learned_table_is_cut_beyond_its_end_and_not_before() -> None:
    cuts: list[tuple[str, int]] = []
    run = trained("learned")
    stream = sample(run, "a" * (LENGTH - 1), 5, greedy=True, on_cut=lambda why, length: cuts.append((why, length)))
    why = f"the learned table has {LENGTH} rows, for the ids 0 to {LENGTH - 1}; the text asks for id {LENGTH}"
    assert [(next(stream), list(cuts))[1] for _ in range(5)] == [[], [], *[[(why, LENGTH)]] * 3]


def test_what_ran_out_is_said_in_its_own_words() -> None:
    cuts: list[tuple[str, int]] = []
    run = trained("rope", positions="{name: randomized, max_position: 14}")
    list(sample(run, "a" * LENGTH, 4, greedy=True, on_cut=lambda why, length: cuts.append((why, length))))
    assert cuts == [("randomized draws from 14 ids, and a window of 15 characters needs as many", LENGTH)]


DIGITS = "\n 0123456789"
ABACUS = "{name: abacus, longest: 2, max_offset: 0}"


def test_a_number_too_long_for_the_model_ends_the_text_that_it_writes() -> None:
    run = trained(ABACUS, DIGITS)
    with torch.no_grad():
        run.model.head.weight.zero_()
        run.model.norm.weight.zero_()
    stream = sample(run, " ", 5, greedy=True)  # all logits are 0: new lines
    assert "".join(stream) == "\n" * 5
    written: list[str] = []
    with pytest.raises(RunFailed, match="cannot read what it has written: the abacus table has 3 rows"):
        written.extend(sample(run, " ", 400, seed=1))
    assert "".join(written)[-3:].isdigit()
    assert not any("".join(written)[at : at + 3].isdigit() for at in range(len(written) - 3))


def test_a_number_too_long_for_the_model_is_refused_in_a_prompt() -> None:
    with pytest.raises(ConfigError, match=r"^--prompt: the model cannot read it: the abacus table has 3 rows"):
        next(sample(trained(ABACUS, DIGITS), "12 345", 5))
    assert len("".join(sample(trained(ABACUS, DIGITS), f"345{' ' * LENGTH}", 1))) == 1, "what is cut is not read"


def test_equal_seeds_draw_equal_texts() -> None:
    run = trained("rope")
    draw = {seed: "".join(sample(run, "a", 40, seed=seed)) for seed in (1, 2)}
    assert "".join(sample(run, "a", 40, seed=1)) == draw[1] != draw[2]
    assert "".join(sample(run, "a", 25, seed=1)) == draw[1][:25]
    state = torch.random.get_rng_state()
    list(sample(run, "a", 3, seed=1))
    assert torch.equal(torch.random.get_rng_state(), state)


def test_draws_follow_the_temperature() -> None:
    run = trained("none")
    with torch.no_grad():
        run.model.head.weight.zero_()
        run.model.norm.weight.zero_()
    counts = Counter(sample(run, "a", 550, seed=3))  # all logits are 0
    assert set(counts) == set(ALPHABET)
    assert max(counts.values()) < 90  # 50 expected of each, ± 7
    other = trained("none")
    likeliest = "".join(sample(other, "ab", 30, greedy=True))
    assert "".join(sample(other, "ab", 30, temperature=1e-300)) == likeliest


def test_the_default_prompt_is_of_the_alphabet() -> None:
    assert default_prompt(ALPHABET) == "\n"
    assert default_prompt("Hdelorw") == "H"
    run = trained("rope", "Hdelorw")
    assert "".join(sample(run, None, 5, seed=1)) == "".join(sample(run, "H", 5, seed=1))


def test_unknown_characters_of_a_prompt_are_listed_and_counted() -> None:
    run = trained("rope", "Hdelorw")
    with pytest.raises(CorpusError, match=r"--prompt.*' ' U\+0020 \(2 times\).*'é' U\+00E9 \(once\)"):
        sample(run, "H d é", 5)


def test_bad_numbers_are_refused_before_anything_is_generated() -> None:
    run = trained("rope")
    for temperature in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match="--temperature"):
            sample(run, "a", 5, temperature)
    with pytest.raises(ConfigError, match="--chars -1"):
        sample(run, "a", -1)
    with pytest.raises(ConfigError, match="empty"):
        sample(run, "", 5)
    assert list(sample(run, "a", 0)) == []


def test_a_model_without_finite_output_is_said_to_have_failed() -> None:
    run = trained("rope")
    with torch.no_grad():
        run.model.head.weight.fill_(float("nan"))
    with pytest.raises(RunFailed, match="not finite"):
        list(sample(run, "a", 1))
