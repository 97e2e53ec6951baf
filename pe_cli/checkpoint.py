"""Tensors in safetensors files, with a digest: opening one runs no code, and a changed byte is noticed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from pe_cli import files
from pe_cli.errors import RunError


def weight_sha256(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 over name, dtype, shape and bytes of the tensors in the order of their names, as hex digits."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def save(path: Path, tensors: Mapping[str, Tensor], meta: Mapping[str, Any], previous: Path | None = None) -> None:
    """Replace `path` atomically. Tensors may share memory and be on any device; `meta` is for JSON.

    The checkpoint of before stays as `previous`, if that is given: a disk may give back other bytes than it took.
    """
    # The format refuses tensors that share memory, so each is copied.
    copies = {
        name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()
    }
    # Python's NaN and Infinity are kept: this text is read by `load` alone, and must come back as it was.
    text = json.dumps(meta)
    header = {"meta": text, "sha256": _digest(copies, text)}
    files.write_bytes(path, safetensors.torch.save(copies, metadata=header), previous)


def load(path: Path, advice: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors (on the CPU) and meta as saved.

    RunError, ending with `advice`, if the file is missing, damaged or was not written by `save`.
    """
    if not path.is_file():
        raise RunError(f"there is no {path.absolute()}: {advice}")
    content = files.read_bytes(path)  # by Python: the library opens no file whose name is not UTF-8
    try:
        tensors = safetensors.torch.load(content)
        # what has just been parsed: eight bytes of length, and JSON
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")]).get("__metadata__", {})
        meta = json.loads(header.get("meta", "{}"))
    except (SafetensorError, ValueError, RuntimeError, KeyError) as error:
        raise RunError(f"{path.absolute()} is damaged or no checkpoint of pe ({error}): {advice}") from error
    if not {"meta", "sha256"} <= header.keys() or not isinstance(meta, dict):
        raise RunError(f"{path.absolute()} was not written by pe: {advice}")
    if header["sha256"] != _digest(tensors, header["meta"]):
        raise RunError(f"{path.absolute()} is damaged, its SHA-256 is not the recorded one: {advice}")
    return tensors, meta


def load_whole(
    path: Path, previous: Path, advice: str, warn: Callable[[str], None]
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """`load`; where `path` is missing or damaged, `previous` takes its place, and `warn` is told."""
    try:
        return load(path, advice)
    except RunError as error:
        if isinstance(error.__cause__, OSError):  # it may be whole, and be read the next time
            raise
        try:
            found = load(previous, advice)
        except RunError:
            raise error from None
        with files.failing("replace", path):
            os.replace(previous, path)
        warn(f"{str(error).removesuffix(f': {advice}')}: going on from the checkpoint before it")
        return found


def _digest(tensors: Mapping[str, Tensor], meta: str) -> str:
    return hashlib.sha256(f"{weight_sha256(tensors)} {meta}".encode()).hexdigest()
