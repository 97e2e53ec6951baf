"""Where a run computes, on machines of every kind."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from pe_cli.devices import choose_device, choose_precision, choose_threads, usable_cores
from pe_cli.errors import ConfigError

Machine = Callable[..., None]
"""`machine(cuda=2, mps=False)`: the devices that PyTorch says are there."""


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    def has(cuda: int = 0, mps: bool = False) -> None:
        monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)

    return has


# --- devices


@pytest.mark.parametrize(
    ("cuda", "mps", "expected"), [(0, False, "cpu"), (2, False, "cuda"), (0, True, "mps"), (1, True, "cuda")]
)
def test_auto_takes_a_gpu_where_there_is_one(machine: Machine, cuda: int, mps: bool, expected: str) -> None:
    machine(cuda, mps)
    assert choose_device("auto") == torch.device(expected)
    assert choose_device("cpu") == torch.device("cpu")


def test_names_in_any_letter_case_and_numbers_of_what_is_there(machine: Machine) -> None:
    machine(cuda=2)
    assert choose_device("CPU") == torch.device("cpu")
    assert choose_device("cpu:0") == torch.device("cpu:0")
    assert choose_device("Cuda") == torch.device("cuda")
    assert choose_device("cuda:1") == torch.device("cuda:1")
    with pytest.raises(ConfigError, match=r"this machine has no 'cuda:2'; usable here: auto, cpu, cuda$"):
        choose_device("cuda:2")


@pytest.mark.parametrize("name", ["cuda", "cuda:0", "cuda:7", "mps", "cpu:1"])
def test_what_the_machine_lacks_is_said_with_what_it_has(machine: Machine, name: str) -> None:
    machine()
    with pytest.raises(ConfigError, match=f"--device: this machine has no '{name}'; usable here: auto, cpu$"):
        choose_device(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("potato", "--device: 'potato' is not known; known: auto, cpu, cuda, mps"),
        ("gpu", "--device: 'gpu' is not known; known: auto, cpu, cuda, mps"),
        ("", "--device: '' is not known; known: auto, cpu, cuda, mps"),
        ("auto:0", "--device: 'auto:0' is not known; known: auto, cpu, cuda, mps"),
        ("cpu:x", "--device: 'cpu:x' is not a device; write 'cpu' or 'cpu:0'"),
        ("cuda:-1", "--device: 'cuda:-1' is not a device; write 'cuda' or 'cuda:0'"),
        ("cuda:²", "--device: 'cuda:²' is not a device; write 'cuda' or 'cuda:0'"),
    ],
)
def test_what_is_no_device_is_refused(machine: Machine, name: str, message: str) -> None:
    machine(cuda=8)
    with pytest.raises(ConfigError) as refused:
        choose_device(name)
    assert str(refused.value) == message


# --- precision


@pytest.mark.parametrize(("units", "expected"), [(False, torch.float32), (True, torch.bfloat16)])
def test_auto_is_bfloat16_only_where_the_processor_has_it(
    monkeypatch: pytest.MonkeyPatch, units: bool, expected: torch.dtype
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: units)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation or units)
    for kind in ("cpu", "cuda"):
        assert choose_precision("auto", torch.device(kind)) == expected
        assert choose_precision("float32", torch.device(kind)) == torch.float32
        assert choose_precision("bfloat16", torch.device(kind)) == torch.bfloat16


def test_mps_trains_in_float32() -> None:
    assert choose_precision("auto", torch.device("mps")) == torch.float32
    with pytest.raises(ConfigError, match=r"training\.precision: bfloat16 is not offered on mps; use float32 or auto"):
        choose_precision("bfloat16", torch.device("mps"))


# --- threads


@pytest.mark.parametrize(
    ("asked", "variable", "runs", "expected"),
    [
        (3, "5", 1, 3),
        (None, "5", 1, 5),
        (None, "5", 2, 5),
        (None, "5,2", 1, 5),
        (None, "", 1, 6),
        (None, "", 2, 1),
        (None, "many", 1, 6),
        (None, "²", 1, 6),
        (None, "0", 1, 1),
    ],
)
def test_threads_are_as_asked_else_as_the_environment_says_else_all_cores(
    monkeypatch: pytest.MonkeyPatch, asked: int | None, variable: str, runs: int, expected: int
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", variable)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(6)), raising=False)
    assert choose_threads(asked, runs) == expected


def test_only_the_cores_that_the_process_may_use_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {3, 17}, raising=False)
    assert usable_cores() == 2
    monkeypatch.delattr("os.sched_getaffinity")  # as on macOS
    assert usable_cores() == 64


# --- memory


def pages_asked_for(*arguments: str) -> int:
    script = Path(__file__).parent / "support" / "pages.py"
    done = subprocess.run([sys.executable, str(script), *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator")
def test_memory_that_was_freed_is_used_again() -> None:
    assert pages_asked_for() > 70_000  # of 78,125: the test can fail
    assert pages_asked_for("kept") < 1_000
