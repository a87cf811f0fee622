# SPDX-License-Identifier: Apache-2.0
"""What do many cases measure? `sweep` makes a grid into rows, in one process or several, resumably.

It must not know what is concluded or drawn from the rows.
"""

from __future__ import annotations

from precision_lab.sweeps.case import PLACES, Case
from precision_lab.sweeps.execution import MOST_JOBS, read_results, run, sweep
from precision_lab.sweeps.grid import Sweep
from precision_lab.sweeps.measurement import ERRORS
from precision_lab.sweeps.progress_display import Progress, show_progress
from precision_lab.sweeps.run_summary import CaseError, FailedCases, RunSummary
from precision_lab.sweeps.sources import captured, family

__all__ = [
    "ERRORS",
    "MOST_JOBS",
    "PLACES",
    "Case",
    "CaseError",
    "FailedCases",
    "Progress",
    "RunSummary",
    "Sweep",
    "captured",
    "family",
    "read_results",
    "run",
    "show_progress",
    "sweep",
]
