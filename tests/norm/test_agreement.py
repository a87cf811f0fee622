# SPDX-License-Identifier: Apache-2.0
"""Differences of two outputs: counted bit by bit, measured in ulp."""

from __future__ import annotations

import math

import numpy as np
import pytest

from precision_lab.norm.agreement import COLUMNS, differences, outputs_digest
from precision_lab.numbers.table import formats

BF16 = formats["bfloat16"]


def found(actual, other):
    """The three numbers for rows of values of bfloat16."""
    row = differences(np.array([actual]), np.array([other]), BF16)
    return [row[name] for name in COLUMNS]


def test_equal_outputs_do_not_differ():
    """Neither in number nor in size; NaN is the same as NaN, infinity as itself."""
    values = [1.0, -0.0, math.nan, math.inf]
    assert [0, 0.0, 0.0] == found(values, values)


def test_a_neighbour_is_one_ulp_away():
    """One of two elements, by an ulp of 2^-7: the difference is measured against both."""
    assert [1, 1.0, pytest.approx(2**-7 / math.sqrt(2))] == found([1 + 2**-7, 1.0], [1.0, 1.0])


def test_the_same_bits_have_the_same_name():
    """NaN is the same as NaN whatever its sign; zeros of two signs and neighbours are not."""
    names = [
        outputs_digest(np.array([[1.0, value]]))
        for value in (math.nan, -math.nan, 0.0, -0.0, 2.0, np.nextafter(2.0, 3.0))
    ]
    assert names[0] == names[1]
    assert 5 == len(set(names))


def test_zeros_of_two_signs_differ_by_nothing():
    """They are other bits at the same place."""
    assert [1, 0.0, 0.0] == found([0.0, 1.0], [-0.0, 1.0])


@pytest.mark.parametrize("odd", [math.nan, math.inf])
def test_what_is_finite_in_one_only_is_infinitely_far(odd):
    """A number beside NaN or infinity has no distance."""
    assert [1, math.inf, math.inf] == found([odd, 1.0], [2.0, 1.0])
    assert [1, math.inf, math.inf] == found([2.0, 1.0], [odd, 1.0])


def test_opposite_infinities_differ():
    """Neither is finite, and they are not the same."""
    assert [1, math.inf, math.inf] == found([math.inf], [-math.inf])


def test_huge_and_tiny_outputs_are_measured():
    """Squares past float64's range, or below it, spoil nothing; nor do zeros to compare with."""
    for scale in (2.0**120, 2.0**-126):
        assert pytest.approx(2**-7) == found([scale * (1 + 2**-7)], [scale])[2]
    assert [1, math.inf] == [found([1.0], [0.0])[at] for at in (0, 2)]


def test_nothing_to_compare_with():
    """Every number is NaN."""
    row = differences(np.ones((1, 2)), None, BF16)
    assert set(COLUMNS) == set(row)
    assert all(math.isnan(value) for value in row.values())
