# SPDX-License-Identifier: Apache-2.0
"""How is a kernel run? Here or in a process of its own, with a note of what else it did.

It must not know whether its outputs are right.
"""

from __future__ import annotations

from precision_lab.kernels.running.apart import TIME_LIMIT
from precision_lab.kernels.running.claim import Settings, settle
from precision_lab.kernels.running.here import Outcome, run
from precision_lab.kernels.running.importing import Probe
from precision_lab.kernels.running.opening import Opened, claims, opened

__all__ = [
    "TIME_LIMIT",
    "Opened",
    "Outcome",
    "Probe",
    "Settings",
    "claims",
    "opened",
    "run",
    "settle",
]
