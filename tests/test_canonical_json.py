# SPDX-License-Identifier: Apache-2.0
"""Canonical JSON: exact floats, one text a value."""

from __future__ import annotations

import dataclasses
import json
import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precision_lab.canonical_json import decode, digest, encode, null, plain

BITS = st.integers(0, 2**64 - 1)


def value_of(bits: int) -> float:
    """The float64 of a bit pattern."""
    (value,) = struct.unpack("<d", struct.pack("<Q", bits))
    return value


def bits_of(value: float) -> int:
    """The bit pattern of a float64; every NaN has the same."""
    (bits,) = struct.unpack("<Q", struct.pack("<d", value))
    return bits if value == value else 0x7FF8_0000_0000_0000  # noqa: PLR0124


LEAVES = st.none() | st.booleans() | st.integers() | st.text() | st.builds(value_of, BITS)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10
)


def is_tag(value: object) -> bool:
    """Whether some mapping in the value would be taken for a float."""
    match value:
        case {"float": _} if len(value) == 1:
            return True
        case dict():
            return any(is_tag(item) for item in value.values())
        case list():
            return any(is_tag(item) for item in value)
    return False


def with_bits(value: object) -> object:
    """The value with every float as its bits, so that == means the same floats."""
    match value:
        case float():
            return ("float", bits_of(value))
        case dict():
            return {key: with_bits(item) for key, item in value.items()}
        case list():
            return [with_bits(item) for item in value]
    return value


class TestFloats:
    """To the bit."""

    @given(bits=BITS, hex_floats=st.booleans())
    def test_every_float_comes_back_with_its_bits(self, bits, hex_floats):
        """Subnormals, −0, infinities and NaN (as a NaN) survive the text."""
        value = value_of(bits)
        assert bits_of(value) == bits_of(decode(encode(value, hex_floats=hex_floats)))

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (5e-324, "5e-324"),
            (1e300, "1e+300"),
            (math.inf, '{"float":"inf"}'),
            (-math.inf, '{"float":"-inf"}'),
            (math.nan, '{"float":"nan"}'),
        ],
    )
    def test_text_of_special_values(self, value, text):
        """Finite floats are numbers that any reader of JSON takes; the others are tagged text."""
        assert text == encode(value)
        assert bits_of(value) == bits_of(decode(text))

    def test_the_comparison_can_fail(self):
        """−0 and 0 have different bits, and so do neighbours."""
        assert with_bits([0.0]) != with_bits([-0.0])
        assert with_bits({"a": 1.0}) != with_bits({"a": math.nextafter(1.0, 2.0)})
        assert with_bits(1.0) != with_bits(1)


class TestValues:
    """Nested data."""

    @given(value=VALUES.filter(lambda value: not is_tag(value)))
    def test_round_trip(self, value):
        """Nested data comes back the same, floats to the bit."""
        text = encode(value)
        assert with_bits(value) == with_bits(decode(text))
        assert text.isascii()
        # Any reader of JSON accepts it: no NaN, no Infinity.
        json.loads(text, parse_constant=pytest.fail)

    @given(value=st.dictionaries(st.text(), st.integers(), min_size=2))
    def test_one_text_a_value(self, value):
        """The order in which a mapping was filled does not show."""
        backwards = dict(reversed(value.items()))
        assert encode(value) == encode(backwards)
        assert digest(value) == digest(backwards)

    def test_tuples_are_lists(self):
        """Sequences of both kinds have one text."""
        assert encode([1, [2]]) == encode((1, (2,)))

    @pytest.mark.parametrize(
        "value", [np.float64(1), np.int64(1), {1: 2}, {1}, b"x", {"float": 1}, object()]
    )
    def test_what_has_no_text_is_refused(self, value):
        """NumPy's scalars print in their own way, and a tag must not be forged."""
        with pytest.raises(TypeError):
            encode(value)

    @pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"float": 1}', '{"float": "x"}', "{"])
    def test_what_is_no_canonical_text_is_refused(self, text):
        """Reading what nothing here wrote is an error."""
        with pytest.raises(ValueError, match=r".+"):
            decode(text)


class TestDigest:
    """What a case is known by."""

    def test_digest_is_stable(self):
        """Keys of old files stay valid: this digest must never change."""
        value = {"eps": 1e-06, "rows": 3, "nan": math.nan, "list": [0.1, -0.0], "text": "é"}
        text = (
            '{"eps":{"float":"0x1.0c6f7a0b5ed8dp-20"},"list":[{"float":"0x1.999999999999ap-4"},'
            '{"float":"-0x0.0p+0"}],"nan":{"float":"nan"},"rows":3,"text":"\\u00e9"}'
        )
        assert text == encode(value, hex_floats=True)
        assert "b8b0b4fe15b6745e0e6a3989c519986cf700fcf27f1deb49ec7277aec2d00445" == digest(value)

    def test_neighbours_have_different_digests(self):
        """A change of one bit is another case; so is an integer in a float's place."""
        digests = {digest(x) for x in (1e-6, math.nextafter(1e-6, 1), 0.0, -0.0, 1, 1.0)}
        assert len(digests) == 6


def test_records_and_arrays_become_plain():
    """Records are objects, sequences and arrays lists, scalars of NumPy's Python's own."""

    @dataclasses.dataclass
    class Point:
        x: float
        y: tuple[int, ...]

    given = {1: Point(np.float64(0.5), (1, 2)), "a": np.array([[1, 2]]), "n": None, "t": True}
    found = plain(given)
    assert found == {"1": {"x": 0.5, "y": [1, 2]}, "a": [[1, 2]], "n": None, "t": True}
    assert type(found["1"]["x"]) is float


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_lacks_become_text_or_null(value):
    """As the caller says, however deep they lie."""
    assert [{"x": [str(value)]}] == plain([{"x": np.array([value])}])
    assert [{"x": [None]}] == plain([{"x": (value,)}], lacking=null)
