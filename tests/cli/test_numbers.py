# SPDX-License-Identifier: Apache-2.0
"""Numbers as people write them: read exactly, rounded once, written in full."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precision_lab.cli import numbers
from precision_lab.exceptions import InputError
from precision_lab.numbers.table import formats


def test_explain_rounds_the_decimal_itself():
    """A decimal just past a midpoint goes up, though float64 cannot tell it from the midpoint."""
    value = numbers.rounded(numbers.read("1.00390625000000000000000000001"), formats["bfloat16"])
    assert value == 1.0078125
    assert numbers.rounded(numbers.read("1.00390625"), formats["bfloat16"]) == 1.0


@given(st.sampled_from([row for row in formats.values() if row.bits <= 16]), st.data())
def test_a_code_and_its_value_explain_each_other(row, data):
    """The value of a code has that code (all codes of one NaN count as one)."""
    code = data.draw(st.integers(0, 2**row.bits - 1))
    value = float(row.decode(np.array(code)))
    if np.isfinite(value):
        assert numbers.code(value, row) == code


@given(
    st.fractions(max_denominator=10**30), st.sampled_from(["bfloat16", "float8_e5m2", "float32"])
)
def test_numbers_round_once(number, name):
    """A ratio rounds to the nearest value, and on a tie to the even one, by exact comparison."""
    row = formats[name]
    value = numbers.rounded(number or 0.0, row)
    if np.isfinite(value):
        place = int(row.ordinal(value))
        here = abs(Fraction(value) - number)
        for beside in (place - 1, place + 1):
            there = abs(Fraction(float(row.from_ordinal(beside))) - number)
            assert here < there or (here == there and place % 2 == 0)


@given(st.fractions(), st.integers(-1100, 1100))
def test_round_to_odd_brackets(number, power):
    """Rounding to odd keeps what is exact and else gives a neighbour with an odd last bit."""
    number *= Fraction(2) ** power
    value = numbers.to_odd(number)
    if Fraction(value) != number:
        assert np.float64(value).view(np.uint64) & 1
        if abs(value) == formats["float64"].largest:
            assert abs(number) > abs(Fraction(value))
            return
        assert abs(Fraction(value) - number) < Fraction(float(np.spacing(abs(value))))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_exact_and_hexadecimal_notations_read_back(value):
    """Reading back what is printed gives the same number."""
    assert float(numbers.read(value.hex())) == value
    assert float(numbers.read(numbers.exact(value).split(" = ")[0])) == value


@pytest.mark.parametrize("text", ["1e999999999", "-1.5E-100000", ".5e123456", "0x1p1000000"])
def test_a_long_exponent_is_told_as_such(text):
    """A number whose exponent nobody can hold is a number: the exponent is what is refused."""
    with pytest.raises(InputError, match="five digits are the most"):
        numbers.read(text)
    for wrong in ("1e", "1e99999x", "0x1p"):
        with pytest.raises(InputError, match="is no number"):
            numbers.read(wrong)
