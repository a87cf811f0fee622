# SPDX-License-Identifier: Apache-2.0
"""How this thread's arithmetic is set, which code that is not ours may change for all after it.

A rounding mode, whether subnormal results and subnormal operands are taken for zero, and NumPy's
error state. What is set is found by computing, so on any processor. It is saved and put back by C's
``fenv.h``, whose environment holds the subnormal flags too on x86-64 (MXCSR) and arm64 (FPCR).
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from precision_lab.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NEAREST = "to nearest"

# Each sum is the first addend, unless arithmetic rounds up, down, or toward zero.
ADDENDS = np.array([1.0, -1.0, 1.0]), np.array([2.0**-54, -(2.0**-54), -(2.0**-55)])
# Made of their bits, whatever this file is imported under: the smallest normal number and the
# smallest of all.
NORMAL, SUBNORMAL = (np.array([bits]).view(np.float64) for bits in (1 << 52, 1))
HALF, HUGE = np.array([0.5]), np.array([2.0**500])


class ArithmeticState(NamedTuple):
    """How this thread computes: rounding ``to nearest``, ``up``, ``down`` or ``toward zero``.

    And whether a result (FTZ), an operand (DAZ) that is subnormal is taken for zero.
    """

    rounding: str
    flushes_results: bool
    flushes_operands: bool

    @property
    def flushes(self) -> bool:
        """Whether subnormal numbers are lost in one way or the other."""
        return self.flushes_results or self.flushes_operands


class Change(NamedTuple):
    """What code under test changed: ``rounding``, ``flush`` or ``error-state``, and a sentence."""

    kind: str
    sentence: str


def current_arithmetic() -> ArithmeticState:
    """How this thread computes now."""
    with np.errstate(all="ignore"):
        up, down, zero = (np.add(*ADDENDS) != ADDENDS[0]).tolist()
        # By their bits: a comparison takes subnormal operands for zero as well.
        results = np.multiply(NORMAL, HALF).view(np.int64)[0] == 0
        operands = np.multiply(SUBNORMAL, HUGE).view(np.int64)[0] == 0
    rounding = "up" if up else "down" if down else "toward zero" if zero else NEAREST
    return ArithmeticState(rounding, bool(results), bool(operands))


def check_arithmetic() -> None:
    """Refuse to prove anything where this thread's arithmetic is not IEEE's default.

    Raises
    ------
    InputError
        It rounds up, down or toward zero, or flushes subnormal numbers.
    """
    now = current_arithmetic()
    if now.flushes:
        message = "this process flushes subnormal numbers to zero, so nothing here can be proved"
        raise InputError(message)
    if now.rounding != NEAREST:
        raise InputError(
            f"this process rounds {now.rounding} instead of {NEAREST}, so nothing here can be"
            " proved"
        )


@contextmanager
def restore_arithmetic() -> Iterator[list[Change]]:
    """Run code under test, and put back what it changes of how this thread computes.

    Yields
    ------
    list of Change
        Empty until the block ends.
    """
    changes: list[Change] = []
    before, errors, saved = current_arithmetic(), np.geterr(), _environment()
    try:
        yield changes
    finally:
        if np.geterr() != errors:
            np.seterr(**errors)
            changes.append(Change("error-state", "it changed NumPy's error state"))
        now = current_arithmetic()
        if now.rounding != before.rounding:
            changes.append(Change("rounding", f"it left the processor rounding {now.rounding}"))
        if now[1:] != before[1:]:
            what = "flushing float64 subnormals to zero" if now.flushes else "keeping subnormals"
            changes.append(Change("flush", f"it left the processor {what}"))
        if now != before:
            _restore(before, saved)


@contextmanager
def unchanged_arithmetic(doing: str) -> Iterator[None]:
    """Run code under test that may not change how this thread computes.

    Raises
    ------
    InputError
        It raised nothing, and left it computing in another way, which is put back.
    """
    with restore_arithmetic() as changes:
        yield
    refuse_changes(doing, changes)


def refuse_changes(doing: str, changes: Sequence[Change]) -> None:
    """Refuse a change of the processor's state; NumPy's is put back, and that is all.

    Raises
    ------
    InputError
        There is one.
    """
    kinds = [change.kind for change in changes]
    if "rounding" in kinds:
        raise InputError(
            f"{doing} left the processor rounding otherwise than to the nearest value, so that "
            "nothing computed beside it would be right: let it put that back"
        )
    if "flush" in kinds:
        raise InputError(
            f"{doing} left the processor flushing subnormal numbers to zero, so that no truth "
            "can be computed beside it: let it put that back"
        )


@cache
def _fenv() -> Any:
    """A C library that has ``fenv.h``, and its two functions; None where there is none."""
    for name in (None, "libm.so.6", "ucrtbase"):
        with suppress(OSError, AttributeError, TypeError):
            library = ctypes.CDLL(name)
            # A function that it lacks is an AttributeError.
            return library, library.fegetenv, library.fesetenv
    return None


def _environment() -> Any:
    """The floating-point environment, as C keeps it; None where C does not say."""
    if (library := _fenv()) is None:
        return None
    # No processor's takes more than 32 bytes.
    saved = (ctypes.c_uint64 * 16)()
    library[1](saved)
    return saved


def _restore(before: ArithmeticState, saved: Any) -> None:
    """Compute as before.

    Raises
    ------
    InputError
        Nothing here can set that.
    """
    if saved is not None:
        _fenv()[2](saved)
    elif torch := sys.modules.get("torch"):
        torch.set_flush_denormal(before.flushes)
    if current_arithmetic() != before:
        raise InputError(
            "how the processor computes was changed, and cannot be put back: start a new process"
        )
