# SPDX-License-Identifier: Apache-2.0
"""Every contender of every task under pytest-benchmark: `pytest benchmarks`."""

from __future__ import annotations

import pytest
from contenders import tasks

RACES = [
    pytest.param(task, run, id=f"{task}: {name}")
    for task, contenders in tasks().items()
    for name, run in contenders.items()
]


@pytest.mark.parametrize(("task", "run"), RACES)
def test_speed(benchmark, task, run):
    """The time of one call; contenders of a task form a group."""
    benchmark.group = task
    benchmark.pedantic(run, rounds=3, warmup_rounds=1)
