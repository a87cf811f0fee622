# SPDX-License-Identifier: Apache-2.0
"""What is recorded of a torch module, and how it is compared."""

from __future__ import annotations

import numpy as np

from precision_lab import capture


def bits(array):
    """The bytes of an array."""
    return np.ascontiguousarray(array).tobytes()


def run(module, *calls, rows=256, only=""):
    """What is recorded while a module is called."""
    with capture(module, rows=rows, only=only) as recorded:
        for call in calls:
            module(*call) if isinstance(call, tuple) else module(call)
    return recorded
