"""Training windows whose length differs from batch to batch."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command_line import info, only_run, pe, signals_at, training
from refusals import refuses
from safetensors.torch import load_file

from pe_cli.config import resolve, spec_of, to_yaml, training_identity
from pe_cli.corpus import Batches
from pe_cli.errors import CorpusError

IDS = np.arange(300, dtype=np.uint16)
SHORT: dict[str, Any] = {"training__steps": 12, "training__warmup_steps": 2, "training__length_range": "8,40"}

# --- batches


def batches(seed: int = 0, bounds: tuple[int, int] | None = (4, 20), length: int = 8, windows: int = 16) -> Batches:
    return Batches(IDS, length, windows, seed, bounds)


def test_every_length_of_the_range_comes_about_equally_often() -> None:
    stream = batches()
    drawn = [stream.next().shape[1] - 1 for _ in range(1700)]
    lengths, counts = np.unique(drawn, return_counts=True)
    assert lengths.tolist() == list(range(4, 21))
    assert np.abs(counts - 100).max() < 4 * np.sqrt(1700 / 17 * 16 / 17)


def test_batches_have_about_as_many_characters_as_those_of_one_length() -> None:
    stream = batches()
    shapes = [stream.next().shape for _ in range(300)]
    characters = np.array([windows * (length - 1) for windows, length in shapes])
    assert all(windows == round(128 / (length - 1)) for windows, length in shapes)
    assert np.abs(characters - 128).max() <= 20 / 2
    assert characters.mean() == pytest.approx(128, abs=2)
    assert batches(bounds=(8, 128), windows=16).next().numel() > 0


def test_windows_are_pieces_of_the_text() -> None:
    stream = batches()
    for _ in range(20):
        windows = stream.next()
        assert bool((windows.diff(dim=1) == 1).all())
        assert windows.max() <= 299
    whole = Batches(IDS[:21], 8, 16, 0, (20, 20))
    assert whole.next().tolist() == [list(range(21))] * 6


def test_a_range_of_one_length_is_still_another_stream_and_the_digest_knows_the_lengths() -> None:
    fixed, ranged = batches(bounds=None), batches(bounds=(8, 8))
    assert fixed.next().shape == ranged.next().shape
    assert fixed.digest != ranged.digest
    assert len({batches(bounds=bounds).digest for bounds in (None, (4, 20))}) == 1  # before the first draw
    windows, digests = [], set()
    for length in (8, 9):  # drawn from as many places, so from the same
        stream = Batches(IDS[: 200 + length], length, 18, 0, (length, length))
        windows.append(stream.next())
        digests.add(stream.digest)
    assert torch.equal(windows[0], windows[1][:, :-1])
    assert len(digests) == 2


@pytest.mark.parametrize("seed", [0, 3])
def test_a_restored_stream_equals_the_uninterrupted_one(seed: int) -> None:
    whole, stopped = batches(seed), batches(seed)
    for _ in range(3):
        whole.next()
        stopped.next()
    state = stopped.state()
    stopped.next()
    resumed = batches(seed + 1)
    resumed.restore(state)
    for _ in range(3):
        assert torch.equal(resumed.next(), whole.next())
        assert resumed.digest == whole.digest


def test_a_text_shorter_than_the_longest_window_is_refused() -> None:
    with pytest.raises(CorpusError, match="windows of 300 characters need a training part of at least 301; it has 300"):
        batches(bounds=(4, 300), windows=100)


# --- the key


def test_the_range_is_off_by_default_and_read_from_a_file_or_a_command(tmp_path: Path) -> None:
    assert resolve(None, {}).experiment.training.length_range is None
    assert resolve(None, {}).experiment.training.longest == 128
    (tmp_path / "exp.yaml").write_text("training: {length_range: [64, 5_12]}", encoding="utf-8")
    training_config = resolve(tmp_path / "exp.yaml", {}).experiment.training
    assert (training_config.length_range, training_config.longest, training_config.length) == ((64, 512), 512, 128)
    stated = resolve(None, {"training.length_range": "100,200"})
    assert stated.experiment.training.length_range == (100, 200)
    (tmp_path / "again.yaml").write_text(to_yaml(stated), encoding="utf-8")
    assert resolve(tmp_path / "again.yaml", {}).experiment.training == stated.experiment.training
    taken_back = resolve(tmp_path / "again.yaml", {"training.length_range": "none"}).experiment
    assert taken_back.training.length_range is None
    assert training_identity(taken_back, "") == training_identity(resolve(None, {}).experiment, "")
    assert training_identity(stated.experiment, "") != training_identity(resolve(None, {}).experiment, "")


REFUSALS = {
    "one length": ("[64]", ["training.length_range", "two lengths", "[64]"]),
    "three lengths": ("[64, 128, 256]", ["training.length_range", "two lengths", "[64, 128, 256]"]),
    "the wrong way round": ("[256, 64]", ["training.length_range", "two lengths", "[256, 64]"]),
    "too short": ("[1, 200]", ["training.length_range", "from 2", "[1, 200]"]),
    "too long": ("[64, 1e12]", ["training.length_range", "16777216"]),
    "a word": ("[64, many]", ["training.length_range", "whole number", "'many'"]),
    "without the training length": ("[200, 300]", ["training", "length 128 is outside of length_range [200, 300]"]),
    "longer than a batch": (
        "[64, 5000]",
        ["training", "5000 characters is more than a batch", "batch_size 40 or more"],
    ),
}


@pytest.mark.parametrize("case", REFUSALS.values(), ids=list(REFUSALS))
def test_a_range_that_cannot_be_is_refused(tmp_path: Path, case: tuple[str, list[str]]) -> None:
    bounds, parts = case
    (tmp_path / "bad.yaml").write_text(f"training:\n  length_range: {bounds}", encoding="utf-8")
    refuses(tmp_path, ["config", str(tmp_path / "bad.yaml")], str(tmp_path / "bad.yaml"), *parts)


# --- training


@pytest.mark.parametrize("encoding", ["learned", "alibi"])
def test_a_training_is_continued_exactly(tmp_path: Path, encoding: str) -> None:
    assert pe(*training(tmp_path / "whole", encoding=encoding, **SHORT)).code == 0
    with signals_at(6, signal.SIGINT):
        assert pe(*training(tmp_path / "parts", encoding=encoding, **SHORT)).code == 130
    assert pe(*training(tmp_path / "parts", "--resume", encoding=encoding, **SHORT)).code == 0
    whole, parts = only_run(tmp_path / "whole"), only_run(tmp_path / "parts")
    for key in ("status", "step", "data_digest", "weight_sha256", "train_loss", "validation_loss"):
        assert info(whole)[key] == info(parts)[key], key


def test_batches_are_equal_whatever_the_encoding_and_the_sampler(tmp_path: Path) -> None:
    digests = set()
    for number, changes in enumerate(
        ({"encoding": "rope"}, {"encoding": "learned"}, {"encoding": "rope", "positions": "randomized"})
    ):
        done = pe(*training(tmp_path / str(number), "--json", **changes, **SHORT))
        assert done.code == 0
        digests.add(done.json["data_digest"])
    assert len(digests) == 1
    fixed = pe(*training(tmp_path / "fixed", "--json", encoding="rope", training__steps=12))
    assert fixed.json["data_digest"] not in digests


def test_the_training_length_is_that_of_the_longest_window(tmp_path: Path) -> None:
    assert pe(*training(tmp_path, encoding="learned", **SHORT)).code == 0
    run = only_run(tmp_path)
    assert load_file(run / "model.safetensors")["encoding.table"].shape[0] == 40
    done = pe("extrapolate", run, "--json", "--lengths", "16,40,48", "--strategy", "none,repeat_last,truncate")
    rows = {(row["strategy"], row["length"]): row for row in done.json["rows"]}
    assert {row["train_length"] for row in rows.values()} == {40}
    assert rows["none", 40]["gain"] == 0
    assert rows["none", 40]["loss"] == rows["repeat_last", 40]["loss"] == rows["truncate", 48]["loss"]
    assert rows["none", 16]["gain"] == pytest.approx(rows["none", 40]["loss"] - rows["none", 16]["loss"], abs=1e-6)
    assert rows["none", 48]["status"] == "undefined"
    assert (rows["repeat_last", 48]["status"], rows["repeat_last", 48]["largest_id"]) == ("ok", 39)


def test_all_that_goes_by_the_training_length_goes_by_the_longest() -> None:
    """Defaults of encodings, of evaluation, and what inspect shows beyond it."""
    varying = resolve(None, {"training.length_range": "64,512"}).experiment
    assert varying.evaluation.lengths == (512, 1024, 2048, 4096)
    fixed = resolve(None, {"training.length": "512"}).experiment
    ours, theirs = (spec_of(experiment, "ab") for experiment in (varying, fixed))
    assert ours == theirs
    asked = ["--at-length", 600, "--strategy", "window", "--set", "training.length_range=64,512", "--json"]
    assert pe("inspect", "rope", *asked).json["train_length"] == 512


def test_a_text_that_cannot_hold_the_longest_window_is_refused_before_any_training(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("abcdefghij" * 20, encoding="utf-8")
    options = {"training__batch_size": 20, "training__steps": 2}
    assert pe(*training(tmp_path, training__length_range="8,179", **options)).code == 0
    done = pe(*training(tmp_path, training__length_range="8,180", **options))
    assert done.code == 2
    assert "too short for training.length_range 180: its training part" in done.err
    assert "needs at least 181 characters and has 180" in done.err
