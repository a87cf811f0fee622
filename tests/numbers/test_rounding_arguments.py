# SPDX-License-Identifier: Apache-2.0
"""What is no value, mode, policy or random bits of a rounding is refused in a sentence."""

from __future__ import annotations

import numpy as np
import pytest

from precision_lab.exceptions import InputError
from precision_lab.numbers.table import formats


@pytest.mark.parametrize(
    "values", ["1.0", [1j], np.array([1], "M8[s]"), [2**70], None, np.array([0.1], np.longdouble)]
)
def test_other_types_are_refused(values):
    """What is no float32, float64, narrower format or integer is refused with its type."""
    with pytest.raises(InputError, match=r"^values of type .* cannot be rounded"):
        formats["bfloat16"].round(values)


def test_names_of_modes_and_policies_are_checked():
    """Unknown modes and policies name the nearest."""
    row = formats["bfloat16"]
    with pytest.raises(InputError, match=r"unknown rounding mode 'nearest': .*nearest_even"):
        row.round(1.0, mode="nearest")
    with pytest.raises(InputError, match=r"unknown overflow policy 'saturated': .*saturate"):
        row.round(1.0, overflow="saturated")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "stochastic"}, "needs random_bits"),
        ({"mode": "stochastic", "random_bits": [1]}, "random_bits of type int64"),
        ({"mode": "stochastic", "random_bits": np.array([0.5])}, "random_bits of type float64"),
        ({"mode": "stochastic", "random_bits": np.zeros(5, np.uint8)}, r"shape \(5,\) do not fit"),
        ({"random_bits": np.zeros(3, np.uint8)}, "belong to mode 'stochastic', not to"),
    ],
)
def test_random_bits_are_checked(options, message):
    """Random bits must be there for stochastic rounding alone, unsigned, and of a fitting shape."""
    with pytest.raises(InputError, match=message):
        formats["bfloat16"].round([1.0, 2.0, 3.0], **options)
