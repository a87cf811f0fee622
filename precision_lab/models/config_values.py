# SPDX-License-Identifier: Apache-2.0
"""Numbers that a model's file gives, checked at the door."""

from __future__ import annotations

from typing import Any

from precision_lab.exceptions import InputError

WIDEST = 2**24
"""Elements of the widest row that a file may name."""


def read_eps(key: str, value: Any) -> float:
    """An eps that may be judged: a finite number from 0 to 1."""
    if isinstance(value, str):
        raise InputError(f"{key} is the string {value[:40]!r}: write a number without quotes")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"{key} is {quote_value(value)}, not a number such as 1e-05")
    if not 0 <= value <= 1:
        raise InputError(f"{key} is {quote_value(value)}, not a number from 0 to 1 such as 1e-05")
    return abs(float(value))


def read_size(key: str, value: Any, *, most: int = WIDEST, least: int = 1) -> int:
    """A whole number from `least` to `most`."""
    if type(value) is not int or not least <= value <= most:
        raise InputError(
            f"{key} is {quote_value(value)}, not a whole number from {least} to {most}"
        )
    return value


def quote_value(value: Any) -> str:
    """The value as Python writes it, cut where it is long."""
    try:
        text = repr(value)
    except ValueError:
        return "a number of thousands of digits"
    return text if len(text) <= 40 else f"{text[:40]}…"
