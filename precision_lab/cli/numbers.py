# SPDX-License-Identifier: Apache-2.0
"""Numbers as people write them, rounded to a format once; and values as people read them."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.exceptions import InputError
from precision_lab.numbers import Format, formats

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,5})?(/\d+)?", re.IGNORECASE)
HEXADECIMAL = re.compile(r"[+-]?0x[0-9a-f]*\.?[0-9a-f]*p[+-]?\d{1,5}", re.IGNORECASE)
LONG_EXPONENT = re.compile(
    r"[+-]?(0x[0-9a-f]*\.?[0-9a-f]*p|(\d+\.?\d*|\.\d+)e)[+-]?\d{6,}", re.IGNORECASE
)
MOST_DIGITS = 60
SPECIAL = re.compile(r"[+-]?(inf|infinity|nan)", re.IGNORECASE)


def read(text: str) -> Fraction | float:
    """The real number that a text names: a decimal, a ratio, or C's hexadecimal notation.

    Returns
    -------
    Fraction or float
        A float for infinities, NaN and zeros, which have signs that a ratio has not.

    Raises
    ------
    InputError
        If it is none of these.
    """
    number: Fraction | None = None
    if SPECIAL.fullmatch(text):
        return float(text)
    if LONG_EXPONENT.fullmatch(text):
        raise InputError(f"{text!r} has too long an exponent: five digits are the most")
    if DECIMAL.fullmatch(text):
        with suppress(ValueError, ZeroDivisionError):
            number = Fraction(text)
    elif HEXADECIMAL.fullmatch(text):
        number = _hexadecimal(text)
    if number is None:
        raise InputError(f"{text!r} is no number: try 0.1, 1/3, 0x1.8p-3, inf or nan")
    if number == 0:
        return -0.0 if text.startswith("-") else 0.0
    return number


def _hexadecimal(text: str) -> Fraction | None:
    """C's hexadecimal notation, with any number of digits."""
    digits, _, exponent = text.lower().lstrip("+-").removeprefix("0x").partition("p")
    integer, _, part = digits.partition(".")
    if not integer + part:
        return None
    magnitude = Fraction(int(integer + part, 16)) * Fraction(2) ** (int(exponent) - 4 * len(part))
    return -magnitude if text.startswith("-") else magnitude


def to_float64(number: Fraction | float) -> float:
    """The nearest float64; past its range an infinity."""
    try:
        return float(number)
    except OverflowError:
        return -math.inf if number < 0 else math.inf


def to_odd(number: Fraction | float) -> float:
    """The float64 rounded to odd, from which every narrower format rounds as from the number."""
    value = to_float64(number)
    if isinstance(number, float):
        return value
    if math.isinf(value):
        return math.copysign(formats["float64"].largest, value)  # Its significand is odd.
    if Fraction(value) == number:
        return value
    toward_zero = value if abs(Fraction(value)) < abs(number) else math.nextafter(value, 0.0)
    away = math.nextafter(toward_zero, -math.inf if number < 0 else math.inf)
    odd = np.float64(toward_zero).view(np.uint64) & 1
    return toward_zero if odd else away


def rounded(
    number: Fraction | float, target: Format, *, mode: str = "nearest_even", overflow: str = "ieee"
) -> float:
    """A real number in a format, rounded once."""
    wide = target.precision > formats["float32"].precision
    if wide and mode != "nearest_even":
        raise InputError(f"{target.name} is rounded to nearest_even only, not {mode}")
    start = to_float64(number) if wide else to_odd(number)
    return float(target.round(start, mode=mode, overflow=overflow))


def read_values(texts: Iterable[str], target: Format) -> NDArray[Any]:
    """Numbers, each rounded once, as an array of a format's type."""
    return target.cast(np.array([rounded(read(text), target) for text in texts], np.float64))


def split(text: str) -> list[str]:
    """The numbers of a text, between which stand blanks or commas; `#` starts a comment."""
    lines = (line.partition("#")[0] for line in text.splitlines())
    return [word for line in lines for word in re.split(r"[\s,]+", line) if word]


def read_float64(text: str) -> float:
    """An option that is a single number, as the nearest float64."""
    return to_float64(read(text))


def code(value: float, target: Format) -> int | None:
    """The stored code of a value of the format; None where it has none (a NaN in FP4)."""
    if math.isnan(value) and not target.nan:
        return None
    stored = target.cast(np.float64(value))
    return int(stored.view(f"u{stored.dtype.itemsize}"))


def code_text(value: float, target: Format) -> str:
    """The stored code in hex, as wide as the format."""
    stored = code(value, target)
    width = -(-storage_bits(target) // 4)
    return "–" if stored is None else f"0x{stored:0{width}x}"


def storage_bits(target: Format) -> int:
    """Bits of the stored code: tf32 is held in a float32."""
    return target.dtype.itemsize * 8 if target.dtype_name else target.bits


def short(value: float) -> str:
    """The shortest decimal that names this float64."""
    return repr(float(value)) if math.isfinite(value) else str(float(value))


def exact(value: float) -> str:
    """All decimal digits of a float64; where they are many, the first and the ratio."""
    if not math.isfinite(value):
        return str(value)
    ratio = Fraction(value)
    digits = _expansion(ratio)
    if len(digits) <= MOST_DIGITS:
        return digits
    power = ratio.denominator.bit_length() - 1
    return f"{value:.17g} = " + (f"{ratio.numerator} / 2^{power}" if power else digits)


def _expansion(ratio: Fraction) -> str:
    """A dyadic ratio as a decimal, with all its digits."""
    places = ratio.denominator.bit_length() - 1
    digits = str(abs(ratio.numerator) * 5**places).rjust(places + 1, "0")
    integer, part = (digits[:-places], digits[-places:]) if places else (digits, "")
    text = f"{integer}.{part}" if part else integer
    return f"-{text}" if ratio < 0 else text
