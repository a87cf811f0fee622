# SPDX-License-Identifier: Apache-2.0
"""What every test file shares: optional packages, and a Hypothesis that repeats itself."""

from __future__ import annotations

import importlib
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from types import ModuleType

    from _pytest.mark import ParameterSet

# Started in the background, a process ignores Ctrl-C, and so would every process that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Deterministic in CI, so that a red run is red for everyone; a local run explores, with fewer
# examples where a test does not say how many.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "local", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Take every core, eight at most; for tests of one file none but this process."""
    files = {Path(argument.partition("::")[0]) for argument in config.args}
    if len(files) == 1 and files.pop().is_file():
        return 0
    return min(
        8, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )


def wide(*values: object) -> ParameterSet:
    """More values for a check that the default run makes of some: run with ``-m wide``."""
    return pytest.param(*values, marks=[pytest.mark.slow, pytest.mark.wide])


def slow(*values: object) -> ParameterSet:
    """Values that take minutes together: run with ``-m slow``."""
    return pytest.param(*values, marks=pytest.mark.slow)


def optional(name: str) -> ModuleType:
    """Import an optional package, or skip; fail instead if the run was told to have it.

    The environment variable ``PRECISION_LAB_REQUIRE`` names, with commas, the modules whose
    absence is a failure: a run that was meant to test against torch must not pass without it.
    """
    required = os.environ.get("PRECISION_LAB_REQUIRE", "").split(",")
    try:
        return importlib.import_module(name)
    except ImportError as error:
        top = name.partition(".")[0]
        if top in {entry.strip().partition(".")[0] for entry in required}:
            pytest.fail(f"{name} is required by PRECISION_LAB_REQUIRE but missing: {error}")
        pytest.skip(f"{name} is not installed", allow_module_level=True)
