"""Where the program begins: Ctrl-C has an answer before anything else is imported."""

from __future__ import annotations

import atexit
import gc
import sys


def main() -> None:
    atexit.register(gc.freeze)  # a last search for cycles, through all of torch, would take a third of a second
    try:
        from pe_cli.cli import main as begin
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted\n")
        sys.exit(130)
    begin()


if __name__ == "__main__":
    main()
