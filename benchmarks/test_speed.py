# SPDX-License-Identifier: Apache-2.0
"""Every contender of every task under pytest-benchmark: `pytest benchmarks`."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from contenders import OPTIONAL, missing, tasks

if TYPE_CHECKING:
    from collections.abc import Callable

RACES = [
    pytest.param(task, run, id=f"{task}: {name}")
    for task, contenders in tasks().items()
    for name, run in contenders.items()
]


@pytest.mark.parametrize(("task", "run"), RACES)
def test_speed(benchmark: Any, task: str, run: Callable[[], object]) -> None:
    """The time of one call; contenders of a task form a group."""
    benchmark.group = task
    benchmark.pedantic(run, rounds=3, warmup_rounds=1)


def test_who_is_not_there_is_named() -> None:
    """Every contender with a package of its own races or is told to be missing."""
    racing = {name for contenders in tasks().values() for name in contenders}
    assert set(OPTIONAL) - racing == set(missing())


@pytest.mark.parametrize("module", ["numpy", "precision_lab"])
def test_start(benchmark: Any, module: str) -> None:
    """A process that imports the package beside one that imports NumPy: under 150 ms apart."""
    benchmark.group = "start of a process"
    command = [sys.executable, "-c", f"import {module}"]
    benchmark.pedantic(subprocess.run, (command,), {"check": True}, rounds=5, warmup_rounds=1)
