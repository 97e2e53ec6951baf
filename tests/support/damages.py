"""Files of a run, damaged by accident or on purpose."""

from __future__ import annotations

import json
import os
import pickle
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import mutants
import torch
from torch import Tensor

from pe_cli import checkpoint

TENSORS, TABLES = ("model.safetensors", "state.safetensors"), ("training.csv", "extrapolation.csv", "validation.csv")
NUMBERS = [0, -1, 1, 2**31, 2**63 - 1, 2**63, 2**64 - 1]
VALUES: list[Any] = [
    None, True, False, 0, -1, 0.5, 1e308, 10**30, 10**4000, "", "x", "\ud800", "\n" * 30, "finished", "interrupted",
    "running", "diverged", "abc", "x" * 5000, "../..", [], {}, [[1]], {"a": {"b": None}}, ["finished"], float("nan"),
    float("inf"), 39 * "[",
]  # fmt: skip
CELLS = [
    "",
    "nan",
    "inf",
    "-inf",
    "1e999",
    "x",
    '"',
    '"a,b"',
    "\x00",
    "é",
    "9" * 400,
    "-1",
    "0",
    "1,2",
    "\n",
    "\r",
    "=",
]


class Trap:
    """Makes a directory when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("sprung",)


def damage(run: Path, draw: Random) -> str:
    """Changes one file of a run, or two; says which, and how."""
    there = [name for name in (*TENSORS, "run.json", "config.yaml", *TABLES) if (run / name).is_file()]
    weights = [3 if name in (*TENSORS, "run.json") else 1 for name in there]
    chosen = dict.fromkeys(draw.choices(there, weights, k=draw.choice([1, 1, 1, 2])))
    return "; ".join(f"{name}: {_changed(run / name, draw)}" for name in chosen)


def _changed(path: Path, draw: Random) -> str:
    if path.name == "config.yaml" and draw.random() < 0.6:
        path.write_bytes(mutants.config([path.read_bytes()], draw))
        return "a mutant"
    own = OF_TENSORS if path.name in TENSORS else OF_TABLES if path.name in TABLES else []
    change = draw.choice([*OF_ANY, *(OF_JSON if path.name == "run.json" else own)])
    change(path, draw)
    return change.__name__.strip("_").replace("_", " ")


# ---- any file


def _cut(path: Path, draw: Random) -> None:
    os.truncate(path, draw.randrange(path.stat().st_size + 1))


def _emptied(path: Path, draw: Random) -> None:
    path.write_bytes(b"")


def _flipped(path: Path, draw: Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(draw.choice([1, 1, 8, 64])):
        content[draw.randrange(draw.choice([len(content), min(len(content), 64)]))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)


def _noise(path: Path, draw: Random) -> None:
    path.write_bytes(draw.randbytes(draw.choice([1, 7, 8, 9, 100, 5000])))


def _longer(path: Path, draw: Random) -> None:
    path.write_bytes(path.read_bytes() + draw.choice([b"\0", b"\n", b"}", b"[", b"x" * 10**6, draw.randbytes(100)]))


def _pickled(path: Path, draw: Random) -> None:
    path.write_bytes(pickle.dumps(Trap(), protocol=draw.randrange(6)))


def _saved_by_torch(path: Path, draw: Random) -> None:
    torch.save({"a": Trap()}, path)


def _zipped(path: Path, draw: Random) -> None:
    path.write_bytes(b"PK\x03\x04" + draw.randbytes(100))


def _directory(path: Path, draw: Random) -> None:
    path.unlink()
    path.mkdir()


def _missing(path: Path, draw: Random) -> None:
    path.unlink()


def _link(path: Path, draw: Random) -> None:
    path.unlink()
    target = draw.choice([path.name, "gone", "..", "training.csv", "run.json", "/dev/null", "/dev/zero", "/etc/passwd"])
    path.symlink_to(target)


def _pipe(path: Path, draw: Random) -> None:
    path.unlink()
    os.mkfifo(path)


def _other_file(path: Path, draw: Random) -> None:
    names = sorted(other.name for other in path.parent.iterdir() if other.is_file())
    path.write_bytes((path.parent / draw.choice(names)).read_bytes())


# ---- tensors


def _length_of_header(path: Path, draw: Random) -> None:
    content = path.read_bytes()
    size = draw.choice([*NUMBERS, len(content), len(content) - 8, len(content) - 7, 100_000_001])
    path.write_bytes(struct.pack("<Q", size % 2**64) + content[8:])


def _header(path: Path, draw: Random) -> None:
    """A header that JSON can hold, with another value somewhere."""
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    name = draw.choice(sorted(header))
    entry = header[name]
    key = draw.choice([*entry, "more"])
    shapes: list[Any] = [[], [0], [2**40], [2**63], [2**62, 2], [-1], [1.5], [10**30], 32 * [1], 2000 * [1], "x", None]
    offsets: list[Any] = [[0, 0], [0, 2**63], [4, 0], [-4, 4], [0, 10**30], [0], [0, 4, 8], "x", None]
    types: list[Any] = ["F64", "F16", "BF16", "I8", "U64", "BOOL", "F8_E5M2", "F4", "C64", "I128", "f32", "", 3, None]
    values = {"shape": shapes, "data_offsets": offsets, "dtype": types}.get(key, [*VALUES, entry.get("sha256")])
    changed = draw.choice(values)
    header[draw.choice([name, name, "a", ""])] = draw.choice([{**entry, key: changed}, changed, entry])
    text = draw.choice([json.dumps(header), json.dumps(header)[:-1], json.dumps(header) + " " * 999]).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + size :])


def _nested_header(path: Path, draw: Random) -> None:
    text = draw.choice(
        [b"[" * 100_000, b'{"a":' * 50_000, b"{}", b"[]", b"3", b'{"__metadata__":{"meta":"","sha256":""}}']
    )
    path.write_bytes(struct.pack("<Q", len(text)) + text)


def _other_tensors(path: Path, draw: Random) -> None:
    """A whole checkpoint, by its digest too, whose tensors are not those of this model."""
    tensors, meta = checkpoint.load(path, "")
    for _ in range(draw.choice([1, 1, 3])):
        name = draw.choice(sorted(tensors))
        changed = draw.choice(TENSOR_CHANGES)(tensors[name], draw)
        if changed is None:
            del tensors[name]
        else:
            tensors[draw.choice([name, name, name, f"{name}.more", "x"])] = changed
    checkpoint.save(path, tensors, meta)


TENSOR_CHANGES: Sequence[Callable[[Tensor, Random], Tensor | None]] = [
    lambda tensor, draw: None,
    lambda tensor, draw: tensor[..., :-1] if tensor.ndim else tensor[None],
    lambda tensor, draw: tensor.flatten(),
    lambda tensor, draw: tensor[None],
    lambda tensor, draw: tensor.new_zeros(0),
    lambda tensor, draw: tensor.new_zeros(0, 7),
    lambda tensor, draw: tensor.to(draw.choice([torch.float64, torch.bfloat16, torch.int64, torch.bool, torch.uint8])),
    lambda tensor, draw: torch.full_like(tensor, draw.choice([0, 1, 255])),
    lambda tensor, draw: torch.full_like(tensor, float(draw.choice(["nan", "inf", "-inf", "1e38"])))
    if tensor.is_floating_point() else tensor + 1,
    lambda tensor, draw: tensor.to(torch.complex64),
]  # fmt: skip


def _other_meta(path: Path, draw: Random) -> None:
    """The same with other words beside the tensors."""
    tensors, meta = checkpoint.load(path, "")
    place = meta.get("rows", meta) if draw.random() < 0.5 else meta
    place[draw.choice([*place, "more"])] = draw.choice(VALUES)
    checkpoint.save(path, tensors, draw.choice([meta, meta, meta, draw.choice(VALUES)]))


# ---- run.json and tables


def _other_value(path: Path, draw: Random) -> None:
    info = json.loads(path.read_bytes())
    key = draw.choice(sorted(info))
    inner = info[key] if isinstance(info[key], dict) and draw.random() < 0.7 else info
    inner[draw.choice(sorted(inner)) if inner is not info else key] = draw.choice(VALUES)
    path.write_text(json.dumps(info), encoding="utf-8")


def _without_a_key(path: Path, draw: Random) -> None:
    info = json.loads(path.read_bytes())
    del info[draw.choice(sorted(info))]
    path.write_text(json.dumps(info), encoding="utf-8")


def _no_object(path: Path, draw: Random) -> None:
    texts = [
        json.dumps(draw.choice(VALUES)),
        "[" * 100_000,
        '{"a":' * 50_000,
        "9" * 5000,
        "NaN",
        '{"status": "finished"}',
    ]
    path.write_text(draw.choice(texts), encoding="utf-8")


def _other_cell(path: Path, draw: Random) -> None:
    lines = [line.split(",") for line in path.read_text(encoding="utf-8").split("\n")]
    line = draw.choice([lines[0], draw.choice(lines)])
    line[draw.randrange(len(line))] = draw.choice(CELLS)
    path.write_text("\n".join(map(",".join, lines)), encoding="utf-8")


def _other_header(path: Path, draw: Random) -> None:
    header, newline, rest = path.read_text(encoding="utf-8").partition("\n")
    names = header.split(",")
    draw.shuffle(names)
    kept = names[: draw.randint(0, len(names))] + draw.choice([[], names[:1], ["x" * 1000]])
    path.write_text(",".join(kept) + newline + rest, encoding="utf-8")


def _other_lines(path: Path, draw: Random) -> None:
    lines = path.read_text(encoding="utf-8").split("\n")
    place = draw.randrange(len(lines))
    changed = [
        *lines[:place],
        *draw.choice([[], [lines[place]] * 2, [","], ["x" * 10**6], ['"'], lines]),
        *lines[place + 1 :],
    ]
    path.write_text("\n".join(changed), encoding="utf-8")


OF_ANY: list[Callable[[Path, Random], None]] = [
    _cut, _emptied, _flipped, _noise, _longer, _pickled, _saved_by_torch, _zipped, _directory, _missing, _link, _pipe,
    _other_file,
]  # fmt: skip
OF_TENSORS: list[Callable[[Path, Random], None]] = [
    _length_of_header, _header, _header, _header, _nested_header, _other_tensors, _other_tensors, _other_tensors,
    _other_meta, _other_meta,
] * 2  # fmt: skip
OF_JSON: list[Callable[[Path, Random], None]] = [
    _other_value,
    _other_value,
    _other_value,
    _without_a_key,
    _no_object,
] * 3
OF_TABLES: list[Callable[[Path, Random], None]] = [_other_cell, _other_cell, _other_header, _other_lines] * 3
