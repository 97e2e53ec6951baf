"""The most memory that a piece of work takes, measured in a process of its own, so that nothing before it counts."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection

import torch

from pe_cli.devices import compute_with
from pe_cli.evaluation import is_out_of_memory
from pe_cli.execution import context, end_with_parent, ending
from pe_cli.signals import undeferred

Work = Callable[[], Callable[[], object]]
"""Prepares the work and returns it. It is sent to another process, so it is a function of a module, or a partial."""


@dataclass(frozen=True)
class Peak:
    """The bytes that a piece of work took at most; None where this machine does not tell, or where it failed."""

    bytes: int | None = None
    error: Exception | None = None


def peak(work: Work, device: torch.device, threads: int) -> Peak:
    """What the work takes, besides what was there once it had been prepared.

    On a CPU: how far the work raises the most resident memory that its process has had, which tells nothing of work
    that needs less than its preparation. On CUDA: the same of what torch has allocated.
    """
    processes = context()
    receiver, sender = processes.Pipe(duplex=False)
    process = processes.Process(  # type: ignore[attr-defined]
        target=_tell, args=(work, device, threads, sender), daemon=True
    )
    process.start()
    sender.close()
    try:
        found: Peak = receiver.recv()
        return found
    except EOFError:
        process.join()
        return Peak(error=MemoryError(ending(process.exitcode)))
    finally:
        process.kill()
        process.join()


def _tell(work: Work, device: torch.device, threads: int, pipe: Connection) -> None:
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it too, and ends this process
    undeferred(signal.SIGTERM)
    compute_with(threads)
    try:
        prepared = work()
        pipe.send(Peak(raised(prepared, device)))
    except Exception as error:
        pipe.send(Peak(error=MemoryError(str(error)) if is_out_of_memory(error) else error))


def raised(work: Callable[[], object], device: torch.device) -> int | None:
    """Does the work: by how many bytes it raises the most that this process has held; None where nobody tells."""
    before = _most(device)
    work()
    after = _most(device)
    return None if before is None or after is None else after - before


def _most(device: torch.device) -> int | None:
    """The most bytes held so far."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if device.type != "cpu" or sys.platform == "win32":
        return None
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
