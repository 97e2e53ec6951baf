"""Ctrl-C and SIGTERM: the first asks the loop to stop after its step, the second ends the process."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from pe_cli import files

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def _nothing() -> None:
    pass


@contextmanager
def interruptible(before_exit: Callable[[], None] = _nothing) -> Iterator[Callable[[], int | None]]:
    """Yields a function that tells the number of the signal received so far, or None.

    A second signal removes the files in the making, calls `before_exit` (to restore the terminal) and ends
    the process at once with 130 or 143: no clean-up code runs, so none can wait or write. The handlers that
    were there before come back at the end. Outside the main thread Python allows no handlers, and nothing is
    ever received.
    """
    received: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if not received:
            received.append(number)
            return
        try:
            files.abandon()
            before_exit()
        finally:
            os._exit(128 + number)

    def first() -> int | None:
        return received[0] if received else None

    if threading.current_thread() is not threading.main_thread():
        yield first
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number in _SIGNALS:
        signal.signal(number, handle)
    try:
        yield first
    finally:
        for number, handler in before.items():
            # None: a handler installed by C code, which Python can neither call nor put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


@contextmanager
def deferred() -> Iterator[None]:
    """What is started inside hears of neither signal until it calls `undeferred`."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def undeferred(number: int) -> None:
    """A signal comes through again, one that came before too."""
    if hasattr(signal, "pthread_sigmask"):  # else nothing was deferred
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
