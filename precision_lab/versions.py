# SPDX-License-Identifier: Apache-2.0
"""The version of this package, and of all that can change a row's numbers."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from pathlib import Path

# Here and not in the package's root, which imports every room: the lowest may import it.
__version__ = "0.1.0"

PACKAGE = Path(__file__).parent
# Folders and files whose code asks for rows, moves, shows or judges them, and computes none.
SHOWS = {"analyses", "charts", "cli", "config", "conformance", "export.py", "frames.py",
         "merging.py", "report"}  # fmt: skip


def versions() -> dict[str, str]:
    """Versions of the packages whose arithmetic a row rests on, and the kind of machine."""
    import ml_dtypes
    import mpmath
    import numpy as np

    return {
        "precision_lab": __version__,
        "code": code(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "ml_dtypes": ml_dtypes.__version__,
        "mpmath": mpmath.__version__,
        "machine": f"{platform.system()} {platform.machine()}",
    }


@cache
def code() -> str:
    """A digest of the files that rows are computed by: in an edited checkout, another one."""
    total = hashlib.sha256()
    for file in sorted(PACKAGE.rglob("*")):
        parts = file.relative_to(PACKAGE).parts
        if file.suffix in {".py", ".safetensors"} and parts[0] not in SHOWS:
            total.update("/".join(parts).encode() + hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()[:12]
