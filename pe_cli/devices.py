"""Where a run computes: the device, the precision of training, the number of threads, and memory that is kept."""

from __future__ import annotations

import ctypes
import os
import platform

import torch

from pe_cli.errors import ConfigError, canonical

MOST_THREADS = 512
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Parameters of mallopt in malloc.h of glibc."""
KEPT, KEPT_BLOCK = 2**31 - 1, 32 * 2**20
"""Bytes that the allocator keeps at most, all together and in one block: the largest numbers that mallopt takes."""


def choose_device(name: str) -> torch.device:
    """`auto` takes a GPU where there is one. ConfigError for a device that this machine does not have."""
    kind, _, index = canonical(name).partition(":")
    present = {
        "cpu": 1,
        "cuda": torch.cuda.device_count(),
        "mps": int(torch.backends.mps.is_available()),
    }
    if kind == "auto" and not index:
        return torch.device(next(kind for kind in ("cuda", "mps", "cpu") if present[kind]))
    if kind not in present:
        # all of them: the name nearest to `gpu` is `cpu`
        raise ConfigError(f"--device: '{name}' is not known; known: auto, {', '.join(present)}")
    if index and not (index.isascii() and index.isdecimal()):
        raise ConfigError(f"--device: '{name}' is not a device; write '{kind}' or '{kind}:0'")
    if int(index or 0) >= present[kind]:
        usable = ", ".join(kind for kind, count in present.items() if count)
        raise ConfigError(f"--device: this machine has no '{name}'; usable here: auto, {usable}")
    return torch.device(f"{kind}:{index}" if index else kind)


def choose_precision(name: str, device: torch.device) -> torch.dtype:
    """`auto` trains in bfloat16 where the processor multiplies it in hardware, else in float32."""
    if name == "auto":
        return torch.bfloat16 if has_bfloat16_units(device) else torch.float32
    if name == "bfloat16" and device.type == "mps":
        raise ConfigError("training.precision: bfloat16 is not offered on mps; use float32 or auto")
    known = {"bfloat16": torch.bfloat16, "float32": torch.float32}
    if name not in known:  # in a run.json that was changed
        raise ConfigError(f"training.precision: '{name}' is not known; known: auto, {', '.join(known)}")
    return known[name]


def has_bfloat16_units(device: torch.device) -> bool:
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type == "cpu":
        return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return False


def choose_threads(threads: int | None, runs_at_once: int = 1) -> int:
    """The threads of one run: as asked, else OMP_NUM_THREADS, else all usable cores for a single run."""
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]  # the others are of nested regions
    if threads is not None:
        asked, where = threads, "--threads"
    elif first.isdecimal():
        asked, where = max(1, int(first)), "OMP_NUM_THREADS"
    else:
        return usable_cores() if runs_at_once == 1 else 1
    if asked > MOST_THREADS:
        raise ConfigError(f"{where}: {asked} threads would freeze the machine; at most {MOST_THREADS}")
    return asked


def usable_cores() -> int:
    """The cores that this process may use, which on a shared machine are not all that there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compute_with(threads: int) -> None:
    """From here on this process computes with so many threads, and keeps memory that was freed for what comes next.

    The allocator of glibc would give it back after a step of training, and in the next one the system would hand it out
    again page by page, each filled with zeros.
    """
    torch.set_num_threads(threads)
    if platform.libc_ver()[0] == "glibc":
        allocator = ctypes.CDLL(None)
        allocator.mallopt(M_TRIM_THRESHOLD, KEPT)
        allocator.mallopt(M_MMAP_THRESHOLD, KEPT_BLOCK)
