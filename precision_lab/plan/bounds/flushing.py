# SPDX-License-Identifier: Apache-2.0
"""What is known of an operand that a step takes for zero where it is subnormal.

Of a step whose format has no subnormals, operands that another step left are flushed first: none
moves by more than the smallest normal number, and none away from zero.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.plan.bounds.enclosed import Deviations, Mean, Multiple, Squares, Total
from precision_lab.plan.bounds.error_model import Approximation, Interval
from precision_lab.plan.bounds.row_moments import Rows

if TYPE_CHECKING:
    from precision_lab.arithmetic import Floats


def flushed(value: Any, tiny: float, n: int) -> Any:
    """What is known of it after that.

    Parameters
    ----------
    value
        What the analysis knows of a variable.
    tiny
        The smallest normal number of the step's format.
    n
        Elements that enter the statistic.
    """
    match value:
        case Interval():
            return Interval(_flushed_end(value.low, tiny), -_flushed_end(-value.high, tiny))
        case Approximation():
            return value.off_by(np.where(np.abs(value.near) - value.error < tiny, tiny, 0.0))
        case Rows():
            u, below = value.brought
            return dataclasses.replace(value, brought=(u, below + tiny))
        case Squares():
            return value._replace(sum=Interval(value.sum.low - n * tiny, value.sum.high))
        case Mean() | Multiple():
            return dataclasses.replace(value, error=value.error + tiny)
        case Total():
            return value._replace(error=value.error + tiny)
        case Deviations():
            return dataclasses.replace(value, lost=tiny)
    raise TypeError(type(value))


def _flushed_end(low: Floats, tiny: float) -> Floats:
    """A lower end: of what lies just above zero it is zero."""
    return np.where((low > 0) & (low < tiny), 0.0, low)
