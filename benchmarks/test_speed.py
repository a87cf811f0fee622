# SPDX-License-Identifier: Apache-2.0
"""Every contender of every task under pytest-benchmark: `pytest benchmarks`."""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from contenders import OPTIONAL, missing, tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

RACES = [
    pytest.param(task, run, id=f"{task}: {name}")
    for task, contenders in tasks().items()
    for name, run in contenders.items()
]

STARTS = {
    "Python": ("-c", "pass"),
    "NumPy and ml_dtypes": ("-c", "import numpy, ml_dtypes"),
    "precision_lab": ("-c", "import precision_lab"),
    "emulate and truth": ("-c", "from precision_lab import emulate, truth"),
    **{
        f"precision-lab {words}": ("-m", "precision_lab", *shlex.split(words))
        for words in (
            "--help",
            "formats",
            "explain bf16 1.1",
            "truth rms 3 4",
            "plans",
            "steps late --values '1 2'",
            "inputs",
            "eps --list",
            "validate --list-probes",
        )
    },
}


@pytest.mark.parametrize(("task", "run"), RACES)
def test_speed(benchmark: Any, task: str, run: Callable[[], object]) -> None:
    """The time of one call; contenders of a task form a group."""
    benchmark.group = task
    benchmark.pedantic(run, rounds=3, warmup_rounds=1)


def test_who_is_not_there_is_named() -> None:
    """Every contender with a package of its own races or is told to be missing."""
    racing = {name for contenders in tasks().values() for name in contenders}
    assert set(OPTIONAL) - racing == set(missing())


@pytest.mark.parametrize("arguments", STARTS.values(), ids=STARTS)
def test_start(benchmark: Any, arguments: Sequence[str]) -> None:
    """A process from start to end: imports under 150 ms past NumPy's, answers under 250 ms."""
    benchmark.group = "start of a process"
    command = [sys.executable, *arguments]
    options = {"check": True, "capture_output": True}
    benchmark.pedantic(subprocess.run, (command,), options, rounds=5, warmup_rounds=1)
