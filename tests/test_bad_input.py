"""Bad configs, names, numbers and texts: one message that says what would be right, exit code 2, and nothing left."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

import pytest
from command_line import pe
from refusals import refuses
from small_runs import config_file

from pe_cli import cli, commands, comparing, inspection

BOMB = "x-a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"x-{inner}{outer}: &{outer} [{', '.join(10 * [f'*{inner}'])}]\n"
    for inner, outer in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a config that is good and its text. Nothing may come so far as to train."""

    def begun(*arguments: object) -> NoReturn:
        raise AssertionError("what is not refused is trained")

    config_file(tmp_path / "good.yaml", encoding="rope")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(commands, "train_run", begun)
    monkeypatch.setattr(comparing, "execute", begun)
    return tmp_path


every_command = pytest.mark.parametrize("command", ["train", "config", "compare"])

# what a file says -> what the message must have; the file and the line of what is wrong come by themselves
CONFIGS: dict[str, tuple[str | bytes, list[str]]] = {
    "unknown encoding": ("encoding: ropee", [":1: encoding", "'ropee'", "did you mean 'rope'?"]),
    "unknown encoding with an invisible character": ("encoding: rope\u200b", ["'rope\\u200b'", "'rope'?"]),
    "unknown encoding, nothing near": ("encoding: qqq", ["'qqq'", "known: ", " alibi,"]),
    "unknown part": ("encoding: {name: mix, parts: [leanred, t5]}", ["'leanred'", "'learned'?"]),
    "unknown key": ("encodng: rope", [":1: encodng", "did you mean 'encoding'?"]),
    "unknown key in a block": ("training:\n  stepz: 3", [":2: training.stepz", "did you mean 'steps'?"]),
    "key of another block": ("d_model: 16", [":1: d_model", "'model.d_model'"]),
    "option of another encoding": ("encoding: {name: alibi, base: 3}", ["encoding.base", "an option of", " rope,"]),
    "many unknown keys": ("\n".join(f"k{number}: 1" for number in range(99)), ["k0", "k5", "and 93 more"]),
    "unknown corpus": ("data: pydoc", [":1: data", "'pydoc'", "did you mean 'pydocs'?"]),
    "unknown strategy": ("evaluation: {strategies: [repeat-lats]}", ["'repeat-lats'", "'repeat_last'?"]),
    "unknown protocol": ("evaluation: {protocols: [same]}", ["evaluation.protocols", "'same'", "same_targets"]),
    "unknown sampler": ("positions: random", ["positions", "'random'", "did you mean 'randomized'?"]),
    "a word for a number": ("training: {steps: many}", ["training.steps", "whole number", "'many'"]),
    "a fraction": ("training: {steps: 3.5}", ["training.steps", "whole number", "'3.5'"]),
    "a sign": ("training: {steps: -5}", ["training.steps", "greater than or equal to 0", "-5"]),
    "nan": ("training: {learning_rate: .nan}", ["training.learning_rate", "finite", ".nan"]),
    "inf": ("training: {learning_rate: inf}", ["training.learning_rate", "finite", "'inf'"]),
    "digits without end": (f"seed: {'9' * 5000}", [":1: seed", "at most 9223372036854775807", "(5002 characters)"]),
    "an exponent without end": ("seed: 1e999999", [":1: seed", "at most 9223372036854775807"]),
    "an exponent beyond any": ("seed: 99e999999", [":1: seed", "at most 9223372036854775807"]),
    "a switch": ("model: {qk_norm: 2}", ["model.qk_norm", "true or false", "'2'"]),
    "a block for a number": ("training: {steps: {a: 1}}", ["training.steps", "whole number"]),
    "a number for a block": ("training: 3", [":1: training", "block of keys", "'3'"]),
    "a list for a name": ("name: [a]", [":1: name", "text", "['a']"]),
    "a choice": ("training: {optimizer: sgd}", ["training.optimizer", "muon, adamw", "'sgd'"]),
    "a name with a slash": ("name: a/b", [":1: name", "directory", "'a/b'"]),
    "a name of two lines": ('name: "a\\nb"', [":1: name", "directory", "'a\\nb'"]),
    "an empty text for an encoding": ("encoding: ''", [":1: encoding: is empty", "none"]),
    "a blank for an encoding": ('encoding: " "', [":1: encoding: is empty", "none"]),
    "an empty part": ("encoding: {name: mix, parts: ['', t5]}", [":1: encoding.parts.0: is empty", "none"]),
    "two merges": ("x-a: &a {}\nmodel:\n  <<: *a\n  <<: *a", [":4: model.<<", "line 3", "line 4", "[*first, *second]"]),
    "nothing after the colon": ("encoding:", [":1: encoding", "empty", "none"]),
    "odd head size": ("encoding: rope\nmodel: {d_model: 30, n_heads: 2}", ["30", "15", "28 or 32"]),
    "odd rotary width": ("encoding: {name: rope_partial, fraction: 0.1}", ["encoding.fraction", "rope_partial"]),
    "heads that do not divide": ("model: {d_model: 32, n_heads: 5}", ["32", "5", "4", "8"]),
    "a width too many": ("model: {d_model: 1e7}", ["model.d_model", "16384", "10000000"]),
    "layers too many": ("model: {n_layers: 1e6}", ["model.n_layers", "1024", "1000000"]),
    "heads too many": ("model: {n_heads: 1e15}", ["1000000000000000", "would work"]),
    "a model too large": ("model: {d_model: 16384, n_layers: 1000}", ["parameters", "268,435,456"]),
    "a table too large": ("encoding: {name: shaw, clip: 16_777_216}", ["encoding: ", "parameters", "268,435,456"]),
    "a batch too large": ("training: {batch_size: 1e12}", ["batch_size", "16777216", "would do"]),
    "a length too large": ("training: {length: 1e12}", ["training.length", "16777216", "1000000000000"]),
    "a length too small": ("training: {length: 1}", ["training.length", "2", "1"]),
    "lengths too large": ("evaluation: {lengths: [1e12]}", ["evaluation.lengths", "16777216"]),
    "no lengths": ("evaluation: {lengths: []}", ["evaluation.lengths", "one or more"]),
    "more scored than trained": ("training: {length: 16}\nevaluation: {scored: 17}", ["scored", "16", "17"]),
    "windows without end": ("evaluation: {windows: 1e12}", ["evaluation.windows", "1048576"]),
    "numbers too long to be written": ("data: {task: addition, max_length: 5000}", ["data.max_length", "4299"]),
    "an instance too long for a batch": ("data: {task: copy, max_length: 1e6}", [":1: training: ", "would do"]),
    "a tab": ("model:\n\td_model: 16", [":2:1", "tab", "spaces"]),
    "no colon": ("encoding rope\nseed: 1", [":2:", "colon"]),
    "an open quote": ('name: "abc\nseed: 1', ["quote"]),
    "an open bracket": ("encoding: [", [":1", "encoding: ["]),
    "a key twice": ("seed: 1\nseed: 2", [":2: seed", "line 1", "line 2"]),
    "a key twice, deeper": ("model:\n  n_heads: 2\n  n_heads: 4", [":3: model.n_heads", "line 2", "line 3"]),
    "an object of Python": ('encoding: !!python/object/apply:os.mkdir ["x"]', ["os.mkdir", "not allowed"]),
    "a tag": ("encoding: !custom rope", ["!custom", "not allowed"]),
    "an alias to nothing": ("encoding: *gone", ["'gone'"]),
    "an alias to itself": ("x-a: &a [*a]", ["alias"]),
    "a bomb of aliases": (BOMB, ["20000", "aliases"]),
    "too deep": ("encoding: " + 500 * "[" + 500 * "]", ["nested", "40 levels"]),
    "two documents": ("seed: 1\n---\nseed: 2", [":2:1", "document"]),
    "a list": ("- seed", ["list", "key: value"]),
    "one word": ("rope", ["single value", "key: value"]),
    "a zero byte": (b"name: a\0b", ["zero byte", "offset 7"]),
    "an escape beyond the last character": ('seed: 1\nname: "\\U00110000"', [":2:", "escape", "0x110000"]),
    "an escape beyond any number": ('name: "\\UFFFFFFFF"', [":1:", "escape"]),
    "a version of thousands of digits": (f"%YAML {'1' * 5000}.1\n---\nseed: 1", [":1:", "YAML cannot have"]),
    "a control character": (b'name: "a\x07b"', [":1", "U+0007"]),
    "UTF-16": ("encoding: rope".encode("utf-16"), ["UTF-16", "UTF-8"]),
    "Latin-1": ("name: é".encode("latin-1"), ["0xe9", "offset 6", "UTF-8"]),
}  # fmt: skip


@every_command
@pytest.mark.parametrize("case", CONFIGS)
def test_a_bad_config(case: str, command: str, folder: Path) -> None:
    text, parts = CONFIGS[case]
    (folder / "bad.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    refuses(folder, [command, "bad.yaml"], "bad.yaml", *parts)


@every_command
def test_a_path_that_is_no_config(command: str, folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "loop.yaml").symlink_to("loop.yaml")
    refuses(folder, [command, "gone.yaml"], "gone.yaml", "no")
    refuses(folder, [command, "sub"], str(folder / "sub"), "directory")
    refuses(folder, [command, ""], "")
    refuses(folder, [command, "loop.yaml"], "loop.yaml")
    refuses(folder, [command, "text.txt"], "text.txt")
    refuses(folder, [command, 300 * "x"], "name too long")
    refuses(folder, [command, 50 * "x\n"], "more lines")


@every_command
def test_a_config_without_end(command: str, folder: Path) -> None:
    refuses(folder, [command, "/dev/zero"], "/dev/zero", "no end within 262,144 bytes")


def test_every_bad_config_of_a_comparison_is_named(folder: Path) -> None:
    (folder / "tab.yaml").write_text("model:\n\td_model: 16")
    (folder / "key.yaml").write_text("encodng: rope")
    for order in (["tab", "good", "key"], ["key", "tab"]):
        refuses(folder, ["compare", *(f"{name}.yaml" for name in order)], "tab.yaml:2:1", "key.yaml:1: encodng")


# ---- the same values on the command line

SETTINGS: dict[str, list[str]] = {
    "encoding=ropee": ["--set encoding=ropee", "'rope'?"],
    "encoding= ": ["--set encoding=", "empty"],
    "encoding={name: rope": ["--set encoding={name: rope", "','"],
    "encoding={base: 3}": ["--set encoding={base: 3}", "no name"],
    "encoding.thetta=5": ["encoding.thetta", "base"],
    "model.d_model=1e7": ["--set model.d_model=1e7", "16384"],
    "model.d_model.x=3": ["model.d_model", "block of keys"],
    "training.steps=": ["--set training.steps=", "whole number", "''"],
    "training.steps=٣": ["training.steps", "whole number"],
    "training.learning_rate=1e999": ["--set training.learning_rate=1e999", "finite"],
    "training.batch_size=1e9": ["batch_size", "16777216"],
    "evaluation.lengths=64,,128": ["--set evaluation.lengths=64,,128", "commas"],
    "seed=-1": ["--set seed=-1", "greater than or equal to 0"],
    "seed=1.5": ["--set seed=1.5", "whole number"],
    "data=": ["--set data=", "empty"],
    "data=gone.txt": ["--set data=gone.txt", "known: enwik8"],
    "data=.": ["--set data=.", "directory"],
    "name=..": ["--set name=..", "directory"],
    "a..b=3": ["--set a..b=3", "training.steps is one"],
    "=": ["--set =", "KEY=VALUE"],
    "steps": ["--set steps", "KEY=VALUE"],
}


@every_command
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_bad_value_on_the_command_line(setting: str, command: str, folder: Path) -> None:
    refuses(folder, [command, "good.yaml", "--set", setting], *SETTINGS[setting])


OPTIONS: dict[str, list[str]] = {
    "train good.yaml --threads 0": ["--threads", "from 1", "'0'"],
    "train good.yaml --threads x": ["--threads", "whole number", "'x'"],
    "train good.yaml --threads 1e15": ["--threads", "1000000000000000", "512"],
    "train good.yaml --seed x": ["--seed x", "whole number"],
    "train good.yaml --device potato": ["--device", "'potato'", "cuda"],
    "train good.yaml --device cuda:99": ["--device", "'cuda:99'", "cpu"],
    "train good.yaml --out {}": ["--out", "empty"],
    "train good.yaml --out text.txt": ["text.txt", "not a directory"],
    "train good.yaml --resume": ["nothing to resume"],
    "train good.yaml --resume --force": ["--force", "--resume"],
    "compare good.yaml --seeds 0": ["--seeds", "from 1 to 1000", "'0'"],
    "compare good.yaml --seeds 1e9": ["--seeds", "from 1 to 1000", "'1e9'"],
    "compare good.yaml --seeds {}": ["--seeds", "''"],
    "compare good.yaml --seeds 1,,2": ["--seeds", "''"],
    "compare good.yaml --seeds 1,99999999999999999999": ["--seeds", "'99999999999999999999'"],
    "compare good.yaml --jobs 0": ["--jobs", "from 1 to 1024", "'0'"],
    "compare good.yaml --jobs 1e9": ["--jobs", "from 1 to 1024", "'1e9'"],
    "compare good.yaml --threads 1e15": ["--threads", "512"],
    "compare good.yaml --max-len 1e12": ["--max-len", "16777216", "'1e12'"],
    "compare good.yaml --name {}": ["--name", "1 to 100 bytes", "''"],
    "compare good.yaml --name ..": ["--name", "'..'"],
    "compare good.yaml --name a/b": ["--name", "'a/b'"],
    "compare good.yaml --name runs": ["--name", "'runs'"],
    "compare good.yaml --baseline goood": ["--baseline", "'goood'", "'good'?"],
    "compare *.nothing": ["'*.nothing'", "nothing matches"],
    "list encoding": ["'encoding'", "'encodings'?"],
    "list {}": ["''", "known"],
    "inspect ropee": ["'ropee'", "'rope'?"],
    "inspect {}": ["empty"],
    "inspect rope --length 0": ["--length", "from 1", "'0'"],
    "inspect rope --length 1e12": ["--length", "'1e12'", "65536"],
    "inspect rope --length 4096x": ["--length", "'4096x'"],
    "inspect rope --length ٣": ["--length", "'٣'"],
    "inspect rope --at-length -1": ["--at-length", "'-1'"],
    "inspect rope --at-length 1e12": ["--at-length", "'1e12'", "65536"],
    "inspect rope --strategy wrapp": ["'wrapp'", "'wrap'?"],
    "inspect learned --length 500": ["128 rows", "499"],
    "inspect rope --set encoding.name=alibi": ["--set encoding.name=alibi", "in place of rope"],
    "inspect rope --set encoding=alibi": ["--set encoding=alibi", "in place of rope"],
    "inspect sinks --set encoding.encoding=t5 --set encoding.encoding.name=rope": ["encoding.encoding=t5", "keep one"],
    "inspect alibi --set model.n_heads=300": ["--set model.n_heads=300: model: ", "parameters"],
    "plot rope --set encoding.name=alibi": ["--set encoding.name=alibi", "in place of rope"],
    "plot rope --set Encoding={name:alibi}": ["--set Encoding={name:alibi}", "in place of rope"],
    "properties rope --set encoding.name=alibi": ["--set encoding.name=alibi", "in place of rope"],
    "properties rope --set training.length=2049": ["training.length 2049", "at most 2048"],
    "properties rope --json --markdown": ["--json and --markdown", "one of them"],
    "list --json --markdown": ["--json and --markdown", "one of them"],
    "config --encoding rope --set encoding=alibi": ["--set encoding=alibi", "--encoding rope", "keep one"],
    "config --encoding rope --set encoding.name=alibi": ["--set encoding.name=alibi", "--encoding rope", "keep one"],
    "config --seed 3 --set seed=4": ["--set seed=4", "--seed 3", "keep one"],
    "plot rope --at-length 1e5": ["--at-length", "65536"],
    "plot ropee": ["'ropee'", "'rope'?", "nor a run"],
    "plot {}": ["empty"],
    "plot none": ["none", "no picture"],
    "plot rope --kind table": ["rope", "no picture of table", "ids, similarity, decay, attention"],
    "plot rope --kind tabel": ["--kind", "'tabel'", "'table'?"],
    "plot rope --length 0": ["--length", "from 1", "'0'"],
    "plot rope --length 1e12": ["--length", "'1e12'", "65536"],
    "plot rope --layer 4": ["--layer 4", "0 to 3"],
    "plot rope --out a.pdf": ["--out a.pdf", ".png or .svg"],
    "plot rope --out {}": ["--out", "empty"],
    "plot rope --strategy wrapp": ["'wrapp'", "'wrap'?"],
    "plot rope --set encoding.base=1 --set encoding.base=2 --set seed=1 --set seed=2": ["encoding.base and seed"],
    "plot alibi --length 5000 --kind bias": ["4 × 5000 × 5000", "1024"],
    "inspect rope --set model.n_layers=1e6": ["model.n_layers", "1024"],
    "bench rope --set data.task=copy": ["--set data.task=copy", "a text"],
    "bench rope --max-len 256 --set evaluation.lengths=128": ["evaluation.lengths=128", "--max-len 256", "keep one"],
    "bench rope --lengths 256 --set evaluation.lengths=128": ["evaluation.lengths=128", "--lengths 256", "keep one"],
    "compare good.yaml --max-len 64 --set evaluation.lengths=16": ["lengths=16", "--max-len 64", "keep one"],
    "inspect learned --set training.length=1e7": ["training.length", "16777216"],
}


@pytest.mark.parametrize("line", OPTIONS)
def test_a_bad_option(line: str, folder: Path) -> None:
    arguments = ["" if part == "{}" else part for part in line.split(" ")]
    refuses(folder, arguments, *OPTIONS[line])


def test_threads_asked_for_by_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1000000")
    refuses(folder, ["train", "good.yaml"], "OMP_NUM_THREADS", "1000000", "512")


def test_a_folder_of_data_that_is_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("text.txt", "gone"):
        monkeypatch.setenv("PE_DATA_DIR", str(folder / place))
        refuses(folder, ["train", "--data", "shakespeare"], "PE_DATA_DIR", str(folder / place))


# ---- texts

TEXTS: dict[str, tuple[bytes, list[str]]] = {
    "empty": (b"", ["0 characters", "20"]),
    "too short for anything": (b"hello", ["5 characters", "20"]),
    "one character": (1000 * b"a", ["'a'", "2 different"]),
    "bytes": (20 * bytes(range(256)), ["UTF-8", "0x80", "offset 128"]),
    "UTF-16": ((50 * "hello\n").encode("utf-16"), ["UTF-8", "offset 0", "UTF-16"]),
    "Latin-1": ((50 * "héllo\n").encode("latin-1"), ["UTF-8", "0xE9", "offset 1"]),
    "cut within a character": ((50 * "héllo\n").encode() + b"\xc3", ["UTF-8", "0xC3", "offset 350"]),
    "half a pair": (50 * b"ab\xed\xa0\x80", ["UTF-8", "0xED", "offset 2"]),
}  # fmt: skip


@pytest.mark.parametrize("command", ["train", "compare"])
@pytest.mark.parametrize("case", TEXTS)
def test_a_bad_text(case: str, command: str, folder: Path) -> None:
    content, parts = TEXTS[case]
    (folder / "text.txt").write_bytes(content)
    refuses(folder, [command, "good.yaml"], str(folder / "text.txt"), *parts)


@pytest.mark.parametrize("command", ["train", "compare"])
def test_a_text_too_short_for_the_training_length(command: str, folder: Path) -> None:
    (folder / "text.txt").write_text("ab" * 100)
    numbers = ["training.length 180", "at least 181", "has 180", "at least 202", "has 200"]
    refuses(folder, [command, "good.yaml", "--set", "training.length=180"], str(folder / "text.txt"), *numbers)


@pytest.mark.parametrize("command", ["train", "compare"])
def test_what_is_no_text_file(command: str, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to("loop")
    for name, part in (("pipe", "regular file"), (".", "directory"), ("loop", "loop"), ("~nobody/x", "~nobody/x")):
        refuses(folder, [command, "good.yaml", "--data", name], part)


# ---- what is nobody's input


def test_a_stream_that_takes_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments in (["--help"], ["list", "corpora"], ["list", "corpora", "--json"]):
        with open("/dev/full", "w") as full, monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["pe", *arguments])
            patch.setattr(sys, "stdout", full)
            with pytest.raises(SystemExit) as ended:
                cli.main()
        assert ended.value.code == 2
        assert "No space left on device" in capsys.readouterr().err


def test_memory_that_is_not_there_is_said_and_a_fault_of_the_program_shows_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def failing(error: Exception) -> None:
        def fail(*arguments: object, **options: object) -> NoReturn:
            raise error

        monkeypatch.setattr(inspection, "inspect_encoding", fail)

    for error in (MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: 8589934592 bytes")):
        failing(error)
        done = pe("inspect", "rope")
        assert (done.code, done.out) == (1, "")
        assert done.err.startswith("error: out of memory")
    failing(ValueError("a fault"))
    with pytest.raises(ValueError, match="a fault"):
        pe("inspect", "rope")
