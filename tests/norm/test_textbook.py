# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import mpmath
import numpy as np
import pytest

from precision_lab.exceptions import InputError
from precision_lab.norm.arguments import check
from precision_lab.norm.textbook import decimal, neighbours


def test_digits_by_hand():
    """[3, 4] over sqrt(12.5): 3 times 0.2828427124746190097603377448..."""
    inputs = check("rms", [3.0, 4.0], eps=0.0)
    assert decimal(inputs, 0, 0) == "0.848528137423857029281013234526"
    assert decimal(inputs, 0, 1, 11) == "1.1313708499"


def test_digits_of_numbers_that_end():
    """Exact outputs end: 1, 0 and a bias of 0.1 as float32 has it."""
    assert decimal(check("rms", [2.0, -2.0], eps=0.0), 0, 1) == "-1.0"
    assert decimal(check("layer", [1.0, 2.0, 3.0], eps=0.0), 0, 1) == "0.0"
    bias = np.full(3, 0.1, np.float32)
    assert decimal(check("layer", [1.0, 2.0, 3.0], None, bias, eps=0.0), 0, 1, 40) == (
        "0.100000001490116119384765625"
    )


def test_digits_of_zero():
    """An output that is exactly 0 is told as 0; one that is merely tiny, by its digits."""
    zero = check("rms", [3.0], [1.0], [-1.0], eps=0.0)
    assert decimal(zero, 0, 0) == "0.0"
    assert decimal(check("layer", [1.0, -1.0], [2.0, 2.0], [-2.0, 2.0], eps=0.0), 0, 1) == "0.0"
    # 1/sqrt(1 + e) - 1 is -e/2 but for e².
    tiny = decimal(check("rms", [1.0], [1.0], [-1.0], eps=2.0**-400), 0, 0, 8)
    with mpmath.workdps(200):
        assert tiny == mpmath.nstr(1 / mpmath.sqrt(1 + mpmath.mpf(2) ** -400) - 1, 8)


@pytest.mark.parametrize(
    ("norm", "x", "weight"),
    [("rms", [0.0, 0.0], None), ("layer", [1.0, 1.0], None), ("rms", [1.0, np.nan], None),
     ("rms", [1.0, 2.0], [np.inf, 1.0])],
)  # fmt: skip
def test_no_digits_where_there_is_no_number(norm, x, weight):
    """0/0, NaN and infinity are refused in one sentence."""
    with pytest.raises(InputError, match="row 0, column 0 is no finite number"):
        decimal(check(norm, x, weight, eps=0.0), 0, 0)


def test_a_number_beside_a_float_is_told_from_it():
    """With eps 2^-400 the output of [1] is 2^-401 below 1: bits are added until it shows."""
    assert neighbours(check("rms", [1.0], eps=2.0**-400), 0, 0) == (1 - 2.0**-53, 1.0)
    assert neighbours(check("rms", [1.0], eps=0.0), 0, 0) == (1.0, 1.0)
