"""`pe train` as it is used: what it says, which directory it takes, and what it refuses before any time is spent."""

from __future__ import annotations

import hashlib
from contextlib import chdir
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch
from command_line import TINY, hashes, only_run, pe, training
from safetensors.torch import load_file
from small_runs import refused

from pe_cli import compiling, runs

SHORT = {"training__steps": 3}


# --- what it says


def test_results_on_one_stream_and_messages_on_the_other(tmp_path: Path) -> None:
    done = pe(*training(tmp_path, training__precision="float32"))
    run = only_run(tmp_path)
    first, second = done.out.splitlines()
    assert first == str(run)
    loss = runs.open_run(run).info["validation_loss"]
    assert second.startswith(f"validation loss {loss:.4f} nats per character ({loss / 0.693147180559945:.4f} bits), ")
    assert done.err.splitlines()[0] == f"training {run.name} on cpu in float32, threads: 1"
    assert done.err.splitlines()[-1].startswith(f"{run.name}: 40 of 40 (100%), training: loss ")


def test_quiet_says_nothing_but_the_result(tmp_path: Path) -> None:
    done = pe(*training(tmp_path, "--quiet", **SHORT))
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"{only_run(tmp_path)}\nvalidation loss ")


def test_json_is_run_json_and_the_directory(tmp_path: Path) -> None:
    done = pe(*training(tmp_path, "--json", **SHORT))
    run = only_run(tmp_path)
    info = runs.open_run(run).info
    assert done.json == {**info, "directory": str(run)}
    promised = (
        "name, encoding, seed, status, reason, step, train_loss, validation_loss, parameters, alphabet, data_hash, "
        "data_digest, weight_sha256, device, threads, precision, versions, seconds"
    )
    assert set(promised.split(", ")) <= info.keys()
    assert (info["status"], info["step"], info["device"], info["threads"]) == ("finished", 3, "cpu", 1)
    text = (tmp_path / "text.txt").read_bytes()
    assert info["data_hash"] == hashlib.sha256(text).hexdigest()
    assert info["alphabet"] == "".join(sorted(set(text.decode())))


def test_bfloat16_without_units_for_it_is_said_to_be_slow(tmp_path: Path) -> None:
    with (
        patch.object(torch.cpu, "_is_avx512_bf16_supported", return_value=False),
        patch.object(torch.cpu, "_is_amx_tile_supported", return_value=False),
    ):
        slow = pe(*training(tmp_path, "--quiet", training__precision="bfloat16", **SHORT))
        auto = pe(*training(tmp_path, "--quiet", "--json", **SHORT))
    assert slow.err == "warning: training.precision: cpu has no units for bfloat16; float32 is quicker here\n"
    assert (auto.err, auto.json["precision"]) == ("", "float32")


# --- which directory it takes


def test_what_is_finished_is_not_trained_again(tmp_path: Path) -> None:
    first = pe(*training(tmp_path, "--json", **SHORT)).json["directory"]
    second = pe(*training(tmp_path, "--json", "--seed", 2, **SHORT)).json["directory"]
    latest = tmp_path / "runs" / "latest"
    assert latest.resolve() == Path(second).resolve()
    before = hashes(Path(first))
    for resume in ([], ["--resume"]):
        again = pe(*training(tmp_path, *resume, **SHORT))
        assert (again.code, again.out.splitlines()[0]) == (0, first)
        assert again.err == f"{first} is finished; --force trains it again\n"
    assert hashes(Path(first)) == before
    assert latest.resolve() == Path(first).resolve()


def test_force_trains_again_and_removes_what_was_measured(tmp_path: Path) -> None:
    assert pe(*training(tmp_path, **SHORT)).code == 0
    run = only_run(tmp_path)
    sha = runs.open_run(run).info["weight_sha256"]
    (run / "extrapolation.csv").write_text("run\n")
    (run / "model.safetensors").write_bytes(b"")
    assert pe(*training(tmp_path, "--force", **SHORT)).code == 0
    assert runs.open_run(run).info["weight_sha256"] == sha
    assert runs.open_run(run).load_weights().keys()
    assert not (run / "extrapolation.csv").exists()


def test_evaluation_and_the_way_to_the_text_do_not_make_another_run(tmp_path: Path) -> None:
    one = pe(*training(tmp_path, "--json", **SHORT)).json
    (tmp_path / "copy.txt").write_bytes((tmp_path / "text.txt").read_bytes())
    same = ["--data", tmp_path / "copy.txt", "--set", "evaluation.windows=3"]
    assert pe(*training(tmp_path, "--json", *same, **SHORT)).json["directory"] == one["directory"]
    others: list[list[object]] = [
        ["--seed", 1],
        ["--set", "model.qk_norm=true"],
        ["--set", "encoding.base=100"],
        ["--set", "name=a"],
    ]
    found = {pe(*training(tmp_path, "--json", *other, **SHORT)).json["directory"] for other in others}
    assert len(found - {one["directory"]}) == 4


@pytest.mark.parametrize("name", ['a, "b"', "[red]x[bold]", "λ – 位置", "-x", "2024-01-01"])
def test_names_are_taken_as_written(tmp_path: Path, name: str) -> None:
    done = pe(*training(tmp_path, "--set", f"name={name}", **SHORT))
    assert done.code == 0
    directory = Path(done.out.splitlines()[0])
    assert directory.name.startswith(f"{name}-")
    assert directory == only_run(tmp_path)
    assert runs.open_run(directory).info["name"] == name


def test_a_config_means_the_same_from_any_directory(tmp_path: Path) -> None:
    assert pe(*training(tmp_path / "a", "--dry-run")).code == 0
    config = tmp_path / "a" / "mine.yaml"
    blocks = {key.split(".")[0] for key in TINY}
    lines = [f"{block}: {{{', '.join(inner(block))}}}" for block in sorted(blocks)]
    config.write_text("\n".join(["data: text.txt", "encoding: alibi", *lines, ""]))
    found = []
    for place, path in ((tmp_path, "a/mine.yaml"), (tmp_path / "a", "mine.yaml")):
        with chdir(place):
            done = pe("train", path, "--threads", 1, "--set", "training.steps=2", "--json")
            assert done.code == 0
            assert done.json["directory"].startswith("results/runs/mine-")
            found.append((done.json["directory"], done.json["weight_sha256"]))
            assert (Path("results/runs/latest") / "run.json").is_file()
    assert found[0] == found[1]


def inner(block: str) -> list[str]:
    return [f"{key.split('.')[1]}: {value}" for key, value in TINY.items() if key.split(".")[0] == block]


# --- refused before any time is spent


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--device", "cuda"], ["this machine has no 'cuda'; usable here: auto, cpu"]),
        (["--device", "cuda:7"], ["this machine has no 'cuda:7'"]),
        (["--device", "mps"], ["this machine has no 'mps'"]),
        (["--device", "potato"], ["'potato' is not known; known: auto, cpu, cuda, mps"]),
        (["--encoding", "rpoe"], ["rpoe", "did you mean 'rope'?"]),
        (["--data", "missing.txt"], ["missing.txt", "neither a built-in corpus nor a file", "looked for /"]),
        (["--set", "training.step=5"], ["training.step", "did you mean"]),
        (["--set", "training.steps=many"], ["training.steps", "many"]),
        (["--set", "training.precision=float16"], ["training.precision", "float16", "bfloat16"]),
        (["--set", "training.compile=perhaps"], ["training.compile", "perhaps"]),
        (["--set", "training.steps"], ["write --set KEY=VALUE"]),
        (["--set", "training.steps=-1"], ["training.steps", "-1"]),
        (["--seed", "-3"], ["seed", "-3"]),
        (["missing.yaml"], ["missing.yaml"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_bad_input_is_one_short_message_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], parts: list[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    base = training(tmp_path)
    refused(pe(*base, *arguments), *parts)
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]


def test_a_folder_in_the_place_of_latest_leaves_no_run(tmp_path: Path) -> None:
    (tmp_path / "runs" / "latest").mkdir(parents=True)
    refused(pe(*training(tmp_path, "--quiet")), "latest", "a directory is in the way")
    assert [path.name for path in (tmp_path / "runs").iterdir() if not path.name.startswith(".")] == ["latest"]


def test_sizes_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    refused(pe(*training(tmp_path, model__n_heads=3)), "d_model 16 is not divisible by n_heads 3")
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]


@pytest.mark.parametrize("arguments", [["--resum"], ["--threads", "0"], ["--seed", "x"], ["a.yaml", "b.yaml"]], ids=str)
def test_wrong_usage_is_exit_code_2(tmp_path: Path, arguments: list[str]) -> None:
    done = pe(*training(tmp_path), *arguments)
    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err
    assert arguments[0].lstrip("-") in done.err or "b.yaml" in done.err
    assert len(done.err.splitlines()) <= 15


def test_a_text_too_short_is_told_with_the_numbers(tmp_path: Path) -> None:
    base = training(tmp_path)
    (tmp_path / "text.txt").write_text("to be or not to be!!")  # 20 characters, 18 of them to train on
    short = pe(*training(tmp_path, training__length=17, training__steps=1))
    assert short.code == 0
    assert "warning: the validation loss is of one window of 2 characters: one of training.length 17 needs" in short.err
    assert "as many held-out characters; there are 2\n" in short.err
    assert "validation loss is of one window" not in pe(*training(tmp_path, training__length=2, training__steps=1)).err
    done = pe(*training(tmp_path, training__length=18))
    refused(done, str(tmp_path / "text.txt"), "training.length 18", "at least 19", "has 18", "at least 22", "has 20")
    (tmp_path / "text.txt").write_text("to be or not to be!")
    refused(pe(*base), "the text has 19 characters; at least 20 are needed")


@pytest.mark.parametrize("below", ["", "deeper"])
def test_an_out_that_is_a_file(tmp_path: Path, below: str) -> None:
    arguments = training(tmp_path)
    (tmp_path / "file").write_text("mine")
    done = pe(*arguments, "--out", tmp_path / "file" / below)
    refused(done, str(tmp_path / "file"), "not a directory")
    assert (tmp_path / "file").read_text() == "mine"


def test_debug_shows_the_traceback_of_an_expected_error(tmp_path: Path) -> None:
    from pe_cli.errors import ConfigError

    with pytest.raises(ConfigError, match="potato"):
        pe("--debug", *training(tmp_path, "--device", "potato"))


# --- a dry run


def test_a_dry_run_says_all_and_does_nothing(tmp_path: Path) -> None:
    arguments = training(tmp_path, "--dry-run", encoding="t5")
    done, listed = pe(*arguments, "--json"), pe(*arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]
    groups = done.json["groups"]
    assert groups["adamw, no weight decay"] == [
        *(f"blocks.0.norm_{kind}.weight" for kind in ("attention", "feed")),
        "norm.weight",
        "encoding.table",
    ]
    assert groups["adamw"] == ["embedding.weight", "head.weight"]
    assert "blocks.0.query.weight" in groups["muon"]
    for name, members in groups.items():
        assert f"\n{name}: {', '.join(members)}\n" in listed.out
    assert f"directory: {done.json['directory']}\nparameters: {done.json['parameters']:,}\n" in listed.out
    assert done.json["experiment"]["encoding"]["name"] == "t5"
    trained = pe(*training(tmp_path, "--json", encoding="t5"))
    assert trained.json["directory"] == done.json["directory"]
    assert trained.json["parameters"] == done.json["parameters"]


# --- compiling


def test_compiling_without_a_compiler_is_said_and_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    done = pe(*training(tmp_path, training__compile="true", **SHORT))
    assert done.code == 0
    assert "training.compile: there is no C++ compiler (g++, or CXX), so the model is not compiled" in done.err
    plain = pe(*training(tmp_path, "--json", training__compile="auto", **SHORT))
    assert "compiler" not in plain.err
    weights = load_file(Path(done.out.splitlines()[0]) / "model.safetensors")
    assert weights.keys() == load_file(Path(plain.json["directory"]) / "model.safetensors").keys()


def test_compiling_that_fails_is_said_and_changes_no_weight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that is there and does not work; ids and dropout draw the numbers that they would draw without it."""
    monkeypatch.setenv("CXX", "sh")
    changes = {"encoding": "rope", "positions": "shifted", "model__dropout": 0.5, **SHORT}

    def broken(model: Any, dynamic: object) -> Any:
        def call(*inputs: Any) -> Any:
            model(*inputs)
            raise RuntimeError("InvalidCxxCompiler: no working C++ compiler")

        return call

    with patch.object(torch, "compile", side_effect=broken):
        done = pe(*training(tmp_path / "broken", "--json", training__compile="true", **changes))
    assert done.code == 0, done.err
    assert "training.compile: it failed, so the model is not compiled (RuntimeError: InvalidCxxCompiler" in done.err
    plain = pe(*training(tmp_path / "plain", "--json", training__compile="false", **changes))
    assert done.json["weight_sha256"] == plain.json["weight_sha256"]


@pytest.mark.parametrize(
    ("choice", "pays_from", "times"), [("true", 999, 1), ("false", 1, 0), ("auto", 192, 1), ("auto", 193, 0)]
)
def test_compiling_where_asked_or_where_it_pays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, choice: str, pays_from: int, times: int
) -> None:
    monkeypatch.setenv("CXX", "sh")  # any program that is there
    monkeypatch.setattr(compiling, "COMPILE_FROM", pays_from)  # 3 steps × 4 windows × 16 characters are planned
    with patch.object(torch, "compile", side_effect=lambda model, dynamic: lambda *inputs: model(*inputs)) as compiled:
        done = pe(*training(tmp_path, training__compile=choice, **SHORT))
    assert (done.code, compiled.call_count) == (0, times)
    assert all(not key.startswith("_orig_mod") for key in load_file(only_run(tmp_path) / "model.safetensors"))
