# SPDX-License-Identifier: Apache-2.0
"""The version of this package, and of all that can change a row's numbers."""

from __future__ import annotations

import platform

import ml_dtypes
import numpy as np

# Here and not in the package's root, which imports every room: the lowest may import it.
__version__ = "0.1.0"


def versions() -> dict[str, str]:
    """Versions of the packages whose arithmetic a row rests on, and the kind of machine."""
    import mpmath

    return {
        "precision_lab": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "ml_dtypes": ml_dtypes.__version__,
        "mpmath": mpmath.__version__,
        "machine": f"{platform.system()} {platform.machine()}",
    }
