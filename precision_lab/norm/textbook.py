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
    from numpy.typing import NDArray

    from precision_lab.norm.arguments import Inputs


def enclosure(inputs: Inputs, group: int, column: int, bits: int) -> Any:
    """An interval of mpmath around one output.

    Parameters
    ----------
    inputs
        Checked arguments, finite in this group's statistic and in this output; the radicand must
        not be zero.
    group, column
        Which output.
    bits
        The working precision.
    """
    a = Intervals(bits)
    element, statistic = (
        [a.number(value) for value in part] for part in _row(inputs, group, column)
    )
    v = inputs.norm.normalise(a, element, statistic, a.number(inputs.eps))[0]
    gain, bias = (_parameter(part, group, column) for part in (inputs.weight, inputs.bias))
    if gain is not None:
        gain = a.number(gain) + a.number(inputs.weight_offset)
    return affine(a, v, gain, None if bias is None else a.number(bias))


def _row(inputs: Inputs, group: int, column: int) -> tuple[list[float], list[float]]:
    """The one element, and the elements that enter the statistic."""
    x = inputs.x[group].astype(np.float64).tolist()
    entering = inputs.groups.entering
    inside = x if entering is None else [x[i] for i in np.flatnonzero(entering)]
    return [x[column]], inside


def _parameter(part: NDArray[Any] | None, group: int, column: int) -> float | None:
    """The gain or bias of one output, where there is one."""
    if part is None:
        return None
    rows, columns = part.shape
    return float(part[group if rows > 1 else 0, column if columns > 1 else 0])


def separation(inputs: Inputs, group: int, column: int) -> int:
    r"""An s such that the output is within 2^-s of a float64 only where it is that float64.

    For a float64 c, and v = D sqrt(m / q) as `arithmetic.integers` has it, v g - (c - b) is
    N / (q M), where N = D^2 g^2 m - (c - b)^2 q is a multiple of a power of two, and where
    M = \|v g\| + \|c - b\|. An element that does not enter the statistic has no \|v\| of sqrt(m) at
    most, but a q that is less than its D^2 by as much: so `top_radicand` bounds D^2 too.
    """
    element, statistic = _row(inputs, group, column)
    x = element + statistic
    gain, bias = (_parameter(part, group, column) for part in (inputs.weight, inputs.bias))
    gain, bias = 1.0 if gain is None else gain, 0.0 if bias is None else bias
    low_x = min(_last_place(value) for value in x)
    low_gain = min(_last_place(gain), _last_place(inputs.weight_offset))
    low_number = min(-1074, _last_place(bias))
    low_radicand = min(2 * low_x, _last_place(inputs.eps))
    lowest = min(2 * (low_x + low_gain), 2 * low_number + low_radicand)
    count = len(statistic)
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


def neighbours(inputs: Inputs, group: int, column: int) -> tuple[float, float]:
    """The neighbouring float64 around one output, equal where it is one of them."""
    low, high, _ = decide(
        lambda bits: enclosure(inputs, group, column, bits), separation(inputs, group, column)
    )
    return low, high


def decimal(inputs: Inputs, group: int, column: int, digits: int = 30) -> str:
    """One output to so many significant digits, each of them right.

    Parameters
    ----------
    inputs
        Checked arguments.
    group, column
        Which output.
    digits
        How many significant digits.

    Raises
    ------
    InputError
        Where the output is no finite number.
    """
    element, statistic = _row(inputs, group, column)
    parts = [_parameter(part, group, column) for part in (inputs.weight, inputs.bias)]
    numbers = [*element, *statistic, *(part for part in parts if part is not None)]
    flat = set(statistic) == {statistic[0] if inputs.norm.centred else 0.0}
    if not np.isfinite(numbers).all() or (flat and inputs.eps == 0):
        message = (
            f"the output in row {group}, column {column} is no finite number, so it has no digits"
        )
        raise InputError(message)
    bits = 4 * digits + 64
    limit = separation(inputs, group, column)
    while True:
        low, high = ends(enclosure(inputs, group, column, bits))
        shown = [_shown(end, digits) for end in (low, high)]
        if shown[0] == shown[1]:
            return shown[0]
        if bits > 4 * limit + 4 * digits:
            # Both ends stand around a number that ends here; as close to 0 as this, it is 0.
            if low <= 0 <= high:
                return "0.0"
            return _shown((low + high) / 2, digits)
        bits *= 2


def _shown(value: Any, digits: int) -> str:
    import mpmath

    with mpmath.workdps(digits + 20):
        number = mpmath.mpf(value.numerator) / value.denominator
        return str(mpmath.nstr(number, digits, strip_zeros=True))
