# SPDX-License-Identifier: Apache-2.0
"""Benchmarks run one after another, in one process."""

from __future__ import annotations


def pytest_xdist_auto_num_workers() -> int:
    """Start no process beside this one: what shares a core is not measured."""
    return 0
