# SPDX-License-Identifier: Apache-2.0
"""How does code that is not ours run? Found, loaded, started, stopped, its side effects undone.

It must not know what that code computes.
"""

from __future__ import annotations

from precision_lab.processes.loading import RefusedError, findable, guarded, load, load_values, said
from precision_lab.processes.neighbours import digest
from precision_lab.processes.processor import flushes_subnormals, put_back, rounding_kept

__all__ = [
    "RefusedError",
    "digest",
    "findable",
    "flushes_subnormals",
    "guarded",
    "load",
    "load_values",
    "put_back",
    "rounding_kept",
    "said",
]
