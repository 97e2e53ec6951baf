"""A process that dies in the middle of a message to its parent."""

from __future__ import annotations

import os
import signal
import struct
from multiprocessing.connection import Connection

from pe_cli import execution
from pe_cli.comparison import Planned
from pe_cli.execution import Settings

as_ever = execution.work


def rope_dies_while_it_tells(planned: Planned, settings: Settings, pipe: Connection) -> None:
    """The work of one run; that of rope says that a thousand bytes will follow, and is killed after four."""
    if planned.name == "rope":
        os.write(pipe.fileno(), struct.pack("!i", 1000) + b"half")
        os.kill(os.getpid(), signal.SIGKILL)
    as_ever(planned, settings, pipe)
