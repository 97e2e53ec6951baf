"""Bad input without end: mutants of configs and of the files of runs, given to the commands that read them.

    python tests/experiments/fuzz.py configs 10000      `pe config` and `pe train --dry-run` of mutants of configs/
    python tests/experiments/fuzz.py checkpoints 1000   damaged runs, evaluated, sampled, drawn, measured, gone on with

All of it in one process. `--seed N` makes other mutants, `--only NUMBER` tries one of them again. A fault is an
exception, an exit code other than 0, 1 and 2, a message of more than 15 lines, a file written outside of the folder, a
program or a connection that is opened, a pickle, half a minute of the processor, more than 2 GiB, or an experiment that
`pe config` does not write down as it is. Each is printed; the exit code is then 1. At the end comes a table, as
Markdown.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import fuzzing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("configs", "checkpoints"))
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, metavar="NUMBER")
    asked = parser.parse_args()
    sys.exit(fuzzing.main(asked.kind, asked.count, asked.seed, asked.only))


if __name__ == "__main__":
    main()
