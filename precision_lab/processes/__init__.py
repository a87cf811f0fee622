# SPDX-License-Identifier: Apache-2.0
"""How does code that is not ours run? Found, loaded, started, stopped, its side effects undone.

It must not know what that code computes.
"""

from __future__ import annotations

from precision_lab.processes.child import high_descriptor
from precision_lab.processes.loading import (
    RefusedError,
    describe_error,
    guard_call,
    import_folder,
    load,
    load_values,
)
from precision_lab.processes.neighbours import digest
from precision_lab.processes.process import ErrorOutput, Process, describe_exit
from precision_lab.processes.processor import (
    NEAREST,
    Change,
    check_arithmetic,
    current_arithmetic,
    refuse_changes,
    restore_arithmetic,
    unchanged_arithmetic,
)
from precision_lab.processes.wire import Arrays, Frame

__all__ = [
    "NEAREST",
    "Arrays",
    "Change",
    "ErrorOutput",
    "Frame",
    "Process",
    "RefusedError",
    "check_arithmetic",
    "current_arithmetic",
    "describe_error",
    "describe_exit",
    "digest",
    "guard_call",
    "high_descriptor",
    "import_folder",
    "load",
    "load_values",
    "refuse_changes",
    "restore_arithmetic",
    "unchanged_arithmetic",
]
