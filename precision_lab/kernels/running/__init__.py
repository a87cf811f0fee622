# SPDX-License-Identifier: Apache-2.0
"""How is a kernel run? Here or in a process of its own, with a note of what else it did.

It must not know whether its outputs are right.
"""

from __future__ import annotations

from precision_lab.kernels.runner import Outcome, layout_finding, run
from precision_lab.kernels.running.claim import DEFAULT_EPS, Claim
from precision_lab.kernels.running.isolated_kernel import TIME_LIMIT
from precision_lab.kernels.running.remote_finder import RemoteFinder
from precision_lab.kernels.running.runnable import Runnable, open_kernel

__all__ = [
    "DEFAULT_EPS",
    "TIME_LIMIT",
    "Claim",
    "Outcome",
    "RemoteFinder",
    "Runnable",
    "layout_finding",
    "open_kernel",
    "run",
]
