# SPDX-License-Identifier: Apache-2.0
"""Numbers that outside data hold as text."""

from __future__ import annotations

import math
import re

from precision_lab.exceptions import InputError

DECIMAL = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*", re.ASCII | re.IGNORECASE)
HEXADECIMAL = re.compile(
    r"\s*[+-]?0x([0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(p[+-]?\d+)?\s*", re.ASCII | re.IGNORECASE
)


def number(text: str) -> float:
    """The float64 nearest to a number in decimal or in C's hexadecimal notation.

    Past float64's range that is an infinity; the words for infinities and NaN are no numbers. A
    number that is not 0 does not become 0: it is refused.

    Raises
    ------
    InputError
        If it is neither, or too small.

    Examples
    --------
    >>> number("1e-5"), number("0x1p-20")
    (1e-05, 9.5367431640625e-07)
    """
    if DECIMAL.fullmatch(text):
        return refuse_vanishing(text, float(text))
    if HEXADECIMAL.fullmatch(text):
        try:
            return refuse_vanishing(text, float.fromhex(text))
        except OverflowError:
            return -math.inf if text.lstrip().startswith("-") else math.inf
    raise InputError(f"{text[:40]!r} is no number: write a decimal, or hexadecimal as 0x1p-20")


def refuse_vanishing(text: str, value: float) -> float:
    """The value of a text, which is refused where the text is not 0 and float64 makes it 0.

    Raises
    ------
    InputError
        If float64 has no number so small.
    """
    _, hexadecimal, rest = text.lower().rpartition("0x")
    significand = rest.partition("p" if hexadecimal else "e")[0]
    if value == 0 and re.search("[1-9a-f]", significand):
        raise InputError(f"{text.strip()[:40]} is too small: float64 has 0 and 4.9e-324 up")
    return value
