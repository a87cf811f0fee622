# SPDX-License-Identifier: Apache-2.0
"""The error for bad input, with its sentences, and the error of work that a limit stopped."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST_NAME = 80


class InputError(ValueError):
    """Bad input: one sentence that names the value and the nearest right one."""


class StoppedError(RuntimeError):
    """A limit stopped the work; what was finished is saved, and a rerun goes on from there."""


def nearest(name: str, choices: Iterable[str], *, most: int = 3) -> list[str]:
    """The choices that look most like `name`, best first; without a likeness, the first few."""
    import difflib

    choices = list(choices)
    lowered = {choice.lower(): choice for choice in reversed(choices)}
    close = difflib.get_close_matches(name.lower(), lowered, n=most, cutoff=0.4)
    return [lowered[key] for key in close] or choices[:most]


def unknown(kind: str, name: object, choices: Iterable[str]) -> InputError:
    """The error for a name that is in no row: it names the value and the nearest rows."""
    return InputError(f"unknown {kind} {str(name)!r}: {the_nearest(str(name), choices)}")


def the_nearest(name: str, choices: Iterable[str]) -> str:
    """The nearest choices as the end of a sentence; "" where there is no choice."""
    near = nearest(name, choices)
    verb = "nearest is" if len(near) == 1 else "nearest are"
    return f"the {verb} {', '.join(near)}" if near else ""


def check_integer(name: str, value: object, low: int, high: int) -> int:
    """A whole number between limits, checked at the door.

    Raises
    ------
    InputError
        If it is none (True is none) or lies outside.
    """
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise InputError(f"{name} is {value!r}: give a whole number, {low} or more")
    number = int(value)
    if not low <= number <= high:
        raise InputError(f"{name} is {value}: give a whole number from {low} to {high}")
    return number


def check_name(name: str) -> str:
    """A name that a user gives to a plan or a kernel.

    Raises
    ------
    InputError
        It is long, or has spaces around it or characters that cannot be printed.
    """
    if len(name) > LONGEST_NAME or not name.isprintable() or name != name.strip():
        raise InputError(f"{name!r} is no name: give up to {LONGEST_NAME} printable characters")
    return name
