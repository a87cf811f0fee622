# SPDX-License-Identifier: Apache-2.0
"""Print one table of speed and memory, measured in one run: `python benchmarks/table.py`.

Contenders take turns, and what is timed is the processor's time of this process, so that whatever
else the machine does meets them alike. Ratios are what to read, for they carry over to other
machines: each is the median over the turns of a contender's time by this package's in the same
turn.
"""

from __future__ import annotations

import statistics
import time
import tracemalloc
from typing import TYPE_CHECKING

from contenders import EPS, HIDDEN, OURS, ROWS, arrays, missing, tasks

from precision_lab import truth

if TYPE_CHECKING:
    from collections.abc import Callable

    from contenders import Contenders

TURNS, CALLS = 11, 3
PATIENCE = 4.0  # Seconds that a contender may take in all; the slowest get a turn of one call.


def seconds(run: Callable[[], object], calls: int) -> float:
    """The processor's time of one call: the least of several on end.

    The first finds the caches and the free memory as another contender left them.
    """
    took = []
    for _ in range(calls):
        start = time.process_time()
        run()
        took.append(time.process_time() - start)
    return min(took)


def race(contenders: Contenders) -> dict[str, tuple[float, float]]:
    """The median time of each contender in seconds, and the median of its ratios to ours."""
    # The first calls compile and fill tables; of who is slow, they are all there is.
    first = {name: seconds(run, 1) for name, run in contenders.items()}
    turns: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for _ in range(TURNS):
        ours = seconds(contenders[OURS], CALLS)
        turns[OURS].append((ours, 1.0))
        for name, run in contenders.items():
            if name != OURS and first[name] * TURNS * CALLS < PATIENCE:
                took = seconds(run, CALLS)
                turns[name].append((took, took / ours))
    usual = statistics.median(took for took, _ in turns[OURS])
    for name, took in first.items():
        turns[name] = turns[name] or [(took, took / usual)]
    return {
        name: (statistics.median(t for t, _ in each), statistics.median(r for _, r in each))
        for name, each in turns.items()
    }


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
    for contender, command in missing().items():
        print(f"Missing: {contender}. It would join after {command}\n")
    print("| task | who | ms | time, ours = 1 |")
    print("| --- | --- | ---: | ---: |")
    for task, contenders in tasks().items():
        for name, (took, ratio) in race(contenders).items():
            print(f"| {task} | {name} | {took * 1e3:.3g} | {ratio:.3g} |", flush=True)
            task = ""  # noqa: PLW2901
    for norm in ("rms", "layer"):
        print(f"\nPeak memory of {norm} truth, bf16 [64, 4096]: ", end="")
        print(f"{peak_memory(norm):.2f} times the float64 output")


if __name__ == "__main__":
    main()
