"""The run directory: who gets it, what survives a kill, and what a damaged one says."""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from sealing import folder_for_all, sealed
from torch import Tensor

from pe_cli import checkpoint, files, runs
from pe_cli.errors import ConfigError, RunError


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def make(root: Path, *, force: bool = False, resume: bool = False, name: str = "rope", seed: int = 1) -> runs.Run:
    return runs.create(root, name, "0123456789", seed, force=force, resume=resume)


def finish(root: Path, *, name: str = "rope", seed: int = 1, status: str = "finished") -> Path:
    weights = {"w": torch.arange(6.0).reshape(2, 3)}
    with make(root, name=name, seed=seed) as run:
        run.begin("seed: 1\n", name=name, seed=seed)
        run.save_state(weights, {"step": 3})
        run.save_weights(weights)
        run.update(status=status, weight_sha256=runs.weight_sha256(weights))
    return run.path


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def child(script: str, *arguments: object, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)


# --- who gets the directory


def test_directory_name() -> None:
    assert runs.run_directory_name("rope-base-1000", "0123456789", 1337) == "rope-base-1000-0123456789-s1337"
    assert runs.run_directory_name('a, "b"\n', "x", -1) == 'a, "b"\n-x-s-1'
    for bad in ("", "a/b", "../up", "nul\0"):
        with pytest.raises(ConfigError, match="cannot be the name of a directory"):
            runs.run_directory_name(bad, "x", 1)
    with pytest.raises(ConfigError, match="at most 200 bytes"):
        runs.run_directory_name("é" * 101, "x", 1)
    assert len(runs.run_directory_name("é" * 100, "x", 1)) == 105


def test_life_of_a_run(tmp_path: Path) -> None:
    root = tmp_path / "results" / "runs"
    with make(root) as run:
        assert run.status == "new"
        assert run.path == root / "rope-0123456789-s1"
        run.begin("seed: 1\n", name="rope", train_loss=math.inf)
        assert run.status == "running"
        assert run.info == {"status": "running", "name": "rope", "train_loss": None}
        assert not run.has_state
        run.save_state({"w": torch.ones(2)}, {"step": 7})
        assert run.has_state
        run.update(status="finished", step=7)
    expected = {"status": "finished", "name": "rope", "train_loss": None, "step": 7}
    assert json.loads((run.path / "run.json").read_text()) == expected
    assert names(run.path) == ["config.yaml", "run.json", "state.safetensors"]
    again = runs.open_run(run.path)
    assert again.status == "finished"
    assert again.info == expected
    assert again.config_text == "seed: 1\n"


@pytest.mark.parametrize("name", ["plain", 'a, "b"\nc', "[red]é 漢", "-x", ".hidden", "latest"])
def test_names_as_they_are(tmp_path: Path, name: str) -> None:
    path = finish(tmp_path, name=name)
    assert runs.open_run(path.name, tmp_path).info["name"] == name
    assert runs.known(tmp_path) == [f"{name}-0123456789-s1"]


@pytest.mark.parametrize("status", ["finished", "diverged"])
@pytest.mark.parametrize("resume", [False, True])
def test_what_has_ended_is_handed_back_untouched_and_unlocked(tmp_path: Path, status: str, resume: bool) -> None:
    path = finish(tmp_path, status=status)
    before = contents(path)
    run = make(tmp_path, resume=resume)
    assert run.status == status
    assert make(tmp_path).status == status
    assert contents(path) == before


def test_force_removes_only_when_training_begins_and_only_what_is_ours(tmp_path: Path) -> None:
    path = finish(tmp_path)
    for name in ("extrapolation.csv", "training.csv", "notes.txt", ".state.safetensors.1-00.tmp"):
        (path / name).write_text("old")
    before = contents(path)
    with make(tmp_path, force=True) as run:
        assert run.status == "new"
        assert names(path) == sorted(set(before) - {".state.safetensors.1-00.tmp"})
        run.begin("seed: 2\n", name="rope")
        assert names(path) == ["config.yaml", "notes.txt", "run.json"]
    assert run.status == "interrupted"
    assert run.config_text == "seed: 2\n"


def test_what_was_interrupted_asks_for_resume(tmp_path: Path) -> None:
    with make(tmp_path) as run:
        run.begin("", name="rope")
        run.save_state({"w": torch.ones(2)}, {"step": 5})
        run.update(status="interrupted", step=5)
    before = contents(run.path)
    with pytest.raises(RunError, match="was interrupted: go on with --resume, or begin again with --force"):
        make(tmp_path)
    with make(tmp_path, resume=True) as run:
        assert run.status == "interrupted"
        assert run.load_state()[1] == {"step": 5}
        assert contents(run.path) == before
        run.update(status="failed")
    with pytest.raises(RunError, match="failed: go on with --resume"):
        make(tmp_path)
    assert make(tmp_path, resume=True).status == "failed"


def test_nothing_to_resume(tmp_path: Path) -> None:
    finish(tmp_path, name="rope", seed=2)
    with pytest.raises(RunError, match=r"nothing to resume at .*-s1; did you mean 'rope-0123456789-s2'\?"):
        make(tmp_path, resume=True)
    assert not (tmp_path / "rope-0123456789-s1").exists()
    with pytest.raises(RunError, match="give one of them"):
        make(tmp_path, resume=True, force=True)


@pytest.mark.parametrize("force", [False, True])
def test_a_directory_that_is_not_ours_is_refused(tmp_path: Path, force: bool) -> None:
    path = tmp_path / "rope-0123456789-s1"
    path.mkdir()
    (path / "thesis.tex").write_text("precious")
    with pytest.raises(RunError, match=r"holds 'thesis\.tex' and no run"):
        make(tmp_path, force=force)
    (path / "run.json").write_text('{"distance_km": 10}')
    with pytest.raises(RunError, match=r"run\.json was not written by pe"):
        make(tmp_path, force=force)
    assert names(path) == ["run.json", "thesis.tex"]
    assert (path / "thesis.tex").read_text() == "precious"


def test_leftovers_of_a_kill_before_run_json(tmp_path: Path) -> None:
    path = tmp_path / "rope-0123456789-s1"
    path.mkdir()
    (path / ".run.json.1-00.tmp").write_text("{")
    with make(tmp_path) as run:
        assert run.status == "new"
        assert names(path) == []
    (path / "run.json").write_text('{"status": "run')
    with pytest.raises(RunError, match=r"run\.json is damaged .*--force"):
        make(tmp_path)
    assert make(tmp_path, force=True).status == "new"


def test_out_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    for act in (files.writable, make):
        with pytest.raises(RunError, match=r"/out.*not a directory"):
            act(tmp_path / "out" / "runs")
    assert (tmp_path / "out").read_text() == "mine"


CREATOR = """
import sys, time
from pathlib import Path
from pe_cli import runs
from pe_cli.errors import RunError
sys.stdin.readline()
try:
    with runs.create(Path(sys.argv[1]), "rope", "0123456789", 1, force=False, resume=False) as run:
        run.begin("", name="rope")
        print("got it", flush=True)
        sys.stdin.readline()
except RunError as error:
    print(error, flush=True)
"""


def test_of_two_processes_one_gets_it_and_a_killed_one_blocks_nobody(tmp_path: Path) -> None:
    both = [child(CREATOR, tmp_path, stdin=subprocess.PIPE) for _ in range(2)]
    for process in both:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.stdout.readline() for process in both if process.stdout is not None]
    assert sorted(line[:15] for line in said) == ["another process", "got it\n"]
    path = tmp_path / "rope-0123456789-s1"
    assert runs.open_run(path).status == "running"
    with pytest.raises(RunError, match="another process is training or evaluating this run"):
        make(tmp_path, force=True)
    for process in both:
        process.kill()
        process.communicate()
    assert runs.open_run(path).status == "interrupted"
    with make(tmp_path, resume=True) as run:
        assert run.status == "interrupted"
        assert not run.has_state
    assert names(path) == ["config.yaml", "run.json"]


# --- checkpoints


def state() -> dict[str, Tensor]:
    base = torch.arange(12.0)
    return {
        "weights": base.reshape(3, 4).T,
        "tied": base,
        "half": torch.tensor([1.5, float("nan")], dtype=torch.bfloat16),
        "step": torch.tensor(3),
        "generator": torch.Generator().manual_seed(1).get_state(),
        "mask": torch.tensor([True, False]),
        "empty": torch.empty(0, 4),
        "parameter": torch.nn.Parameter(torch.ones(2)),
    }


def test_state_comes_back_bit_for_bit(tmp_path: Path) -> None:
    run = make(tmp_path)
    meta = {"step": 3, "big": 2**127 + 1, "best": math.inf, "rows": [[1, 0.1 + 0.2, None]], "text": 'é"\n'}
    run.save_state(state(), meta)
    tensors, read = run.load_state()
    assert read == meta
    assert tensors.keys() == state().keys()
    for name, tensor in state().items():
        assert tensors[name].dtype == tensor.dtype
        assert tensors[name].shape == tensor.shape
        assert torch.equal(tensors[name].nan_to_num(7), tensor.nan_to_num(7))
    tensors["tied"].zero_()
    assert run.load_state()[0]["tied"][5] == 5.0
    assert names(run.path) == ["state.safetensors"]
    run.close()


def test_weight_sha256_by_its_definition() -> None:
    one, two = torch.tensor([[1.0, 2.0]]), torch.tensor(3, dtype=torch.int64)
    text = b'["a", "torch.float32", [1, 2]]' + bytes.fromhex("0000803f00000040")
    text += b'["b", "torch.int64", []]' + b"\3" + bytes(7)
    assert runs.weight_sha256({"b": two, "a": one}) == hashlib.sha256(text).hexdigest()
    digests = {
        runs.weight_sha256(tensors)
        for tensors in (
            {"a": one},
            {"b": one},
            {"a": one.T},
            {"a": one.double()},
            {"a": one.view(torch.int32)},
        )
    }
    assert len(digests) == 5


@pytest.mark.parametrize("file", ["state", "model"])
def test_every_flipped_or_missing_byte_is_noticed(tmp_path: Path, file: str) -> None:
    path = finish(tmp_path) / f"{file}.safetensors"
    run = runs.open_run(path)
    load = run.load_state if file == "state" else run.load_weights
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :])
        with pytest.raises(RunError, match=rf"{file}\.safetensors .*train it again with --force"):
            load()
        path.write_bytes(whole[:place])
        with pytest.raises(RunError, match=rf"{file}\.safetensors .*train it again with --force"):
            load()
    path.write_bytes(whole)
    load()


def test_foreign_and_missing_checkpoints(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    path = finish(tmp_path)
    run = runs.open_run(path)
    save_file({"w": torch.ones(2)}, path / "state.safetensors")
    with pytest.raises(RunError, match=r"state\.safetensors was not written by pe: train it again with --force"):
        run.load_state()
    torch.save({"w": torch.ones(2)}, path / "state.safetensors")
    with pytest.raises(RunError, match=r"state\.safetensors is damaged or no checkpoint of pe"):
        run.load_state()
    (path / "state.safetensors").unlink()
    with pytest.raises(RunError, match=r"there is no .*/state\.safetensors"):
        run.load_state()
    checkpoint.save(path / "model.safetensors", {"w": torch.ones(2, 3)}, {})
    with pytest.raises(RunError, match=r"model\.safetensors holds other weights than run\.json names"):
        run.load_weights()


# Forks, so that only the first process pays for importing torch.
SAVER = """
import os, sys
from pathlib import Path
import torch
from pe_cli import runs
for line in sys.stdin:
    resume = line == "resume\\n"
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        print("gone", flush=True)
        continue
    with runs.create(Path(sys.argv[1]), "rope", "0123456789", 1, force=False, resume=resume) as run:
        if not resume:
            run.begin("")
        step = run.load_state()[1]["step"] if run.has_state else 0
        first = step + 1
        while True:
            step += 1
            run.save_state({"w": torch.full((200, 1000), float(step))}, {"step": step})
            if step == first:
                print(os.getpid(), flush=True)
"""


def test_a_kill_in_the_middle_of_saving_leaves_a_whole_state(tmp_path: Path) -> None:
    rng = random.Random(0)
    last = 0
    with child(SAVER, tmp_path, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for word in ["new"] + ["resume"] * 11:
            process.stdin.write(f"{word}\n")
            process.stdin.flush()
            saver = int(process.stdout.readline())
            time.sleep(0.05 * rng.random())
            os.kill(saver, signal.SIGKILL)
            assert process.stdout.readline() == "gone\n"
            with make(tmp_path, resume=True) as run:
                tensors, meta = run.load_state()
                assert meta["step"] > last
                last = meta["step"]
                assert torch.equal(tensors["w"], torch.full((200, 1000), float(last)))
                assert set(names(run.path)) - {"state.previous.safetensors"} == {
                    "config.yaml", "run.json", "state.safetensors",
                }  # fmt: skip
        process.stdin.close()


LIMITED = """
import resource, sys
from pathlib import Path
import torch
from pe_cli import runs
from pe_cli.errors import RunError
resource.setrlimit(resource.RLIMIT_FSIZE, (65536, resource.RLIM_INFINITY))
run = runs.create(Path(sys.argv[1]), "rope", "0123456789", 1, force=False, resume=True)
try:
    run.save_state({"w": torch.ones(100_000)}, {"step": 6})
except RunError as error:
    print(error)
"""


def test_no_space_for_a_checkpoint_leaves_the_previous_one(tmp_path: Path) -> None:
    with make(tmp_path) as run:
        run.begin("")
        run.save_state({"w": torch.zeros(3)}, {"step": 5})
    with child(LIMITED, tmp_path, stderr=subprocess.PIPE) as process:
        out, err = process.communicate()
    assert out.startswith(f"cannot write {run.path}/state.safetensors: no space")
    assert err == ""
    assert run.load_state()[1] == {"step": 5}
    assert names(run.path) == ["config.yaml", "run.json", "state.safetensors"]


def test_read_only_results() -> None:
    with folder_for_all() as folder, sealed(folder):
        for act in (files.writable, make):
            with pytest.raises(RunError, match="permission denied"):
                act(folder / "runs")
        assert names(folder) == []


def test_a_damaged_state_gives_way_to_the_one_before_it(tmp_path: Path) -> None:
    with make(tmp_path) as run:
        run.begin("")
        for step in (1.0, 2.0):
            run.save_state({"w": torch.full((3,), step)}, {"step": step})
        os.truncate(run.path / "state.safetensors", 50)
        with pytest.raises(RunError, match=r"state\.safetensors is damaged .*--force"):
            run.load_state()
        said: list[str] = []
        tensors, meta = run.load_state(said.append)
        assert (meta, tensors["w"].tolist()) == ({"step": 1.0}, [1.0] * 3)
        [text] = said
        assert text.startswith(f"{run.path}/state.safetensors is damaged")
        assert text.endswith("): going on from the checkpoint before it")
        # were it still there, the next one would be saved beside the damaged one
        assert names(run.path) == ["config.yaml", "run.json", "state.safetensors"]
        run.save_state({"w": torch.zeros(3)}, {"step": 3.0})
        run.drop_previous()
        assert names(run.path) == ["config.yaml", "run.json", "state.safetensors"]


def test_two_damaged_states_are_refused(tmp_path: Path) -> None:
    with make(tmp_path) as run:
        for step in (1.0, 2.0):
            run.save_state({"w": torch.zeros(3)}, {"step": step})
        for name in ("state.safetensors", "state.previous.safetensors"):
            os.truncate(run.path / name, 50)
        with pytest.raises(RunError, match=r"/state\.safetensors is damaged .*--force"):
            run.load_state(print)


# --- evaluation


def test_who_evaluates_is_alone_and_of_the_same_training(tmp_path: Path) -> None:
    path = finish(tmp_path)
    opened = runs.open_run(path)
    (path / ".windows.csv.1-00.tmp").write_text("x")
    with runs.alone(opened):
        assert not (path / ".windows.csv.1-00.tmp").exists()
        assert make(tmp_path).status == "finished", "what is over needs no lock"
        for act in (lambda: runs.alone(opened).__enter__(), lambda: make(tmp_path, force=True)):
            with pytest.raises(RunError, match="another process is training or evaluating this run"):
                act()
    with make(tmp_path, force=True) as again:
        again.begin("")
    with pytest.raises(RunError, match="trained again since it was opened"), runs.alone(opened):
        pass


# --- how a run is found


def test_open_by_directory_name_file_and_latest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = finish(Path("results/runs"))
    runs.point_latest(runs.open_run(path))
    for given in (path, str(path) + "/", path.absolute(), path / "model.safetensors", path.name, "latest"):
        assert runs.open_run(given).path.absolute() == path.absolute()
    assert runs.open_run("latest").path == path
    assert runs.open_run(path / "run.json").path == path


@pytest.mark.parametrize(("start", "given"), [("", "."), ("", "run.json"), ("deeper", ".."), ("deeper", "../run.json")])
@pytest.mark.parametrize("by_link", [False, True])
def test_a_run_that_is_named_from_inside_has_the_name_of_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: str, given: str, by_link: bool
) -> None:
    path = finish(tmp_path / "runs")
    runs.point_latest(runs.open_run(path))
    (path / "deeper").mkdir()
    monkeypatch.chdir((path.parent / "latest" if by_link else path) / start)
    found = runs.open_run(given).path
    assert found.name == path.name
    assert found.samefile(path)


def test_not_a_run(tmp_path: Path) -> None:
    for name in ("rope", "alibi"):
        finish(tmp_path, name=name)
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("x")
    with pytest.raises(RunError, match=r"/rop-0123456789-s1 is not there; did you mean 'rope-0123456789-s1'\?"):
        runs.open_run("rop-0123456789-s1", tmp_path)
    with pytest.raises(RunError, match=r"/alibi is not there; did you mean 'alibi-0123456789-s1'\?"):
        runs.open_run("alibi", tmp_path)
    for name in ("empty", "text"):
        with pytest.raises(RunError, match=r"is not a run, it has no run\.json; the newest runs in"):
            runs.open_run(tmp_path / name, tmp_path)
    with pytest.raises(RunError, match="there are no runs in"):
        runs.open_run("rope", tmp_path / "elsewhere")
    with pytest.raises(RunError, match="name is too long"):
        runs.open_run("x" * 300, tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"status": "done"}', '{"name": "x"}', "\xff"])
def test_damaged_run_json(tmp_path: Path, text: str) -> None:
    path = finish(tmp_path)
    (path / "run.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(RunError, match=r"/run\.json (is damaged|was not written by pe)"):
        runs.open_run(path)


def test_missing_and_damaged_config(tmp_path: Path) -> None:
    run = runs.open_run(finish(tmp_path))
    (run.path / "config.yaml").write_bytes(b"\xff")
    with pytest.raises(RunError, match=r"config\.yaml is damaged"):
        _ = run.config_text
    (run.path / "config.yaml").unlink()
    with pytest.raises(RunError, match=r"cannot read .*config\.yaml: there is no such file"):
        _ = run.config_text


def test_newest_is_what_latest_names(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"latest yet: train one with `pe train`"):
        runs.newest(tmp_path / "nothing")
    first, second = finish(tmp_path, name="a"), finish(tmp_path, name="b")
    with pytest.raises(RunError, match="latest yet: name a run, the newest is 'b-0123456789-s1'"):
        runs.newest(tmp_path)
    runs.point_latest(runs.open_run(second))
    assert runs.newest(tmp_path).path == second
    runs.point_latest(runs.open_run(first))
    assert runs.newest(tmp_path).path == first
    assert os.readlink(tmp_path / "latest") == "a-0123456789-s1"
    assert set(runs.known(tmp_path)) == {first.name, second.name}
    first.rename(tmp_path / "moved")
    with pytest.raises(RunError, match=r"latest names 'a-0123456789-s1', which is gone; did you mean '.*s1'"):
        runs.newest(tmp_path)


def test_writable_leaves_nothing(tmp_path: Path) -> None:
    files.writable(tmp_path / "new" / "runs", size=100_000)
    assert names(tmp_path / "new" / "runs") == []
