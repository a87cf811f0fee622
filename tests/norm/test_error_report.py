# SPDX-License-Identifier: Apache-2.0
"""What is reported of errors: worked by hand, and against the slow definition."""

from __future__ import annotations

import json
import math
import tracemalloc
from dataclasses import fields, replace
from fractions import Fraction

import ml_dtypes
import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from slow_errors import SLOW, SlowTruth, differences, slow_errors

from precision_lab.exceptions import InputError
from precision_lab.norm.error_report import ErrorReport, errors
from precision_lab.norm.ground_truth import truth
from precision_lab.numbers.table import formats

BF16 = ml_dtypes.bfloat16
NAN, INF = math.nan, math.inf
LARGEST = Fraction(np.finfo(np.float64).max)


def given_truth(exact, dtype=np.float64):
    """A truth whose exact values are these: zeros normed to 0, and the values as the bias."""
    rows = np.asarray(exact, np.float64)
    assert rows.ndim == 1
    return truth("rms", np.zeros((1, rows.size), dtype), None, rows, eps=1.0)


def measured(actual, exact, dtype=BF16, **options):
    """Errors of one row of values of a type against exact values."""
    with np.errstate(over="ignore"):
        array = np.asarray([actual], np.float64).astype(np.float32).astype(dtype)
    return errors(array, given_truth(exact), **options)


def test_known_errors_in_bfloat16():
    """Worked by hand: an ulp of bfloat16 is 2^-7 at 1, 2^-6 at 2, 2^-8 just below 1."""
    report = measured([1.0, 2.0, -1.0, 0.5], [1 + 2**-9, 2 - 2**-8, -1 - 3 * 2**-7, 0.5])
    # 1 lies 1/4 ulp below its truth, 2 half an ulp above, −1 three above, 0.5 is right.
    assert (4, 1, 4, 0) == (report.count, report.rows, report.measured, report.out_of_range)
    assert (3.0, 0.25, 3.0) == (report.ulp_max, report.ulp_p50, report.ulp_p90)
    assert (-0.25 + 0.5 + 3) / 4 == report.bias
    assert (-0.25 + 0.5 - 3) / 4 == report.bias_signed
    assert (0.25 + 0.5 + 3) / 4 == report.ulp_mean
    assert 3 == report.kappa_max
    # 2 − 2^-8 lies midway between 255/128 and 2, whose significand is even.
    assert 0.75 == report.correctly_rounded
    relative = [2**-9 / (1 + 2**-9), 2**-8 / (2 - 2**-8), 3 * 2**-7 / (1 + 3 * 2**-7), 0]
    assert max(relative) == report.relative_max
    assert math.isclose(math.sqrt(sum(r * r for r in relative) / 4), report.relative_rms)
    assert 3 * 2**-7 == report.absolute_max
    assert ((0, 2), -1.0, -1 - 3 * 2**-7, 3.0) == (
        report.worst.index, report.worst.actual, report.worst.expected, report.worst.ulp,
    )  # fmt: skip


def test_the_distance_crosses_binades_by_ordinals():
    """From 1 − 2^-8 to 1 + 2^-7 in bfloat16 is one value and one more, though ulps differ."""
    report = measured([1 + 2**-7, 2.0**-126], [1 - 2**-8, 0.0])
    assert 2 == measured([1 + 2**-7], [1 - 2**-8]).ulp_max
    # The smallest normal value stands 128 subnormal steps from zero.
    assert 128 == report.ulp_max
    assert 128 == report.kappa_max
    assert 2.5 == measured([1 + 2**-7], [1 - 2**-8 - 2**-9]).ulp_max


def test_quantiles_are_order_statistics():
    """Of errors 0.001, 0.002 … 1 ulp, p50 is the 500th, p90 the 900th, and so on."""
    steps = np.arange(1, 1001) / 1024
    report = measured(np.ones(1000), 1 + steps * 2**-7)
    found = [report.ulp_p50, report.ulp_p90, report.ulp_p99, report.ulp_p999, report.ulp_max]
    assert [500 / 1024, 900 / 1024, 990 / 1024, 999 / 1024, 1000 / 1024] == found


def test_specials_are_counted_and_not_measured():
    """NaN, infinity and zero where the truth has none, each in its own count and rows."""
    exact = truth("rms", np.zeros((4, 2)), None, np.array([1.0, 3.0]), eps=1.0)
    actual = np.array([[INF, 3], [NAN, NAN], [0, 0], [0, 3]]).astype(BF16)
    report = errors(actual, exact)
    assert (1, 2, 3) == (report.inf, report.nan, report.zero)
    assert (1, 1, 1) == (report.rows_inf, report.rows_nan, report.rows_zero)
    assert (8, 5, 2 / 8) == (report.count, report.measured, report.correctly_rounded)
    assert ((0, 0), INF, INF) == (report.worst.index, report.worst.actual, report.worst.ulp)


def test_specials_that_the_truth_has_too_are_right():
    """A NaN row, an infinite one and a zero are correct where the truth is so."""
    x = np.array([[NAN, 1.0], [0.0, 0.0]])
    exact = truth("rms", x, np.array([1.0, 1.0]), eps=0.5)
    report = errors(np.array([[NAN, NAN], [0, -0.0]]).astype(BF16), exact)
    # The share is that of the two zeros: NaN is no truth to be measured against.
    assert 1.0 == report.correctly_rounded
    assert 0.5 == errors(np.array([[NAN, NAN], [0, 1]]).astype(BF16), exact).correctly_rounded
    lost = truth("rms", x[:1], eps=0.5)
    assert math.isnan(errors(np.array([[NAN, NAN]]).astype(BF16), lost).correctly_rounded)
    assert 2 == report.measured
    assert 0 == report.nan + report.zero + report.rows_nan + report.rows_zero
    assert 0.0 == report.worst.ulp
    # A number where the truth is NaN is as wrong as a NaN where it is a number.
    report = errors(np.array([[1, NAN], [0, 0]]).astype(BF16), exact)
    assert ((0, 0), INF) == (report.worst.index, report.worst.ulp)


def test_a_truth_past_the_largest_value_is_counted():
    """In float16 65,510 rounds to the largest, 70,000 to infinity: neither is measured."""
    values = [65504.0, INF, 65504.0, 1.0]
    report = measured(values, [65510.0, 70000.0, 70000.0, 1.0], np.float16)
    assert (3, 1) == (report.out_of_range, report.measured)
    assert (0.0, 1.0, 0, 0) == (report.ulp_max, report.correctly_rounded, report.inf, report.nan)
    # An infinity for what rounds to the largest value is one where the truth has none.
    assert 1 == measured([INF], [65510.0], np.float16).inf
    # E4M3FN has no infinity: its NaN stands past 464, and is right there alone.
    report = measured([NAN, NAN], [1000.0, 440.0], ml_dtypes.float8_e4m3fn)
    assert (1, 1, 1) == (report.out_of_range, report.nan, report.inf + report.nan)
    # Without NaN and infinity the largest value stands for what lies past it.
    report = measured([6.0, 6.0], [100.0, 6.0], ml_dtypes.float4_e2m1fn)
    assert (1, 1, 1.0) == (report.out_of_range, report.measured, report.correctly_rounded)


def test_every_field_sees_its_fault():
    """From a perfect output, one fault each moves the field that is there for it."""
    exact = np.linspace(1, 2, 1000, endpoint=False) + 2**-12
    perfect = formats["bfloat16"].round(exact)

    def with_fault(change, share=1.0):
        values = perfect.copy()
        some = slice(0, int(share * values.size))
        values[some] = change(values[some])
        return measured(values, exact)

    right = measured(perfect, exact)
    away = with_fault(lambda v: v + 2**-6)
    few = with_fault(lambda v: v + 2**-5, share=0.005)
    assert right.correctly_rounded == 1
    assert away.correctly_rounded == 0
    for name in ("ulp_max", "ulp_p50", "ulp_p90", "ulp_p99", "ulp_p999", "ulp_mean", "bias"):
        assert getattr(away, name) > getattr(right, name) + 0.9, name
    for name in ("relative_max", "relative_rms", "absolute_max"):
        assert getattr(away, name) > 1.5 * getattr(right, name), name
    assert (0, 2) == (right.kappa_max, away.kappa_max)
    # A fault in 0.5 % of elements shows in the largest and the last quantile, not before.
    assert few.ulp_p999 > 3
    assert few.ulp_p99 < 1
    specials = {
        "inf": (lambda v: v * INF, 1000), "nan": (lambda v: v * NAN, 1000),
        "zero": (lambda v: v * 0, 1000), "rows_inf": (lambda v: v * INF, 1),
        "rows_nan": (lambda v: v * NAN, 1), "rows_zero": (lambda v: v * 0, 1),
    }  # fmt: skip
    for name, (change, expected) in specials.items():
        assert 0 == getattr(right, name)
        assert expected == getattr(with_fault(change), name), name
    assert 0 == right.out_of_range
    assert 0 == with_fault(lambda v: v * 0, share=0.5).rows_zero


def test_truncation_shows_in_the_signed_bias_alone():
    """Truncated bfloat16 outputs have a bias near 0 and a signed bias near −1/2."""
    rng = np.random.default_rng(3)
    x = formats["bfloat16"].cast(rng.standard_normal((16, 1024)))
    gain = formats["bfloat16"].cast(1 + 0.1 * rng.standard_normal(1024))
    exact = truth("rms", x, gain, eps=1e-6)
    truncated = formats["bfloat16"].cast(exact.value, mode="toward_zero")
    report = errors(truncated, exact)
    assert abs(report.bias) < 0.02
    assert abs(report.bias_signed + 0.5) < 0.02
    rounded = errors(exact.round("bfloat16"), exact)
    assert abs(rounded.bias_signed) < 0.02
    assert (1.0, 0) == (rounded.correctly_rounded, rounded.kappa_max)
    assert rounded.ulp_max <= 0.5


@pytest.mark.parametrize("name", [name for name in formats if name != "float8_e8m0fnu"])
def test_the_correct_rounding_is_within_half_an_ulp_in_every_format(name):
    """Measured in its own format, the correctly rounded output is within half an ulp."""
    rng = np.random.default_rng(4)
    x = formats["float32"].cast(rng.standard_normal((4, 64)))
    exact = truth("layer", x, eps=1e-5)
    report = errors(exact.round(name), exact, format=name)
    assert 0.25 < report.ulp_max <= 0.5
    assert (1.0, 0, name) == (report.correctly_rounded, report.kappa_max, report.format)


def test_float64_is_measured_with_the_low_part_of_the_truth():
    """Float64 outputs are held to more than float64: half an ulp is told from a whole one."""
    rng = np.random.default_rng(5)
    exact = truth("rms", rng.standard_normal((4, 100)), eps=1e-6)
    right = exact.round("float64")
    assert 0.4 < errors(right, exact).ulp_max <= 0.5
    report = errors(np.nextafter(right, np.inf), exact)
    assert (1, 0.0) == (report.kappa_max, report.correctly_rounded)
    assert 0.9 < report.bias < 1.1
    assert report.worst.exact == report.worst.expected


def test_the_rest_is_asked_for_only_where_the_format_sees_it():
    """Not for a bound of 2^-14 ulp, but for a wider one, at any element."""
    asked = []

    class Probe(SlowTruth):
        """A truth that notes when the rest of it is read."""

        def __getattribute__(self, name):
            if name == "rest" and "radius" in self.__dict__:
                asked.append(name)
            return super().__getattribute__(name)

    exact = Probe([Fraction(1), Fraction(1)])
    for radius, expected in ((2.0**-21, 0), (2.0**-20, 1)):
        exact.radius = np.array([[0.0, radius]])
        errors(np.ones((1, 2), BF16), exact)
        assert expected == len(asked)


def test_float64_is_measured_among_its_subnormals_and_past_its_range():
    """Truths far below the smallest float64 and above the largest have their own distance."""
    exact = truth("rms", [[3.0, 1.0]], [1.0, 5e-324], eps=0.0)
    report = errors(exact.round("float64"), exact)
    assert math.isclose(1 / math.sqrt(5), report.ulp_max, rel_tol=1e-15)
    assert (1.0, 1.0) == (report.correctly_rounded, report.relative_max)
    report = errors(np.array([[3 / math.sqrt(5), 5e-324]]), exact)
    assert math.isclose(1 - 1 / math.sqrt(5), report.ulp_max, rel_tol=1e-15)
    assert math.isclose(math.sqrt(5) - 1, report.relative_max, rel_tol=1e-15)
    past = truth("rms", [[1.0, 0, 0, 0]], [1.7e308, 1, 1, 1], eps=0.0)
    for output, infinities in (([[np.inf, 0, 0, 0]], 0), ([[1.7e308, 0, 0, 0]], 0)):
        report = errors(np.array(output), past)
        assert (1, 3, infinities) == (report.out_of_range, report.measured, report.inf)


@settings(max_examples=40)
@given(st.lists(st.integers(0, 2**20), min_size=2, max_size=5), st.integers(-1074, 1020))
@example([1, 0], -1074)
@example([1, 2], 1020)
def test_the_rest_of_a_truth_is_exact_at_any_size(row, power):
    """value + rest ulp is the exact value to 2^-60, or 2^-52 of a subnormal rest, by mpmath."""
    gain = [math.ldexp(1 + 1 / (3 + i), power) for i in range(len(row))]
    exact = truth("rms", np.array([row], np.float64), gain, eps=1.0)
    with mpmath.workprec(400):
        root = mpmath.sqrt(mpmath.mpf(sum(x * x for x in row)) / len(row) + 1)
        for x, g, value, rest in zip(row, gain, exact.value[0], exact.rest[0], strict=True):
            wanted = x * mpmath.mpf(g) / root
            ulp = mpmath.mpf(math.ulp(float(value)))
            away = abs(mpmath.mpf(float(value)) + mpmath.mpf(float(rest)) * ulp - wanted)
            allowed = max(abs(wanted) * mpmath.mpf(2) ** -8, abs(float(rest)) * ulp)
            assert away <= allowed * mpmath.mpf(2) ** -52


def test_ordinals_of_float64_may_lie_farther_apart_than_an_int64_holds():
    """From −1.8e308 to 1.8e308 are 2^64 − 2^53 − 2 steps, counted without overflow."""
    largest = formats["float64"].largest
    report = errors(np.array([[-largest]]), given_truth([largest]))
    assert 2**64 - 2**53 - 2 == report.kappa_max
    assert float(2**64 - 2**53 - 2) == report.ulp_max
    assert 2.0 == report.relative_max


def test_tf32_is_measured_in_its_own_ulp():
    """A float32 array that holds tf32 values is measured as such on request, and only then."""
    values = np.array([[1.0, 1 + 2.0**-10]], np.float32)
    exact = given_truth([1 + 2.0**-11, 1 + 2.0**-10])
    assert 0.5 == errors(values, exact, format="tf32").ulp_max
    assert 2.0**12 == errors(values, exact).ulp_max
    with pytest.raises(InputError, match=r"1\.00000011920.* no value of tf32"):
        errors(np.array([[1 + 2.0**-23, 1]], np.float32), exact, format="tf32")
    with pytest.raises(InputError, match="float64 is not in tf32: give float32"):
        errors(values.astype(np.float64), exact, format="tf32")


def test_no_rows_and_single_rows():
    """0 rows give counts of 0 and NaN for the rest; one row may come without its axis."""
    report = errors(np.zeros((0, 3), BF16), truth("rms", np.zeros((0, 3), BF16), eps=1.0))
    assert (0, 0, 0, None) == (report.count, report.rows, report.kappa_max, report.worst)
    assert math.isnan(report.ulp_max)
    assert math.isnan(report.correctly_rounded)
    report = errors(np.ones(3, BF16), truth("rms", np.ones(3, BF16), eps=0.0))
    assert (3, 1, 0.0, (0,)) == (report.count, report.rows, report.ulp_max, report.worst.index)


def test_outputs_that_do_not_fit_are_refused():
    """A shape that differs and a type that is no format's are InputErrors that say so."""
    exact = given_truth([1.0, 2.0])
    with pytest.raises(InputError, match=r"shape \(2,\), but the truth \(1, 2\)"):
        errors(np.ones(2, BF16), exact)
    with pytest.raises(InputError, match="unknown array type 'int32'"):
        errors(np.ones((1, 2), np.int32), exact)
    with pytest.raises(InputError, match="unknown format 'bf61'"):
        errors(np.ones((1, 2), BF16), exact, format="bf61")


def test_the_record_as_a_dictionary():
    """Every field, those of the worst element by name, all of it plain and fit for JSON."""
    found = measured([1.0], [1 + 2**-9]).to_dict()
    names = [item.name for item in fields(ErrorReport) if item.name != "worst"]
    worst = [f"worst_{part}" for part in ("index", "actual", "expected", "exact", "ulp")]
    assert names + worst == list(found)
    assert {"worst_index": [0, 0], "worst_ulp": -0.25}.items() <= json.loads(
        json.dumps(found)
    ).items()
    empty = errors(np.zeros((0, 3), BF16), truth("rms", np.zeros((0, 3), BF16), eps=1.0))
    assert found.keys() == empty.to_dict().keys()
    assert empty.to_dict()["worst_index"] is None


def test_memory_stays_within_eight_times_the_output_in_float64():
    """On bfloat16 [256, 4096] truth and errors together need less than 8 float64 copies."""
    rng = np.random.default_rng(6)
    x = formats["bfloat16"].cast(rng.standard_normal((256, 4096)).astype(np.float32))
    y = x.copy()
    tracemalloc.start()
    errors(y, truth("rms", x, eps=1e-6))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 8 * x.size


@st.composite
def outputs(draw):
    """A format, values of it, and exact values: near them, anywhere, or special."""
    name = draw(st.sampled_from(SLOW))
    format = formats[name]
    top = int(format.ordinal(format.largest))
    values, exact = [], []
    for _ in range(draw(st.integers(1, 6))):
        code = draw(st.integers(0, 2**format.bits - 1) | st.integers(0, 9))
        y = float(np.array([code], f"u{format.dtype.itemsize}").view(format.dtype)[0])
        near = Fraction(y if math.isfinite(y) else format.largest)
        ulp = Fraction(float(format.ulp(float(near))))
        kind = draw(st.sampled_from(["near", "near", "anywhere", "special"]))
        if kind == "near":
            t = near + ulp * Fraction(draw(st.integers(-24, 24)), 8)
            t += ulp * Fraction(draw(st.integers(-3, 3)), 2 ** draw(st.integers(20, 60)))
        elif kind == "anywhere":
            place = draw(st.integers(-top if format.signed else 1, top))
            t = Fraction(float(format.from_ordinal(place))) * draw(st.sampled_from([1, 3]))
        else:
            t = draw(
                st.sampled_from([NAN, INF, -INF, Fraction(0)] if format.nan else [Fraction(0)])
            )
        # The stand-in holds a truth in two float64: keep what those can.
        if isinstance(t, Fraction):
            t = Fraction(0) if abs(t) >= Fraction(2) ** 1023 else t
            high, unit = Fraction(float(t)), Fraction(math.ulp(float(t)))
            t = high + Fraction(float((t - high) / unit)) * unit
        values.append(y)
        exact.append(t)
    return name, values, exact


@given(outputs())
def test_every_field_is_that_of_the_slow_definition(drawn):
    """In every format, on any codes and truths, specials and ends of the range included."""
    name, values, exact = drawn
    format = formats[name]
    with np.errstate(invalid="ignore"):
        array = np.array([values], np.float64)
        array = array if name == "float64" else array.astype(np.float32).astype(format.dtype)
    report = errors(array, SlowTruth(exact))
    assert [] == differences(report, slow_errors(name, values, exact), scale=1e-9)


def test_the_comparison_with_the_slow_definition_can_fail():
    """A report with any one field changed differs from the slow one in that field."""
    values, exact = [1.0, 2.0], [Fraction(1) + Fraction(1, 2**9), Fraction(2)]
    report = measured(values, [float(t) for t in exact])
    slow = slow_errors("bfloat16", values, exact)
    assert [] == differences(report, slow, scale=1e-9)
    for name in set(slow) - {"worst"}:
        changed = replace(report, **{name: getattr(report, name) + 1})
        assert [name] == differences(changed, slow, scale=1e-9)
    changed = replace(report, worst=replace(report.worst, ulp=9.0))
    assert ["worst"] == differences(changed, slow, scale=1e-9)
    assert {"format", "bias", "worst"} == {item.name for item in fields(ErrorReport)} - (
        set(slow) - {"worst"}
    )
