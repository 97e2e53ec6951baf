"""Run directories that are damaged, changed or of another program, and bad requests of a good one."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
from command_line import only_run, pe
from refusals import refuses
from small_runs import config_file

from pe_cli import checkpoint
from pe_cli.trained import changed

Damage = Callable[[Path], object]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a config, its text, and the run made of them."""
    folder = tmp_path_factory.mktemp("trained")
    config = config_file(folder / "good.yaml", encoding="rope", training={"steps": 2})
    done = pe("train", config, "--out", folder / "results", "--threads", 1)
    assert done.code == 0, done
    return folder


@pytest.fixture
def folder(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it as the working directory."""
    shutil.copytree(trained, tmp_path, symlinks=True, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(name: str, content: bytes) -> Damage:
    return lambda run: (run / name).write_bytes(content)


def edited(name: str, old: str, new: str) -> Damage:
    def edit(run: Path) -> None:
        text = (run / name).read_text(encoding="utf-8")
        assert old in text
        (run / name).write_text(text.replace(old, new), encoding="utf-8")

    return edit


def info(**changes: Any) -> Damage:
    """run.json with other values; None takes a key away."""

    def edit(run: Path) -> None:
        values = {**json.loads((run / "run.json").read_text(encoding="utf-8")), **changes}
        kept = {key: value for key, value in values.items() if value is not None}
        (run / "run.json").write_text(json.dumps(kept), encoding="utf-8")

    return edit


def cut(name: str) -> Damage:
    return lambda run: os.truncate(run / name, (run / name).stat().st_size // 2)


def flipped(name: str, part: float) -> Damage:
    def flip(run: Path) -> None:
        content = bytearray((run / name).read_bytes())
        content[int(len(content) * part)] ^= 0x40
        (run / name).write_bytes(content)

    return flip


def removed(name: str) -> Damage:
    return lambda run: (run / name).unlink()


def folder_instead(name: str) -> Damage:
    def replace(run: Path) -> None:
        (run / name).unlink()
        (run / name).mkdir()

    return replace


def device_instead(name: str) -> Damage:
    """A link to a file that is none. Others of its kind have no end, or wait for somebody to write."""

    def replace(run: Path) -> None:
        (run / name).unlink()
        (run / name).symlink_to("/dev/null")

    return replace


def tensors(header: Any, data: bytes = b"") -> bytes:
    """A file in the format of safetensors with this header."""
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


class Trap:
    """Makes a directory when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("sprung",)


def halves(run: Path) -> None:
    """Weights in float16, and run.json as if it had always been so."""
    weights = {name: tensor.half() for name, tensor in checkpoint.load(run / WEIGHTS, "")[0].items()}
    checkpoint.save(run / WEIGHTS, weights, {})
    info(weight_sha256=checkpoint.weight_sha256(weights))(run)


def sealed(meta: str) -> Damage:
    """Weights whose meta is this text, under the digest that belongs to it."""

    def seal(run: Path) -> None:
        weights, _ = checkpoint.load(run / WEIGHTS, "")
        marks = {"meta": meta, "sha256": checkpoint._digest(weights, meta)}
        (run / WEIGHTS).write_bytes(safetensors.torch.save(weights, marks))

    return seal


ONE_NUMBER = {"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
OUTSIDE = {"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}
WEIGHTS, CONFIG = "model.safetensors", "config.yaml"

DAMAGES: dict[str, tuple[Damage, list[str]]] = {
    "run.json cut short": (cut("run.json"), ["run.json", "damaged", "--force"]),
    "run.json empty": (put("run.json", b""), ["run.json", "damaged"]),
    "run.json of bytes": (put("run.json", b"\xff\xfe\x00"), ["run.json", "damaged"]),
    "run.json without end": (put("run.json", 100_000 * b"["), ["run.json", "damaged"]),
    "run.json a list": (put("run.json", b"[]"), ["run.json", "not written by pe"]),
    "run.json of another program": (put("run.json", b'{"speed": 3}'), ["run.json", "not written by pe"]),
    "run.json with nothing but a status": (put("run.json", b'{"status": "finished"}'), ["run.json", "alphabet"]),
    "run.json a folder": (folder_instead("run.json"), ["no run.json"]),
    "an unknown status": (info(status="done"), ["run.json", "status"]),
    "a status that is no text": (info(status=["finished"]), ["run.json", "status"]),
    "status running, and no process": (info(status="running"), ["interrupted", "--resume"]),
    "status failed": (info(status="failed"), ["failed", "--force"]),
    "status diverged": (info(status="diverged"), ["diverged"]),
    "no alphabet": (info(alphabet=None), ["run.json", "alphabet", "missing"]),
    "an alphabet that is no text": (info(alphabet=3), ["run.json", "alphabet", "3"]),
    "an empty alphabet": (info(alphabet=""), ["run.json", "alphabet", "''"]),
    "an alphabet in another order": (info(alphabet="zyxabc"), ["run.json", "alphabet", "order"]),
    "an alphabet too small": (info(alphabet="abc"), ["weights", "do not fit"]),
    "no config": (removed(CONFIG), [CONFIG, "no such file"]),
    "an empty config": (put(CONFIG, b""), [CONFIG, "name"]),
    "a config of bytes": (put(CONFIG, b"\xff\x00"), [CONFIG, "damaged"]),
    "a config with a tab": (put(CONFIG, b"a:\n\tb"), [f"{CONFIG}:2:1", "tab"]),
    "a config that is a folder": (folder_instead(CONFIG), [CONFIG, "directory"]),
    "a config that is a device": (device_instead(CONFIG), [CONFIG, "not a regular file"]),
    "another width": (edited(CONFIG, "d_model: 16", "d_model: 32"), [CONFIG, "model.d_model is 32", "with 16"]),
    "other heads": (edited(CONFIG, "n_heads: 2", "n_heads: 4"), [CONFIG, "model.n_heads is 4", "with 2"]),
    "more layers": (edited(CONFIG, "n_layers: 1", "n_layers: 2"), [CONFIG, "model.n_layers is 2", "with 1"]),
    "another length": (edited(CONFIG, "length: 16", "length: 12"), [CONFIG, "training.length is 12", "with 16"]),
    "another base": (edited(CONFIG, "base: 10000.0", "base: 500.0"), [CONFIG, "encoding.base is 500.0", "10000.0"]),
    "another encoding": (edited(CONFIG, "name: rope", "name: alibi"), [CONFIG, "encoding.base", "alibi"]),
    "a width that is too much": (edited(CONFIG, "d_model: 16", "d_model: 1e9"), [CONFIG, "model.d_model", "16384"]),
    "an odd head size": (edited(CONFIG, "d_model: 16", "d_model: 18"), [CONFIG, "9", "pairs"]),
    "no weights": (removed(WEIGHTS), [WEIGHTS, "there is no"]),
    "meta that is no JSON": (sealed("{"), [WEIGHTS, "damaged", "--force"]),
    "meta without end": (sealed(100_000 * "["), [WEIGHTS, "damaged", "--force"]),
    "meta that is a list": (sealed("[]"), [WEIGHTS, "not written by pe", "--force"]),
    "weights cut short": (cut(WEIGHTS), [WEIGHTS, "damaged", "--force"]),
    "no byte of weights": (put(WEIGHTS, b""), [WEIGHTS, "damaged"]),
    "a bit of the weights": (flipped(WEIGHTS, 0.9), [WEIGHTS, "damaged", "SHA-256"]),
    "a bit of the header": (flipped(WEIGHTS, 0.01), [WEIGHTS, "damaged"]),
    "a bit of its length": (flipped(WEIGHTS, 0.0), [WEIGHTS, "damaged"]),
    "a header without end": (put(WEIGHTS, struct.pack("<Q", 2**60) + b"{}"), [WEIGHTS, "damaged"]),
    "weights outside the file": (put(WEIGHTS, tensors(OUTSIDE, b"1234")), [WEIGHTS, "damaged"]),
    "weights of another program": (put(WEIGHTS, tensors(ONE_NUMBER, b"1234")), [WEIGHTS, "not written by pe"]),
    "weights of nobody": (put(WEIGHTS, tensors({})), [WEIGHTS, "not written by pe"]),
    "a pickle": (put(WEIGHTS, pickle.dumps(Trap())), [WEIGHTS, "damaged"]),
    "a file of torch.save": (put(WEIGHTS, b"PK\x03\x04" + 100 * b"\0"), [WEIGHTS, "damaged"]),
    "weights of another kind of number": (halves, ["the weights do not fit", "torch.float16, not torch.float32"]),
    "weights that are a folder": (folder_instead(WEIGHTS), [WEIGHTS, "there is no"]),
}


@pytest.mark.parametrize("command", ["sample", "extrapolate"])
@pytest.mark.parametrize("case", DAMAGES)
def test_a_damaged_run_is_refused_and_left_as_it_is(case: str, command: str, folder: Path) -> None:
    damage, parts = DAMAGES[case]
    damage(only_run(folder / "results"))
    refuses(folder, [command], *parts)
    assert not (folder / "sprung").exists()


@pytest.mark.parametrize("case", [case for case in DAMAGES if case.startswith("run.json")])
def test_a_damaged_run_is_not_trained_over_unless_told_to(case: str, folder: Path) -> None:
    run = only_run(folder / "results")
    DAMAGES[case][0](run)
    refuses(folder, ["train", "good.yaml", "--threads", "1"], "run.json")


def test_what_does_not_decide_the_numbers_may_be_edited(folder: Path) -> None:
    run = only_run(folder / "results")
    before = pe("extrapolate", "--json").json["rows"]
    edited(CONFIG, "dropout: 0.0", "dropout: 0.5")(run)
    edited(CONFIG, "weight_decay: 0.0", "weight_decay: 0.5")(run)
    after = pe("extrapolate", "--json").json["rows"]
    assert [row["loss"] for row in after] == [row["loss"] for row in before]


def test_a_changed_value_is_found_at_any_depth() -> None:
    then = {"encoding": {"name": "mix", "parts": [{"name": "rope", "base": 2.0}, {"name": "t5"}]}}
    assert changed(then, json.loads(json.dumps(then))) is None
    now = {"encoding": {"name": "mix", "parts": [{"name": "rope", "base": 3.0}, {"name": "t5"}]}}
    assert changed(then, now) == "encoding.parts.0.base is 3.0, and the run was trained with 2.0"
    assert changed(then, {"encoding": {**then["encoding"], "new": 1}, "other": 2}) is None, "an option of later"
    assert "encoding.parts is" in str(changed(then, {"encoding": {"name": "mix", "parts": []}}))
    assert "encoding.parts is nothing" in str(changed(then, {"encoding": {"name": "mix"}}))


def test_an_output_folder_of_any_bytes_can_be_read_again(folder: Path) -> None:
    out = folder / os.fsdecode(b"o\xff")
    assert pe("train", "good.yaml", "--out", out, "--threads", 1).code == 0
    done = pe("sample", "--out", out, "--chars", 5, "--json")
    assert (done.code, len(done.json["text"])) == (0, 5)


def test_a_run_is_damaged_and_not_missing_whichever_way_it_is_named(folder: Path) -> None:
    run = only_run(folder / "results")
    (run / "run.json").unlink()
    for name in (run.name, str(run), str(run.relative_to(folder))):
        refuses(folder, ["extrapolate", name], str(run), "no run.json")


@pytest.mark.parametrize("name", ["training.csv", "extrapolation.csv"])
@pytest.mark.parametrize("content", [b"", b"step,lo", b"\xff\xfe\n1\n", b'step,loss\n"1,2\n', b"\n\n"])
def test_a_table_that_is_none_is_said_in_our_words(name: str, content: bytes, folder: Path) -> None:
    run = only_run(folder / "results")
    (run / name).write_bytes(content)
    first = "step" if name == "training.csv" else "run"
    refuses(folder, ["plot", run.name], str(run / name), f"damaged: it is no table of {first}")
    device_instead(name)(run)
    refuses(folder, ["plot", run.name], str(run / name), "not a regular file")


REQUESTS: dict[str, list[str]] = {
    "gone": ["gone", "not there"],
    "good": ["did you mean 'good-"],
    "text.txt": ["text.txt", "no run.json"],
    "results": ["results", "no run.json"],
    "--out nowhere": ["nowhere", "pe train"],
    "--device potato": ["--device", "'potato'"],
}
OWN_REQUESTS: dict[str, dict[str, list[str]]] = {
    "extrapolate": {
        "{}": ["RUN", "empty"],
        "--max-len 0": ["--max-len", "from 2", "'0'"],
        "--max-len 8": ["--max-len 8", "training length 16"],
        "--max-len 1e12": ["--max-len", "16777216", "'1e12'"],
        "--max-len 4096x": ["--max-len", "'4096x'"],
        "--max-len 64 --lengths 32": ["--max-len", "--lengths", "one of them"],
        "--lengths {}": ["evaluation.lengths", "one or more"],
        "--lengths 1e12": ["evaluation.lengths", "16777216"],
        "--lengths 32 --set evaluation.lengths=64": ["--set evaluation.lengths=64", "32", "keep one"],
        "--max-len 32 --set evaluation.lengths=64": ["--set evaluation.lengths=64", "16,32", "keep one"],
        "--lengths 64,,128": ["evaluation.lengths", "commas"],
        "--strategy wrapp": ["'wrapp'", "'wrap'?"],
        "--strategy {}": ["evaluation.strategies", "at least one"],
        "--set training.steps=3": ["training.steps", "evaluation.KEY"],
        "--set evaluation.windoes=3": ["evaluation.windoes", "'windows'?"],
        "--set evaluation.scored=17": ["evaluation.scored", "16", "17"],
        "--data {}": ["directory"],
        "--data gone.txt": ["gone.txt", "no such file"],
        "--data task:cop": ["--data task:cop: task: 'cop'", "'copy'?"],
        '--data {"task":"copy","x":1}': ['--data {"task":"copy","x":1}: x: unknown key'],
        "--data good.yaml": ["good.yaml", "outside the alphabet", "U+0022"],
        "--threads 0": ["--threads", "'0'"],
    },
    "sample": {
        "{}": ["RUN", "empty"],
        "--prompt {}": ["--prompt", "empty"],
        "--prompt Ä☃": ["--prompt", "'Ä' U+00C4", "'☃' U+2603"],
        "--prompt \ud800": ["--prompt", "U+D800"],
        "--chars 0": ["--chars", "from 1", "'0'"],
        "--chars -5": ["--chars", "'-5'"],
        "--chars x": ["--chars", "'x'"],
        "--chars 1e12": ["--chars", "100000", "'1e12'"],
        "--temperature 0": ["--temperature", "above 0", "--greedy"],
        "--temperature -1": ["--temperature", "above 0"],
        "--temperature nan": ["--temperature", "finite", "'nan'"],
        "--temperature inf": ["--temperature", "finite", "'inf'"],
        "--temperature x": ["--temperature", "finite", "'x'"],
        "--seed -1": ["--seed", "'-1'"],
        "--seed x": ["--seed", "'x'"],
    },
}


@pytest.mark.parametrize(
    ("command", "request_"),
    [(command, line) for command in OWN_REQUESTS for line in (*REQUESTS, *OWN_REQUESTS[command])],
)
def test_a_bad_request_of_a_good_run(command: str, request_: str, folder: Path) -> None:
    arguments = ["" if part == "{}" else part for part in request_.split(" ")]
    refuses(folder, [command, *arguments], *(REQUESTS | OWN_REQUESTS[command])[request_])


def test_an_evaluation_of_nothing_leaves_the_tables_of_before(folder: Path) -> None:
    assert pe("extrapolate", "--lengths", "32").code == 0
    table = only_run(folder / "results") / "extrapolation.csv"
    before = table.read_bytes()
    done = pe("extrapolate", "--lengths", "16777216")
    assert done.code == 2
    assert "no length could be evaluated" in done.err
    assert table.read_bytes() == before
