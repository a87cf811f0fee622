# SPDX-License-Identifier: Apache-2.0
"""Print one table of speed and memory, measured in one run: `python benchmarks/table.py`.

Contenders of a task take turns, so that whatever else the machine does meets them alike; the
fastest of their turns counts. Ratios are what to read: they carry over to other machines.
"""

from __future__ import annotations

import time
import tracemalloc
from typing import TYPE_CHECKING

from contenders import EPS, HIDDEN, OURS, ROWS, arrays, tasks

from precision_lab import truth

if TYPE_CHECKING:
    from collections.abc import Callable

    from contenders import Contenders

TURNS, CALLS = 9, 3
PATIENCE = 3.0  # Seconds that a contender may take in all; the slowest get a single call.


def seconds(run: Callable[[], object]) -> float:
    """The time of one call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def race(contenders: Contenders) -> dict[str, float]:
    """The best time of each contender, in seconds.

    A turn is several calls on end: the first finds the caches and the free memory as another
    contender left them.
    """
    best = {name: seconds(run) for name, run in contenders.items()}
    spent = dict(best)
    for _ in range(TURNS):
        for name, run in contenders.items():
            if spent[name] + CALLS * best[name] < PATIENCE:
                took = [seconds(run) for _ in range(CALLS)]
                spent[name] += sum(took)
                best[name] = min(best[name], *took)
    return best


def peak_memory(norm: str) -> float:
    """Peak memory of truth rounded to bf16, in sizes of the float64 output."""
    x, weight = arrays()
    tracemalloc.start()
    truth(norm, x, weight, eps=EPS).round("bfloat16")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / (ROWS * HIDDEN * 8)


def main() -> None:
    """Print the table as Markdown."""
    print("| task | who | ms | time, ours = 1 |")
    print("| --- | --- | ---: | ---: |")
    for task, contenders in tasks().items():
        best = race(contenders)
        for name, took in best.items():
            print(f"| {task} | {name} | {took * 1e3:.3g} | {took / best[OURS]:.3g} |", flush=True)
            task = ""  # noqa: PLW2901
    for norm in ("rms", "layer"):
        print(f"\nPeak memory of {norm} truth, bf16 [64, 4096]: ", end="")
        print(f"{peak_memory(norm):.2f} times the float64 output")


if __name__ == "__main__":
    main()
