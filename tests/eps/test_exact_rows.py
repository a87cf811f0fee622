# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from eps_harms import Case, departs_in, lost_in, rows_of, side
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from precision_lab import InputError, formats, plans
from precision_lab.eps.advice import recommend_eps
from precision_lab.eps.departures import Departures
from precision_lab.eps.evidence import (
    assumed_evidence,
    check_range,
    describe_evidence,
    recorded_evidence,
)
from precision_lab.eps.exact_rows import ExactRow, exact_deviations, exact_row
from precision_lab.eps.interval import Bound, safe_interval
from precision_lab.eps.lost_rows import Losses
from precision_lab.eps.representable import effective_eps, eps_grid

PLACES = ("inside", "outside", "outside_root", "both", "max", "sum", "missing")
TYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16,
         "float8_e4m3fn": ml_dtypes.float8_e4m3fn}  # fmt: skip


def departures(case, plan):
    """The code under test for a case."""
    evidence = recorded_evidence(
        "norm", case.norm, case.x[:-1], case.weight, case.bias, format=case.format,
        offset=case.offset,
    )  # fmt: skip
    settled = plan.formats_for(case.format, case.format)
    output = formats[settled.output_format]
    return evidence, Departures(evidence, settled, eps=case.eps, output=output), settled


def case_of(norm, format, rows, *, eps, weight=None, bias=None, offset=0.0, plan="all-low"):
    """Rows and parameters in a format, a row of zeros added."""
    kind = TYPES[format]
    x = np.concatenate([rows, np.zeros((1, rows.shape[1]), rows.dtype)]).astype(kind)
    held = [None if part is None else np.asarray(part, kind) for part in (weight, bias)]
    return Case(norm, x, held[0], held[1], format, plan, eps, offset)


@st.composite
def drawn(draw):
    """A few small rows of bit patterns, with gain and bias, a plan's place of eps and two eps."""
    format = draw(st.sampled_from(["float16", "bfloat16"]))
    shape = (2, draw(st.integers(1, 5)))
    codes = st.integers(0, 2**16 - 1)

    def values(count):
        found = np.array(draw(st.lists(codes, min_size=count, max_size=count)), np.uint16)
        with np.errstate(invalid="ignore"):
            found = found.view(TYPES[format]).astype(np.float64)
        limit = draw(st.sampled_from([1e-3, 1.0, 300.0, 1e30]))
        return np.where(np.isfinite(found) & (np.abs(found) <= limit), found, 0.5)

    rows = values(shape[0] * shape[1]).reshape(shape)
    weight = draw(st.sampled_from([None, 1])) and values(shape[1])
    bias = draw(st.sampled_from([None, 1])) and values(shape[1])
    norm = draw(st.sampled_from(["rms", "layer"]))
    c = draw(st.sampled_from([0.0, 1e-12, 1e-6, 1e-5, 1e-3, 0.25]))
    offset = draw(st.sampled_from([0.0, 1.0]))
    place = draw(st.sampled_from(PLACES))
    other = draw(st.floats(0, 1)) * draw(st.sampled_from([1e-12, 1e-6, 1e-4, 1.0, 100.0]))
    case = case_of(norm, format, rows, eps=c, weight=weight, bias=bias, offset=offset)
    return case, place, other


@settings(max_examples=150, deadline=None)
@given(drawn())
def test_a_row_departs_where_integers_say_so(found):
    """For rows of any bit patterns, wherever the plan adds eps, too low or too high."""
    case, place, other = found
    plan = plans["all-low"].replace(eps_place=place)
    _, moved, settled = departures(case, plan)
    e = float(eps_grid(settled).round(other))
    assume(np.isfinite(e))
    sides = [side(case, row, e, place) for row in rows_of(case)]
    assume(None not in sides)
    assert (-1 in sides, 1 in sides) == (moved.low(other), moved.high(other))


@settings(max_examples=60, deadline=None)
@given(drawn())
def test_the_ends_by_bisection_are_the_ends_of_what_is_harmless(found):
    """Beside each end of the departures' interval stands a value at which integers see one."""
    case, place, _ = found
    plan = plans["all-low"].replace(eps_place=place)
    _, moved, settled = departures(case, plan)
    grid = eps_grid(settled)
    ends = safe_interval(grid, [Bound("low", moved.low)], [Bound("high", moved.high)])
    rows = rows_of(case)

    def sides(at):
        answers = {side(case, row, float(grid.round(grid.value(at))), place) for row in rows}
        assume(None not in answers)
        return answers

    if ends.empty:
        return
    assert {0} == sides(ends.lo) == sides(ends.hi)
    if ends.lo:
        assert -1 in sides(ends.lo - 1)
    if ends.hi < grid.top:
        assert 1 in sides(ends.hi + 1)


ROWS = np.array([[1.5, -0.25, 3.0, 0.125], [0.01, 0.02, -0.03, 0.001], [1e-4, 0, 0, -2e-4]])


def wrong(expected, actual):
    """Places at which two lists of answers differ."""
    return [k for k, (a, b) in enumerate(zip(expected, actual, strict=True)) if a != b]


@pytest.mark.parametrize("norm", ["rms", "layer"])
def test_every_value_of_float16_is_judged_as_integers_judge_it(norm):
    """All values from 0 up, on three small rows with gain and bias: who departs, and to where."""
    bias = None if norm == "rms" else [0.1, -0.2, 0.0, 0.3]
    case = case_of(norm, "float16", ROWS, eps=1e-4, weight=[1.0, 0.5, 2.0, -1.5], bias=bias)
    _, moved, settled = departures(case, plans["all-low"])
    grid = eps_grid(settled)
    rows = rows_of(case)
    places = range(0, grid.top + 1, 1)
    # Far from the ends all answers are alike; near them every value is asked, beyond every 16th.
    ends = safe_interval(grid, [Bound("low", moved.low)], [Bound("high", moved.high)])
    assert not ends.empty
    asked = [k for k in places
             if k % 16 == 0 or min(abs(k - ends.lo), abs(k - ends.hi)) < 600]  # fmt: skip
    expected, actual = [], []
    for place in asked:
        eps = grid.value(place)
        sides = [side(case, row, eps) for row in rows]
        assert None not in sides
        expected.append((-1 in sides, 1 in sides))
        actual.append((moved.low(eps), moved.high(eps)))
    assert [] == wrong(expected, actual)
    assert wrong(expected, [*actual[1:], actual[0]])


@pytest.mark.parametrize("plan", ["all-low", "late"])
@pytest.mark.parametrize("format", ["float8_e4m3fn", "float16"])
def test_every_value_is_safe_or_not_as_the_emulated_plan_says(format, plan):
    """Exhaustively in float8, and at every 97th value of float16: NaN and infinity in any row."""
    case = case_of("rms", format, ROWS, eps=1e-4, weight=[1.0, 0.5, 2.0, -1.5], plan=plan)
    evidence, _, settled = departures(case, plans[plan])
    losses = Losses(evidence, plans[plan], reference=case.eps)
    grid = eps_grid(settled)
    own = formats[format]
    values = own.values()
    values = values[values >= 0]
    if format == "float16":
        values = np.unique(np.concatenate([values[:40], values[::97]]))
    expected = [bool(len(lost_in(case, eps))) for eps in values.tolist()]
    actual = []
    for eps in values.tolist():
        found = losses.lost(float(eps))
        actual.append(bool(found.low.any()) or bool(found.high.any() and not np.isfinite(
            own.round(grid.round(eps) + losses.evidence.squares().max()))))  # fmt: skip
    assert [] == wrong(expected, actual)


@pytest.mark.parametrize("plan", ["hf-llama", "late", "all-low"])
@pytest.mark.parametrize("format", ["bfloat16", "float16"])
def test_assumed_rows_bound_eps_by_their_least_size(format, plan):
    """At each end the least row's outputs move by at most half an ulp, beyond by more."""
    advice = recommend_eps(
        norm="rms", hidden_size=64, eps=1e-5, format=format, plan=plan, rms=(0.1, 4.0)
    )
    square, c = Fraction(0.1) ** 2, Fraction(1e-5)
    share = Fraction(1, 2 ** (formats[format].precision + 1))
    adding = formats[advice.adding_format]

    def departs(eps):
        ratio = (square + c) / (square + Fraction(eps))
        return ratio > (1 + share) ** 2 or ratio < (1 - share) ** 2

    lo, hi = advice.interval
    above = float(adding.from_ordinal(adding.ordinal(hi) + 1))
    below = float(adding.from_ordinal(adding.ordinal(lo) - 1))
    assert (False, True) == (departs(hi), departs(above))
    assert not departs(lo)
    assert departs(below) or (below == 0 and advice.lo_breaks == "vanishes")


def test_real_rows_of_an_assumed_size_never_depart_within_the_interval():
    """What holds for any elements of that size holds for normal ones."""
    advice = recommend_eps(
        norm="rms", hidden_size=64, eps=1e-5, format="float16", plan="late", rms=(0.1, 4.0)
    )
    rows = assumed_evidence("norm", "rms", 64, format="float16", sizes=(0.1, 4.0))
    case = Case("rms", rows.x, None, None, "float16", "late", 1e-5)
    assert [[], []] == [departs_in(case, eps).tolist() for eps in advice.interval]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-1e10, 1e10), min_size=1, max_size=6), st.booleans())
@example([0.0, 5e-324], True)
def test_deviations_are_exact(values, centred):
    """Integers times their unit are the values, or what is left of them without their mean."""
    integers, unit = exact_deviations(np.array(values), centred=centred)
    x = [Fraction(value) for value in values]
    mean = sum(x) / len(x) if centred else 0
    assert [value - mean for value in x] == [value * unit for value in integers]


def test_a_tie_is_no_departure():
    """Where outputs move by exactly half an ulp nothing departs; by a little more it does."""
    # ms + c = 1 and ms + e = 4/9: r goes from 1 to 3/2.
    row = ExactRow(Fraction(1, 3), Fraction(1), 4, move=Fraction(1, 2))
    tie = Fraction(1, 9)
    assert not row._compare_rationals(row.square + tie, low=True)
    assert row._compare_rationals(row.square + tie - Fraction(1, 10**30), low=True)
    high = ExactRow(Fraction(1, 3), Fraction(1), 4, move=Fraction(1, 3))
    edge = Fraction(9, 4)
    assert not high._compare_rationals(edge, low=False)
    assert high._compare_rationals(edge + Fraction(1, 10**30), low=False)


def test_a_tie_with_eps_outside_the_root_is_no_departure():
    """x = 255u and eps = u: 1 becomes 255/256, half an ulp of bfloat16 off; with 2u it is more."""
    unit = 2.0**-133
    case = case_of("rms", "bfloat16", np.array([[255 * unit]]), eps=0.0)
    plan = plans["all-low"].replace(eps_place="outside")
    _, moved, _ = departures(case, plan)
    assert (False, True) == (moved.high(unit), moved.high(2 * unit))


def test_a_constant_row_of_a_layer_norm_never_departs():
    """float64 sees deviations where there are none; the exact row does not."""
    x = np.full((1, 3), 0.1, np.float16)
    case = case_of("layer", "float16", x, eps=1e-5)
    _, moved, _ = departures(case, plans["late"])
    assert (False, False) == (moved.low(0.0), moved.high(1.0))
    row = exact_row(
        x[0].astype(np.float64), None, None, offset=0.0, eps=1e-5, output=formats["float16"],
        centred=True,
    )  # fmt: skip
    assert row.move is None


def test_scaling_rows_first_rounds_eps_scaled():
    """Where float16 rows are scaled by 2^-8, 1e-3 vanishes; where rows are small, nothing does."""
    plan = plans["all-low"].replace(prescale="constant").formats_for("float16", "float16")
    assert [0.0] == effective_eps(plan, 1e-3, np.array([1.0])).tolist()
    plan = plan.replace(prescale="row_max")
    large, small = effective_eps(plan, 1e-3, np.array([1e4, 0.01])).tolist()
    assert 0.0 == large
    assert small == pytest.approx(1e-3, rel=2**-11)


def test_a_range_that_is_none_is_refused():
    """Sizes are positive and in order."""
    for sizes in ((0.0, 1.0), (2.0, 1.0), (1.0, np.inf), (1.0, 1e300)):
        with pytest.raises(InputError, match=r"no range of sizes|runs downwards"):
            assumed_evidence("norm", "rms", 8, format="float16", sizes=sizes)


def test_a_format_that_holds_no_row_is_refused():
    """And says how far the rows reach."""
    with pytest.raises(InputError, match=r"float8_e4m3fn holds no row .* reach 1000"):
        check_range([recorded_evidence("norm", "rms", np.full((2, 4), 1000.0), None, None,
                         format="float8_e4m3fn")])  # fmt: skip
    with pytest.raises(InputError, match="float8_e8m0fnu has no zero"):
        recorded_evidence("norm", "rms", np.ones((2, 4)), None, None, format="float8_e8m0fnu")


def test_rows_past_the_format_are_told_from_rows_that_were_no_numbers():
    """One of each; a layer of none, or of none but NaN, gets rows assumed."""
    x = np.ones((4, 4), np.float32)
    x[1, 0], x[2, 1], x[3, 2] = 1e6, np.nan, np.inf
    rows = recorded_evidence("norm", "rms", x, None, None, format="float16")
    assert (1, 1, 1e6, 2) == (rows.rows, rows.overflowing, rows.reach, rows.nonfinite)
    for none in (x[:0], x[2:]):
        rows = recorded_evidence("norm", "rms", none, None, None, format="float16")
        assert rows.sizes is not None
        assert (0, len(none)) == (rows.overflowing, rows.nonfinite)
    assert "2 rows left out, which hold NaN or infinity already" in describe_evidence([rows])
    with pytest.raises(InputError, match="holds NaN"):
        recorded_evidence("norm", "rms", x[:1], x[2], None, format="float16")
