"""Run by itself: how many pages the system hands out for the same memory, 320 MB in blocks, taken a second time.

`kept` as an argument: in a process that is set up for computing.
"""

from __future__ import annotations

import resource
import sys

import torch

from pe_cli.devices import compute_with


def main() -> None:
    if "kept" in sys.argv:
        compute_with(1)
    counts = [0]
    for _ in range(3):
        blocks = [torch.zeros(2 * 10**6) for _ in range(40)]
        del blocks
        counts.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
    sys.stdout.write(str(counts[-1] - counts[-2]))


if __name__ == "__main__":
    main()
