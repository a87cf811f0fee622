# SPDX-License-Identifier: Apache-2.0
"""Rounding functions, a right one and each kind of wrong one, and what a check says of them."""

from __future__ import annotations

import numpy as np

from precision_lab.numbers.conformance.check import conformance
from precision_lab.numbers.table import formats


def right(values, name, **options):
    """Rounding that is right: this package's own."""
    return formats[name].round(values, **options)


def check_of(function, name, source="float64", **options):
    """The one check of a function in one format from one source."""
    report = conformance(function, formats=[name], sources=[source], **options)
    (found,) = report.checks
    assert report.passed == (found.wrong == 0)
    return found


def truncates(values, name):
    """Drops what is below the last place."""
    return right(values, name, mode="toward_zero")


def ties_away(values, name):
    """Takes ties to the larger magnitude."""
    return right(values, name, mode="nearest_away")


def flushes(values, name):
    """Has no subnormals."""
    found = right(values, name)
    return np.where(abs(found) < formats[name].tiny, np.copysign(0.0, found), found)


def flushes_first(values, name):
    """Flushes what is subnormal before it is rounded."""
    small = (abs(values) < formats[name].tiny) & (values != 0)
    return np.where(small, np.copysign(0.0, values), right(values, name))


def loses_signs(values, name):
    """Gives zero for minus zero."""
    found = right(values, name)
    return np.where(found == 0, 0.0, found)


def through_float16(values, name):
    """Rounds to float16 on the way."""
    return right(values.astype(np.float16), name)


def through_float32(values, name):
    """Rounds to float32 on the way."""
    return right(values.astype(np.float32), name)


def overflows_early(values, name):
    """Leaves the range above the largest value, not above the edge."""
    found = right(values, name)
    return np.where(abs(values) > formats[name].largest, np.copysign(np.inf, values), found)


def overflows_either_way(values, name):
    """Infinity for positive, the largest value for negative numbers."""
    return np.where(values > 0, right(values, name), right(values, name, overflow="saturate"))


def flips(values, name):
    """Gets the sign of large numbers wrong."""
    found = right(values, name)
    return np.where((abs(values) > 100) & np.isfinite(found), -found, found)


def off_grid(values, name):
    """Gives small numbers back as they are."""
    return np.where(abs(values) < 0.01, values, right(values, name))


def far(values, name):
    """Gives 2 for 8."""
    found = right(values, name)
    return np.where(abs(values) == 8, np.copysign(2.0, values), found)


def drops_nan(values, name):
    """Gives zero for NaN."""
    return np.nan_to_num(right(values, name), nan=0.0, posinf=np.inf, neginf=-np.inf)
