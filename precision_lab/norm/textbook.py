# SPDX-License-Identifier: Apache-2.0
"""A norm by its textbook formula in mpmath: any number of digits, and the second exact oracle."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.arithmetic import Intervals, decide, ends
from precision_lab.exceptions import InputError
from precision_lab.norm.norm import affine

if TYPE_CHECKING:
    from precision_lab.norm.arguments import Inputs


def enclosure(inputs: Inputs, row: int, column: int, bits: int) -> Any:
    """An interval of mpmath around one output.

    Parameters
    ----------
    inputs
        Checked arguments, finite in this row and column; the radicand must not be zero.
    row, column
        Which output.
    bits
        The working precision.
    """
    a = Intervals(bits)
    x = [a.number(value) for value in inputs.x[row].astype(np.float64).tolist()]
    v = inputs.norm.normalise(a, x, a.number(inputs.eps))[column]
    gain = bias = None
    if inputs.weight is not None:
        gain = a.number(float(inputs.weight[column])) + a.number(inputs.weight_offset)
    if inputs.bias is not None:
        bias = a.number(float(inputs.bias[column]))
    return affine(a, v, gain, bias)


def separation(inputs: Inputs, row: int, column: int) -> int:
    r"""An s such that the output is within 2^-s of a float64 only where it is that float64.

    For a float64 c, and v = D sqrt(n / q) as `arithmetic.integers` has it, v g - (c - b) is
    N / (q M), where N = D^2 g^2 n - (c - b)^2 q is a multiple of a power of two, and where
    M = \|v g\| + \|c - b\|.
    """
    x: list[float] = inputs.x[row].astype(np.float64).tolist()
    gain = 1.0 if inputs.weight is None else float(inputs.weight[column])
    bias = 0.0 if inputs.bias is None else float(inputs.bias[column])
    low_x = min(_last_place(value) for value in x)
    low_gain = min(_last_place(gain), _last_place(inputs.weight_offset))
    low_number = min(-1074, _last_place(bias))
    low_radicand = min(2 * low_x, _last_place(inputs.eps))
    lowest = min(2 * (low_x + low_gain), 2 * low_number + low_radicand)
    count = len(x)
    top_x = max(math.frexp(value)[1] for value in x)
    top_radicand = max(2 * top_x, math.frexp(inputs.eps)[1]) + 4 * count.bit_length() + 2
    size = abs(gain + inputs.weight_offset) * math.sqrt(count) + abs(bias)
    return max(0, top_radicand + math.frexp(size)[1] + 4 - lowest)


def _last_place(value: float) -> int:
    """The exponent of the last bit of a float; of zero, none that matters."""
    if value == 0:
        return 1024
    numerator, denominator = value.as_integer_ratio()
    trailing: int = (numerator & -numerator).bit_length()
    return trailing - denominator.bit_length()


def neighbours(inputs: Inputs, row: int, column: int) -> tuple[float, float]:
    """The neighbouring float64 around one output, equal where it is one of them."""
    low, high, _ = decide(
        lambda bits: enclosure(inputs, row, column, bits), separation(inputs, row, column)
    )
    return low, high


def decimal(inputs: Inputs, row: int, column: int, digits: int = 30) -> str:
    """One output to so many significant digits, each of them right.

    Parameters
    ----------
    inputs
        Checked arguments.
    row, column
        Which output.
    digits
        How many significant digits.

    Raises
    ------
    InputError
        Where the output is no finite number.
    """
    x = inputs.x[row].astype(np.float64)
    parts = [part[column] for part in (inputs.weight, inputs.bias) if part is not None]
    flat = np.all(x == x[0]) if inputs.norm.centred else not x.any()
    if not np.isfinite([*x, *map(float, parts)]).all() or (flat and inputs.eps == 0):
        message = (
            f"the output in row {row}, column {column} is no finite number, so it has no digits"
        )
        raise InputError(message)
    bits = 4 * digits + 64
    limit = separation(inputs, row, column)
    while True:
        low, high = ends(enclosure(inputs, row, column, bits))
        shown = [_shown(end, digits) for end in (low, high)]
        if shown[0] == shown[1]:
            return shown[0]
        if bits > 4 * limit + 4 * digits:
            # Both ends stand around a number that ends here, such as 1 or 0.
            return _shown((low + high) / 2, digits)
        bits *= 2


def _shown(value: Any, digits: int) -> str:
    import mpmath

    with mpmath.workdps(digits + 20):
        number = mpmath.mpf(value.numerator) / value.denominator
        return str(mpmath.nstr(number, digits, strip_zeros=True))
