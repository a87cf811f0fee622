# SPDX-License-Identifier: Apache-2.0
"""How the processor rounds: code under test may change it for all that its thread computes."""

from __future__ import annotations

import ctypes
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

# C's FE_TONEAREST, which is 0 on every processor that NumPy runs on, and FE_DFL_ENV as the C
# libraries of Linux have it.
NEAREST = 0
DEFAULT = ctypes.c_void_p(-1)


def rounds_to_nearest() -> bool:
    """Whether this thread's float64 arithmetic rounds to the nearest value."""
    one = np.full(4, 1.0)
    # Upwards the first is seen, downwards and toward zero the second.
    with np.errstate(all="ignore"):
        return bool(np.all(one + 2.0**-54 == one) and np.all(one - 2.0**-55 == one))


@contextmanager
def rounding_kept(doing: str) -> Iterator[None]:
    """Run code under test, and put back how the processor rounds.

    Raises
    ------
    InputError
        It left it rounding in another way, whatever it gave.
    """
    try:
        yield
    finally:
        changed = not rounds_to_nearest()
        if changed:
            put_back()
    if changed:
        raise InputError(
            f"{doing} left the processor rounding otherwise than to the nearest value, so that "
            "nothing computed beside it would be right: let it put that back"
        )


def put_back() -> None:
    """Make this thread round to nearest again, and on Linux keep subnormal numbers too."""
    for library in (None, "libm.so.6"):
        with suppress(OSError, AttributeError, TypeError):
            found = ctypes.CDLL(library)
            if sys.platform == "linux":
                found.fesetenv(DEFAULT)
            found.fesetround(NEAREST)
            return


def flushes_subnormals() -> bool:
    """Whether this thread's float64 arithmetic takes or gives zero for subnormal numbers."""
    tiny = np.full(16, 2.0**-1022)
    with np.errstate(all="ignore"):
        halves = tiny * 0.5
        return bool(np.any(halves + halves != tiny) or np.any(halves * 2.0 != tiny))
