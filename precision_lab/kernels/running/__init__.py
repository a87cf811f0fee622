# SPDX-License-Identifier: Apache-2.0
"""One way to run a kernel: here or in a process of its own, with what it did beside computing.

It must not know whether its outputs are right.
"""

from __future__ import annotations

from precision_lab.kernels.runner import Outcome, run
from precision_lab.kernels.running.claim import Claim
from precision_lab.kernels.running.isolated_kernel import TIME_LIMIT
from precision_lab.kernels.running.remote_finder import RemoteFinder
from precision_lab.kernels.running.runnable import Runnable, open_kernel

__all__ = [
    "TIME_LIMIT",
    "Claim",
    "Outcome",
    "RemoteFinder",
    "Runnable",
    "open_kernel",
    "run",
]
