# SPDX-License-Identifier: Apache-2.0
"""Rounding: right in every mode, policy and switch, whatever the array looks like."""

from __future__ import annotations

import warnings

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from integer_rounding import rounded

from precision_lab.exceptions import InputError
from precision_lab.numbers.format import MODES, OVERFLOW_POLICIES
from precision_lab.numbers.rounding import BLOCK
from precision_lab.numbers.table import formats

WORDS = {"float32": np.uint32, "float64": np.uint64}
SWITCHES = {
    "as it is": lambda row: row,
    "flushed": lambda row: row.flushed,
    "unbounded": lambda row: row.unbounded,
}
NARROW = [row for row in formats.values() if row.precision <= 11]

each_format = pytest.mark.parametrize("row", formats.values(), ids=lambda row: row.name)


def same(left, right):
    """Where two arrays hold the same values, NaN for NaN, signs of zeros counted."""
    both = np.isnan(left) & np.isnan(right)
    return both | ((left == right) & (np.signbit(left) == np.signbit(right)))


def test_the_comparison_can_fail():
    """Another value, another sign of zero, and NaN against a number are told apart."""
    left = np.array([1.0, np.nan, -0.0, 1.0, 0.0, np.nan])
    right = np.array([1.0, np.nan, -0.0, np.nextafter(1, 2), -0.0, 1.0])
    assert [True, True, True, False, False, False] == same(left, right).tolist()


# Against integers


@st.composite
def patterns(draw, row, source):
    """Numbers of a source by their bits: any at all, and some beside what a format decides on."""
    word = WORDS[source]
    bits = 8 * np.dtype(word).itemsize
    some = draw(st.lists(st.integers(0, 2**bits - 1), min_size=4, max_size=4))
    anywhere = np.array(some, word).view(source)
    # Twice the ordinals reach the values and the midpoints between them.
    top = min(int(row.ordinal(row.largest)), 2**40)
    places = draw(st.lists(st.integers(0, 2 * top + 2), min_size=6, max_size=6))
    halves = (row.unbounded.from_ordinal(x // 2 + np.arange(2)) for x in places)
    points = [
        low if x % 2 == 0 else low + (high - low) / 2
        for x, (low, high) in zip(places, halves, strict=True)
    ]
    with np.errstate(over="ignore", under="ignore"):
        near = np.array(points).astype(source)
    steps = draw(st.lists(st.integers(-2, 2), min_size=6, max_size=6))
    signs = draw(st.lists(st.integers(0, 1), min_size=6, max_size=6))
    # Zero and infinity are ends of the line of bit patterns.
    line = near.view(word).astype(object) + np.array(steps, object)
    line = np.clip(line, 0, np.array(np.inf, source).view(word)) + np.array(signs, object) * 2 ** (
        bits - 1
    )
    return np.concatenate([anywhere, line.astype(word).view(source)])


@each_format
@pytest.mark.parametrize("source", WORDS)
@settings(max_examples=30)
@given(data=st.data())
def test_any_bits_round_as_integers_say(row, source, data):
    """Any number is rounded in every mode and policy, with each switch, as integers do it."""
    values = data.draw(patterns(row, source))
    bits = np.array(data.draw(st.lists(st.integers(0, 255), min_size=10, max_size=10)), np.uint8)
    row = SWITCHES[data.draw(st.sampled_from(list(SWITCHES)))](row)
    for mode in MODES:
        random = {"random_bits": bits} if mode == "stochastic" else {}
        for overflow in OVERFLOW_POLICIES:
            actual = row.round(values, mode=mode, overflow=overflow, **random)
            expected = [
                rounded(float(x), row, mode=mode, overflow=overflow, fraction=int(b) / 256)
                for x, b in zip(values, bits, strict=True)
            ]
            assert same(np.array(expected), actual).all(), (mode, overflow, values, actual)


def test_the_integers_can_tell_modes_apart():
    """The oracle gives another answer in each mode, so that agreeing with it says something."""
    row = formats["float8_e4m3fn"]
    tie, above = 1 + 2**-4, 1 + 2**-4 + 2**-20
    found = {mode: rounded(tie, row, mode=mode) for mode in MODES}
    assert found == {
        "nearest_even": 1,
        "nearest_away": 1.125,
        "toward_zero": 1,
        "up": 1.125,
        "down": 1,
        "to_odd": 1.125,
        "stochastic": 1,
    }
    assert rounded(above, row) == 1.125
    assert rounded(-above, row, mode="up") == -1
    assert rounded(tie, row, mode="stochastic", fraction=0.5) == 1.125


@pytest.mark.parametrize("row", NARROW, ids=lambda row: row.name)
def test_odd_first_makes_two_roundings_one(row):
    """Rounding to float32 to odd and then to a format is rounding to it directly, in every mode.

    Rounding to nearest first is not: that is double rounding.
    """
    rng = np.random.default_rng(11)
    top = int(row.ordinal(row.largest))
    below = row.from_ordinal(rng.integers(0 if row.zero else 1, top, 2000))
    middle = below + row.ulp(below) / 2
    values = np.concatenate([middle, np.nextafter(middle, 0), np.nextafter(middle, np.inf)])
    values = np.concatenate([values, -values]) if row.signed else values
    single = formats["float32"]
    odd, nearest = single.round(values, mode="to_odd"), single.round(values)
    for mode in MODES[:-1]:
        assert same(row.round(values, mode=mode), row.round(odd, mode=mode)).all()
    assert not same(row.round(values), row.round(nearest)).all()


# Stochastic rounding


@pytest.mark.parametrize("row", [*NARROW, formats["float32"]], ids=lambda row: row.name)
def test_stochastic_rounding_goes_up_exactly_as_often_as_it_should(row):
    """Over all 256 random bytes a value goes away from zero floor(256 * part of an ulp) times."""
    parts = np.array([0, 1, 2, 3, 64, 127, 128, 129, 255, 256 - 2**-12, 255.5, 0.5, 2**-12]) / 256
    below = row.from_ordinal(int(row.ordinal(1.0)) + np.array([0, 1]))[
        : 1 if row.precision < 3 else 2
    ]
    step = row.ulp(below)[:, None, None]
    bits = np.arange(256, dtype=np.uint8)
    values = np.broadcast_to(
        below[:, None, None] + parts[:, None] * step, (len(below), len(parts), 256)
    )
    for sign in (1, -1) if row.signed else (1,):
        found = row.round(sign * values, mode="stochastic", random_bits=bits)
        away = np.abs(found) == below[:, None, None] + step
        stays = np.abs(found) == below[:, None, None]
        assert (away ^ stays).all()
        assert (away.sum(axis=-1) == np.floor(256 * parts)).all()


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32])
def test_random_bits_are_fractions_of_their_own_width(kind):
    """The same fraction of an ulp rounds the same, whatever the width that holds it."""
    row = formats["bfloat16"]
    half = 1 << (8 * np.dtype(kind).itemsize - 1)
    values = 1 + np.array([0.5, 0.5 - 2**-30, 0.5 + 2**-30]) * row.epsilon
    found = [
        row.round(values, mode="stochastic", random_bits=np.array(bits, kind)).tolist()
        for bits in (0, half - 1, half, 2 * half - 1)
    ]
    up = 1 + row.epsilon
    tight = kind == np.uint32
    assert [[1, 1, 1], [1, 1, up if tight else 1], [up, 1, up], [up, up, up]] == found


# Overflow, zeros and signs, written out


@pytest.mark.parametrize(
    ("name", "value", "ieee", "saturate"),
    [
        ("float16", 65519.99, 65504, 65504),
        ("float16", 65520, np.inf, 65504),
        ("float16", np.inf, np.inf, 65504),
        ("bfloat16", -3.4e38, -np.inf, -float(ml_dtypes.finfo("bfloat16").max)),
        ("float8_e4m3fn", 464, 448, 448),
        ("float8_e4m3fn", 464.1, np.nan, 448),
        ("float8_e4m3fn", -np.inf, np.nan, -448),
        ("float8_e4m3", 248, np.inf, 240),
        ("float8_e4m3fnuz", 248, np.nan, 240),
        ("float8_e5m2", 61440, np.inf, 57344),
        ("float8_e8m0fnu", 1.5 * 2.0**127, np.nan, 2.0**127),
        ("float6_e2m3fn", 7.75, np.nan, 7.5),
        ("float4_e2m1fn", 5.0, 4, 4),
        ("float4_e2m1fn", 7.0, np.nan, 6),
        ("float16", np.nan, np.nan, np.nan),
        ("float4_e2m1fn", np.nan, np.nan, np.nan),
    ],
)
def test_overflow_policies(name, value, ieee, saturate):
    """Past the overflow edge stands the format's infinity or NaN, or its largest value."""
    row = formats[name]
    for source in (np.float32, np.float64):
        assert same(ieee, row.round(source(value)))
        assert same(saturate, row.round(source(value), overflow="saturate"))


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("float16", -0.0, -0.0),
        ("float16", -1e-9, -0.0),
        ("float8_e4m3fnuz", -0.0, 0.0),
        ("float8_e4m3fnuz", -1e-9, 0.0),
        ("float8_e8m0fnu", 0.0, np.nan),
        ("float8_e8m0fnu", -1.0, np.nan),
        ("float8_e8m0fnu", 1e-45, 2.0**-127),
        ("float8_e8m0fnu", 3.0, 4.0),
        ("float8_e8m0fnu", 1.5, 2.0),
    ],
)
def test_zeros_signs_and_ties_at_precision_1(name, value, expected):
    """Zeros keep a sign where the format has it; E8M0 has no zero, no sign, and ties go up."""
    for source in (np.float32, np.float64):
        assert same(expected, formats[name].round(source(value)))


def test_unbounded_formats_keep_precision_alone():
    """Without its range a format neither overflows nor underflows, under either policy."""
    row = formats["float8_e4m3fn"].unbounded
    values = np.array([1e30, -1e30, 1e-300, 1.01, np.inf])
    found = row.round(values)
    assert (abs(found[:4] - values[:4]) <= 2.0**-4 * abs(values[:4])).all()
    assert np.isinf(found[4])
    for name in ("float64", "float32", "float8_e4m3fn"):
        unbounded = formats[name].unbounded
        assert np.isinf(unbounded.round(np.inf, overflow="saturate"))


def test_flushed_formats_have_nothing_below_the_smallest_normal():
    """Flushing is decided after rounding: what rounds up to the smallest normal is kept."""
    row = formats["float16"].flushed
    values = row.tiny * np.array([0.5, 1 - 2**-11, 1 - 2**-12, 1.0, -0.75])
    assert same([0.0, 0.0, row.tiny, row.tiny, -0.0], row.round(values)).all()


# Arrays of any make


@each_format
@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 3])
def test_blocks_meet_without_a_seam(row, size):
    """Values at the edges of blocks are rounded as they are one at a time."""
    rng = np.random.default_rng(size)
    values = (rng.standard_normal(size) * 2.0 ** rng.integers(-20, 20, size)).astype(np.float32)
    edges = [i for i in (0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, size - 1) if 0 <= i < size]
    for source in (np.float32, np.float64):
        found = row.round(values.astype(source))
        assert (size,) == found.shape
        assert np.float64 == found.dtype
        alone = [float(row.round(values[i : i + 1].astype(source))[0]) for i in edges]
        assert same(np.array(alone), found[edges]).all()


@each_format
@pytest.mark.parametrize("source", WORDS)
def test_strides_and_shapes_do_not_matter(row, source):
    """Views, transposes, reversed and broadcast arrays are rounded as their copies are."""
    rng = np.random.default_rng(6)
    plain = (rng.standard_normal((12, 35)) * 2.0 ** rng.integers(-9, 9, (12, 35))).astype(source)
    views = [
        plain.T,
        plain[::-1, ::3],
        plain[:, 5],
        np.broadcast_to(plain[0], (4, 35)),
        plain.reshape(2, 6, 35)[:, ::2],
        plain[:0],
    ]
    for mode in ("nearest_even", "up"):
        for view in views:
            found = row.round(view, mode=mode)
            assert view.shape == found.shape
            assert same(row.round(view.copy(), mode=mode), found).all()


@each_format
def test_the_input_is_not_touched(row):
    """Rounding neither changes its input nor gives a view of it, even where nothing is rounded."""
    for source in (np.float32, np.float64):
        values = np.linspace(-3, 3, 1001).astype(source)
        before = values.copy()
        values.flags.writeable = False
        for mode in ("nearest_even", "down"):
            found = row.round(values, mode=mode)
            assert not np.shares_memory(values, found)
        assert (before == values).all()


def test_scalars_give_0_d_arrays():
    """A number, a NumPy scalar and a 0-d array give a 0-d float64 array."""
    for value in (0.3, 3, np.float32(0.3), np.array(0.3), True):
        found = formats["bfloat16"].round(value)
        assert isinstance(found, np.ndarray)
        assert found.shape == ()
        assert np.float64 == found.dtype
    assert formats["bfloat16"].round([]).shape == (0,)


def test_integers_are_exact_or_refused():
    """Integers are rounded once; those that float64 cannot hold are refused, not rounded twice."""
    row = formats["bfloat16"]
    for kind in (np.int8, np.uint16, np.int32, np.int64, np.uint64, bool):
        values = np.array([0, 1, 100 if kind is not bool else 1], kind)
        assert same(row.round(values.astype(np.float64)), row.round(values)).all()
    assert row.round(2**53) == 2.0**53
    assert formats["float32"].round([-(2**53)]) == -(2.0**53)
    for large in (
        2**53 + 1,
        [1, -(2**53) - 1],
        np.array([2**64 - 1], np.uint64),
        np.int64(-(2**63)),
    ):
        with pytest.raises(InputError, match="rounded twice"):
            row.round(large)


@pytest.mark.parametrize("row", [r for r in formats.values() if r.bits <= 16], ids=lambda r: r.name)
def test_arrays_of_narrow_types_are_taken_by_value(row):
    """An array of a narrower type is rounded by its values: to its own format they stay."""
    values = row.values()
    values = values[:: max(1, len(values) // 999)]
    narrow = values.astype(np.float32).astype(row.dtype)
    assert same(values, row.round(narrow)).all()
    target = formats["float8_e5m2"]
    assert same(target.round(values), target.round(narrow)).all()


@pytest.mark.parametrize("name", ["bfloat16", "float32", "float64"])
def test_one_value_is_rounded_as_often_as_there_are_random_bits(name):
    """Values and random bits broadcast both ways: a quarter ulp goes up for 64 of 256 bits."""
    row, bits = formats[name], np.arange(256, dtype=np.uint8)
    # float64 has nothing between its values to round.
    value = 1.0 if name == "float64" else 1 + row.epsilon / 4
    found = row.round(value, mode="stochastic", random_bits=bits)
    goes_up = (value > 1) & (bits >= 192)
    assert same(found, np.where(goes_up, 1 + row.epsilon, 1.0)).all()
    found = row.round([[1.0], [2.0]], mode="stochastic", random_bits=bits[:3])
    assert same(found, np.array([[1.0] * 3, [2.0] * 3])).all()
    assert (2, 3) == row.cast([[1.0], [2.0]], mode="stochastic", random_bits=bits[:3]).shape


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16, np.int32, np.uint8])
def test_byte_order_is_no_matter(kind):
    """Numbers in the other byte order are the same numbers, random bits too."""
    values = np.array([0, 1, 3, 77, 100], kind)
    turned = values.astype(values.dtype.newbyteorder())
    bits = np.arange(5, dtype=np.uint16) << 13
    for row in (formats["bfloat16"], formats["float8_e4m3fn"], formats["float64"]):
        assert same(row.round(values), row.round(turned)).all()
        found = row.round(values, mode="stochastic", random_bits=bits.astype(">u2"))
        assert same(row.round(values, mode="stochastic", random_bits=bits), found).all()


def test_unbounded_formats_without_zero_go_on_below_their_smallest_value():
    """E8M0's powers of two go on past both of its ends; zero and minus are none there either."""
    row = formats["float8_e8m0fnu"].unbounded
    powers = np.array([2.0**-130, 2.0**-1000, 2.0**130])
    assert powers.tolist() == row.round(powers).tolist()
    assert powers.tolist() == row.round(powers * 1.25, mode="down").tolist()
    assert np.isnan(row.round([0.0, -(2.0**-130)])).all()


def test_rounding_warns_of_nothing():
    """NaN, infinities, overflow and underflow are answers, not warnings."""
    values = np.array([np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 0.0])
    with warnings.catch_warnings(), np.errstate(all="warn"):
        warnings.simplefilter("error")
        for row in formats.values():
            for mode in MODES[:-1]:
                row.round(values, mode=mode)
                if row.nan:
                    row.cast(values, mode=mode)
            # All codes of its own type, signalling NaN among them.
            codes = np.arange(2 ** min(row.bits, 16), dtype=np.uint64) << (
                row.bits - min(row.bits, 16)
            )
            row.round(codes.astype(f"u{row.dtype.itemsize}").view(row.dtype))
            row.ulp(values)
            row.decode(codes)
