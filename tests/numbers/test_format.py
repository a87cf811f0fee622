# SPDX-License-Identifier: Apache-2.0
"""Number formats: values, codes, ordinals and ulp, against ml_dtypes, gfloat and fractions."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest
from conftest import optional
from hypothesis import given
from hypothesis import strategies as st

from precision_lab.exceptions import InputError
from precision_lab.numbers.table import BY_DTYPE, format_of, formats

LISTED = [row for row in formats.values() if row.bits <= 16]
HELD = [row for row in formats.values() if row.dtype_name == ""]
SIGNED = [row for row in formats.values() if row.signed]


def named(rows):
    """Parametrize over formats, by their names."""
    return pytest.mark.parametrize("row", rows, ids=lambda row: row.name)


def codes_of(row):
    """All codes of a format of at most 16 bits, as it is stored."""
    kind = np.uint8 if row.bits <= 8 else np.uint16
    return np.arange(2**row.bits, dtype=kind)


def same(left, right):
    """Whether two arrays hold the same values, NaN for NaN, signs of zeros counted."""
    left, right = np.asarray(left, np.float64), np.asarray(right, np.float64)
    both = np.isnan(left) & np.isnan(right)
    return bool(np.all(both | ((left == right) & (np.signbit(left) == np.signbit(right)))))


def test_the_comparison_can_fail():
    """Another value, another sign of zero, and NaN against a number are told apart."""
    assert same([1, np.nan, -0.0], [1, np.nan, -0.0])
    assert not same([1.0], [np.nextafter(1, 2)])
    assert not same([0.0], [-0.0])
    assert not same([np.nan], [1.0])
    assert not same([np.inf], [-np.inf])


# Values and codes


@named(LISTED)
def test_all_codes_mean_what_ml_dtypes_says(row):
    """Every code of every format of 16 bits or fewer decodes to ml_dtypes' value."""
    codes = codes_of(row)
    with np.errstate(invalid="ignore"):
        theirs = codes.view(row.dtype).astype(np.float64)
    assert same(theirs, row.decode(codes))


@named(LISTED)
def test_all_codes_mean_what_gfloat_says(row):
    """Every code of every format of 16 bits or fewer decodes to gfloat's value."""
    optional("gfloat")
    from gfloat import decode_ndarray

    from precision_lab.numbers.conformance.libraries import gfloat_info

    codes = codes_of(row)
    theirs = decode_ndarray(gfloat_info(row.name), codes.astype(np.int64))
    assert same(theirs, row.decode(codes))


@pytest.mark.parametrize(
    ("row", "theirs"),
    [
        ("float16", "binary16"),
        ("bfloat16", "bfloat16"),
        ("float32", "binary32"),
        ("float64", "binary64"),
        ("float8_e4m3fn", "ocp_e4m3"),
        ("float8_e5m2", "ocp_e5m2"),
        ("float8_e8m0fnu", "ocp_e8m0"),
        ("float6_e2m3fn", "ocp_e2m3"),
        ("float6_e3m2fn", "ocp_e3m2"),
        ("float4_e2m1fn", "ocp_e2m1"),
    ],
)
def test_rows_state_the_facts_of_gfloats_own_rows(row, theirs):
    """What follows from our facts for gfloat is what gfloat's table says itself."""
    optional("gfloat")
    from gfloat import formats as gfloat_formats

    from precision_lab.numbers.conformance.libraries import gfloat_info

    ours = vars(gfloat_info(row)) | {"name": ""}
    assert vars(getattr(gfloat_formats, f"format_info_{theirs}")) | {"name": ""} == ours


@named([row for row in HELD if row.bits > 16])
def test_decode_agrees_with_numpy_on_wide_codes(row):
    """Random and special codes of float32 and float64 decode to NumPy's values."""
    kind = np.dtype(f"u{row.bits // 8}").type
    codes = np.random.default_rng(1).integers(0, 2**row.bits, 10_000, dtype=kind)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, row.largest, row.smallest], row.dtype)
    codes = np.concatenate([codes, special.view(kind)])
    with np.errstate(invalid="ignore"):
        assert same(codes.view(row.dtype).astype(np.float64), row.decode(codes))


def test_tf32_codes_are_those_of_float32_with_13_bits_empty():
    """tf32 is held in float32: a code with empty last bits has float32's value."""
    codes = np.random.default_rng(2).integers(0, 2**19, 10_000).astype(np.uint32) << 13
    with np.errstate(invalid="ignore"):
        assert same(codes.view(np.float32).astype(np.float64), formats["tf32"].decode(codes))


@named(HELD)
def test_limits_are_those_of_finfo(row):
    """Largest, tiny, smallest and epsilon are what finfo of ml_dtypes and NumPy says."""
    theirs = ml_dtypes.finfo(row.dtype)
    expected = {
        "largest": float(theirs.max),
        "tiny": float(theirs.smallest_normal),
        "smallest": float(theirs.smallest_subnormal),
        "epsilon": float(theirs.eps),
        "bits": theirs.bits,
    }
    if row.name == "float8_e8m0fnu":
        # Its finfo names 2^-127 the smallest normal and gives no subnormal of meaning.
        expected["smallest"] = expected["tiny"]
    assert expected == {name: getattr(row, name) for name in expected}


@named(LISTED)
def test_values_are_the_finite_codes_in_order(row):
    """`values` lists every finite value once, rising, with one zero."""
    decoded = row.decode(codes_of(row))
    finite = np.unique(decoded[np.isfinite(decoded)])
    assert same(finite + 0.0, row.values() + 0.0)
    assert finite[-1] == row.largest
    assert finite[finite > 0][0] == row.smallest


def test_values_of_wide_formats_are_refused():
    """Formats past 16 bits are not listed."""
    with pytest.raises(InputError, match="too many values"):
        formats["float32"].values()


def test_numbers_alone_give_arrays_without_an_axis():
    """Of one number every question is answered by an array of no axis."""
    row = formats["bfloat16"]
    answers = {
        "ordinal": row.ordinal(1.0), "from_ordinal": row.from_ordinal(5), "ulp": row.ulp(1.0),
        "distance": row.distance(1.0, 1.5), "decode": row.decode(3), "round": row.round(1.1),
        "cast": row.cast(1.1),
    }  # fmt: skip
    for name, answer in answers.items():
        assert (type(answer), answer.shape) == (np.ndarray, ()), name


def test_an_array_in_the_other_byte_order():
    """It is told so, by the name of the type that it would have here."""
    turned = np.zeros(1, np.dtype(np.float32).newbyteorder())
    with pytest.raises(InputError, match=r"is [<>]f4, in the other byte order: give float32$"):
        format_of(turned)


def test_a_format_of_an_array_is_found_by_its_type():
    """`format_of` finds each type's format and names the nearest for others."""
    assert list(BY_DTYPE.values()) == [format_of(np.zeros(1, row.dtype)) for row in HELD]
    with pytest.raises(InputError, match="unknown array type 'int32'"):
        format_of(np.zeros(1, np.int32))


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("fp64", "float64"),
        ("fp32", "float32"),
        ("fp16", "float16"),
        ("bf16", "bfloat16"),
        ("e4m3", "float8_e4m3"),
        ("e4m3fn", "float8_e4m3fn"),
        ("e5m2fnuz", "float8_e5m2fnuz"),
        ("e8m0fnu", "float8_e8m0fnu"),
        ("e2m1fn", "float4_e2m1fn"),
    ],
)
def test_aliases(alias, name):
    """The short names find their rows."""
    assert formats[name] is formats[alias]


def test_an_unknown_format_names_the_nearest():
    """A misspelt format's error names the nearest rows."""
    with pytest.raises(InputError, match="unknown format 'bf61': the nearest are bf16"):
        formats["bf61"]


# Ordinals, ulp, distance


@named(LISTED)
def test_ordinals_count_the_values(row):
    """Neighbours are one apart, zero has 0, and -v has minus the ordinal of v."""
    values = row.values()
    ordinals = row.ordinal(values)
    assert set(np.diff(ordinals)) == {1}
    assert same(values + 0.0, row.from_ordinal(ordinals) + 0.0)
    if row.signed:
        assert (ordinals == -ordinals[::-1]).all()
        assert row.ordinal(0.0) == row.ordinal(-0.0) == 0


@named([row for row in SIGNED if row.bits > 16])
def test_ordinals_of_wide_formats_go_there_and_back(row):
    """Random ordinals give values of the format that lie there, ends and zero among them."""
    top = int(row.ordinal(row.largest))
    places = np.random.default_rng(3).integers(-top, top, 10_000, endpoint=True)
    places = np.concatenate([places, [-top, -1, 0, 1, top]])
    values = row.from_ordinal(places)
    assert (places == row.ordinal(values)).all()
    assert same(values, row.round(values))
    assert (np.diff(row.from_ordinal(np.sort(places))) >= 0).all()


@named(LISTED)
def test_ulp_is_the_gap_to_the_next_value_away_from_zero(row):
    """At every value the ulp is the distance to the next larger magnitude, which none exceeds."""
    values = row.values()
    values = values[values >= 0]
    gaps = np.append(np.diff(values), 2 * (row.overflow_edge - row.largest))
    assert (gaps == row.ulp(values)).all()
    assert (row.ulp(values) == row.ulp(-values)).all()
    assert np.isnan(row.ulp([np.inf, np.nan])).all()


def reach(row, exact):
    """The ordinal of a real number, extended linearly between neighbours: by fractions."""
    if exact < 0:
        return -reach(row, -exact)
    quantum = Fraction(2) ** row.quantum_exponent
    binade, size = 0, Fraction(2) ** row.emin * 2
    while exact >= size:
        binade, size = binade + 1, size * 2
    step = quantum * 2**binade
    return exact / step + binade * 2 ** (row.precision - 1)


near_values = st.floats(-3, 3) | st.sampled_from([0.0, 0.25, 0.5, 1.0, -1.0, 2.0, -2.0])


@named(SIGNED)
@given(place=st.floats(-1, 1), exact=near_values, part=st.floats(-0.5, 0.5))
def test_distance_is_that_of_ordinals_extended_linearly(row, place, exact, part):
    """The distance in ulp of a value from a real number is exact to float64's own rounding."""
    top = int(row.ordinal(min(row.largest, 4.0)))
    actual = float(row.from_ordinal(round(place * top)))
    low = part * float(np.spacing(abs(exact)))
    low = low if abs(low) > 1e-300 else 0.0
    expected = reach(row, Fraction(actual)) - reach(row, Fraction(exact) + Fraction(low))
    found = float(row.distance(actual, exact, low))
    assert abs(Fraction(found) - expected) <= abs(expected) / 2**50 + Fraction(1, 2**50)


@named(SIGNED)
def test_distance_is_whole_between_values_and_half_at_midpoints(row):
    """One value lies one ulp from the next, and half an ulp from the midpoint between."""
    below, above = row.from_ordinal(int(row.ordinal(1.0)) + np.arange(2))
    half = (above - below) / 2
    assert row.distance(above, below) == 1
    assert row.distance(below, above) == -1
    assert row.distance(below, below, half) == row.distance(-above, -above, half) == -0.5
    assert row.distance(above, below, half) == row.distance(-below, -above, half) == 0.5
    assert row.distance(row.largest, -row.largest) == 2 * float(row.ordinal(row.largest))
    # Just below a power of two the ulp is half that above it.
    assert row.distance(2.0, 2.0, -row.epsilon / 4) == 0.25
    assert row.distance(2.0, 2.0, row.epsilon / 4) == -0.125


def test_distance_past_the_largest_value_goes_on():
    """Past the largest value the ulp goes on doubling, so that an overflow has a size."""
    row = formats["float8_e4m3"]
    assert row.distance(row.largest, row.overflow_edge) == -0.5
    assert row.distance(row.largest, 512.0) == -9


def test_reach_can_tell_a_wrong_distance():
    """The fractions that distances are held to differ by one from neighbour to neighbour only."""
    row = formats["float8_e4m3fn"]
    values = [Fraction(value) for value in row.values()]
    assert {reach(row, b) - reach(row, a) for a, b in pairwise(values)} == {1}
    assert reach(row, Fraction(3, 2)) != reach(row, Fraction(25, 16))


# Casting


@named(HELD)
def test_every_value_survives_a_cast(row):
    """Casting a format's own values to its type loses nothing, signs of zeros included."""
    if row.bits <= 16:
        values = row.decode(codes_of(row))
        values = values[np.isfinite(values)]
    else:
        values = row.from_ordinal(np.random.default_rng(4).integers(-(2**30), 2**30, 1000))
    cast = row.cast(values)
    assert row.dtype == cast.dtype
    assert same(values, cast.astype(np.float64))
    assert same(values, row.decode(cast.view(f"u{row.dtype.itemsize}")))


@named(HELD)
def test_cast_holds_what_round_gives(row):
    """`cast` is `round` in the format's type, in every mode and policy."""
    rng = np.random.default_rng(5)
    values = rng.standard_normal(500) * 2.0 ** rng.integers(-12, 12, 500)
    for mode in ("nearest_even", "toward_zero", "up", "to_odd"):
        # Saturating keeps NaN out of the formats that have none.
        values = values if row.signed else abs(values)
        rounded = row.round(values, mode=mode, overflow="saturate")
        cast = row.cast(values, mode=mode, overflow="saturate")
        assert same(rounded, cast.astype(np.float64))


@pytest.mark.parametrize("name", ["float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"])
def test_cast_refuses_nan_where_the_format_has_no_code(name):
    """NaN, and an overflow without infinity, cannot be held: one sentence, with the value."""
    row = formats[name]
    for value, shown in ((np.nan, "nan"), (1e6, r"1e\+06"), (-np.inf, "-inf")):
        with pytest.raises(InputError, match=f"^{name} has neither NaN nor infinity.*{shown}"):
            row.cast([0.5, value])
    assert row.cast([1e6, -np.inf], overflow="saturate").astype(float).tolist() == [
        row.largest,
        -row.largest,
    ]
    with pytest.raises(InputError, match="neither NaN"):
        row.cast(np.nan, overflow="saturate")


@named([row for row in HELD if row.nan])
def test_cast_keeps_nan_where_the_format_has_it(row):
    """NaN is cast to a NaN."""
    assert np.isnan(row.cast([np.nan, -np.nan]).astype(np.float64)).all()


def test_switched_formats_keep_their_name_and_differ_in_the_switch():
    """`flushed` and `unbounded` are the same format with one switch changed."""
    row = formats["float16"]
    assert row.flushed == dataclasses.replace(row, subnormals=False)
    assert row.unbounded == dataclasses.replace(row, bounded=False)
    assert row.smallest < row.flushed.smallest == row.tiny
    assert row.flushed.values().size == row.values().size - 2 * (2**10 - 1)
