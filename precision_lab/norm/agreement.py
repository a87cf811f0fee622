# SPDX-License-Identifier: Apache-2.0
"""How far two plans' outputs on the same inputs are apart, bit by bit and in ulp."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from precision_lab.arithmetic import Floats
    from precision_lab.numbers import Format

COLUMNS = ("against_differs", "against_ulp_max", "against_relative_rms")


def outputs_digest(values: Floats) -> str:
    """What names outputs: equal for the same bits of numbers, NaN the same as NaN.

    Parameters
    ----------
    values
        [rows, hidden], values of a format.

    Returns
    -------
    str
        16 hexadecimal digits of a SHA-256.
    """
    # Whatever sign and payload a NaN has.
    plain = np.where(np.isnan(values), math.nan, values).astype("<f8")
    return hashlib.sha256(plain.tobytes()).hexdigest()[:16]


def differences(actual: Floats, other: Floats | None, format: Format) -> dict[str, Any]:
    """What differs between two outputs for the same inputs.

    Parameters
    ----------
    actual, other
        [rows, hidden], values of `format`; `other` is None where there is nothing to compare with,
        and then every number is NaN.
    format
        The format of `actual`, whose ulp is the unit.

    Returns
    -------
    dict
        ``against_differs``: elements that are not the same, signed zeros told apart and NaN the
        same as NaN. ``against_ulp_max``: the largest distance in ulp of elements finite in both,
        infinite where an element is finite in one only. ``against_relative_rms``: the root of the
        sum of squared differences over that of the squares of `other`, likewise.
    """
    if other is None:
        return dict.fromkeys(COLUMNS, math.nan)
    nan = np.isnan(actual) & np.isnan(other)
    same = nan | ((actual == other) & (np.signbit(actual) == np.signbit(other)))
    finite = np.isfinite(actual) & np.isfinite(other)
    farthest = relative = 0.0
    if not (same | finite).all():
        farthest = relative = math.inf
    elif not same.all():
        y, z = actual[finite], other[finite]
        farthest = float(np.abs(format.distance(y, z)).max())
        # Scaled, so that squares neither overflow nor vanish.
        largest = float(np.abs(z).max()) or 1.0
        y, z = y / largest, z / largest
        squares = float(np.square(z).sum())
        gap = float(np.square(y - z).sum())
        relative = math.sqrt(gap / squares) if squares else math.inf if gap else 0.0
    return dict(zip(COLUMNS, (int((~same).sum()), farthest, relative), strict=True))
