# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from precision_lab.exceptions import InputError
from precision_lab.files.numbers import number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_comes_back(value):
    """In decimal and in hexadecimal, to the sign of zero."""
    for text in (repr(value), value.hex(), f" {value!r}\n"):
        assert value.hex() == number(text).hex()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1", 1.0), (".5", 0.5), ("1.", 1.0), ("+1E2", 100.0), ("0X1P-1", 0.5), ("0x.8", 0.5),
     ("1e999", math.inf), ("-1e999", -math.inf), ("0x1p9999", math.inf), (" -0x1p9999", -math.inf)],
)  # fmt: skip
def test_forms(text, expected):
    """What people write; past float64's range is an infinity."""
    assert expected == number(text)


@pytest.mark.parametrize(
    "text",
    ["", " ", "nan", "inf", "-Infinity", "1_0", "1,5", "0x", "0x1p", "1e", "１", "--1", "1/3"],
)
def test_what_is_no_number(text):
    """Words, digits of other scripts and halves of numbers are refused by what they are."""
    with pytest.raises(InputError, match="is no number: write a decimal, or hexadecimal as"):
        number(text)


@pytest.mark.parametrize("text", ["1e-400", "-1e-400", "0x1p-1080", "0.0000001e-320", "0xap-2000"])
def test_what_float64_makes_0_is_refused(text):
    """A number that is not 0 never becomes 0; a 0 is one however it is written."""
    with pytest.raises(InputError, match="is too small: float64 has 0 and"):
        number(text)
    assert [0.0, 0.0, 0.0] == [number("0"), number("0.0e-400"), number("0x0p-5")]
    assert 5e-324 == number("5e-324")


@given(st.text(max_size=12))
def test_any_text(text):
    """A number, or bad input."""
    try:
        assert isinstance(number(text), float)
    except InputError as error:
        assert "is no number" in str(error)  # noqa: PT017 - either will do
