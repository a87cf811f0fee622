# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math

import numpy as np
import pytest
from eps_harms import Case, departs_in, lost_in
from hypothesis import given
from hypothesis import strategies as st

from precision_lab import Capture, Layer, captures, emulate, formats, plans
from precision_lab.eps.advice import recommend_eps
from precision_lab.eps.interval import Bound, safe_interval
from precision_lab.eps.representable import EpsGrid, eps_grid

TOY = EpsGrid(formats["float8_e5m2"], (formats["float32"], formats["float8_e5m2"]))


@given(st.integers(-1, 124), st.integers(-1, 124), st.integers(-3, 130), st.integers(-3, 130))
def test_bisection_finds_what_a_walk_finds(low, high, hint, other):
    """Whatever it is told about ends elsewhere."""
    lows = [Bound("low", lambda e: TOY.place(e) <= low)]
    highs = [Bound("high", lambda e: TOY.place(e) >= high)]
    hints = {"below: low": hint, "above: high": other}
    free = [k for k in range(TOY.top + 1) if low < k < high]
    found = safe_interval(TOY, lows, highs, hints=hints)
    if not free:
        assert found.empty
    else:
        assert (free[0], free[-1]) == (found.lo, found.hi)
        assert ("low" if free[0] else "least") == found.lo_breaks
        assert ("high" if free[-1] < TOY.top else "largest") == found.hi_breaks


def test_the_top_of_a_grid_stays_finite_on_its_way():
    """bfloat16 reaches farther than float16: a sum in float16 ends the grid at 65280."""
    plan = plans["late"].replace(eps_format="bfloat16", sum_format="float16")
    grid = eps_grid(plan.formats_for("float16", "float16"))
    assert "bfloat16" == grid.format.name
    assert 65280.0 == grid.value(grid.top) == float(grid.round(grid.value(grid.top)))
    assert math.isinf(float(grid.round(grid.value(grid.top + 1))))


@pytest.mark.parametrize(("eps_format", "sum_format"), [("bfloat16", "float16"),
                                                        ("float16", "bfloat16"),
                                                        ("float32", "float16")])  # fmt: skip
def test_ends_are_values_that_every_rounding_leaves(eps_format, sum_format):
    """Where eps is rounded to one format and added in another."""
    plan = plans["late"].replace(eps_format=eps_format, sum_format=sum_format)
    advice = recommend_eps(
        norm="rms", hidden_size=64, eps=1e-5, format="float16", plan=plan, rms=(0.1, 4.0)
    )
    for end in advice.interval:
        for name in (eps_format, sum_format):
            assert end == float(formats[name].round(end))


def scaled(case, eps):
    """What eps stands for in each row, where rows are scaled by their largest magnitude."""
    own = formats[case.format]
    rows = np.asarray(case.x, np.float64)
    found = []
    for row in rows:
        top = max(np.abs(row).max(), math.sqrt(eps))
        scale = 2.0 ** -math.frexp(top)[1] if top else 1.0
        found.append(float(own.round(eps * scale**2)) / scale**2)
    return found


def harmed(case, eps):
    """Whether some row departs or is lost."""
    if len(lost_in(case, eps)):
        return True
    for k, becomes in enumerate(scaled(case, eps)):
        # A plan of the same formats without the scaling leaves this eps as it is, in float64.
        row = Case(case.norm, case.x[k : k + 1], case.weight, case.bias, case.format,
                   plans["late"].replace(eps_format="float64", sum_format="float64"), case.eps,
                   )  # fmt: skip
        if row.x.any() and len(departs_in(row, becomes)):
            return True
    return False


@pytest.mark.parametrize("name", ["encoder.layer.0.attention.output.LayerNorm",
                                  "embeddings.LayerNorm"])  # fmt: skip
def test_rows_that_are_scaled_first_have_an_interval_of_their_own_eps(name):
    """At each end no row departs from the function, one value beyond some row does."""
    capture = captures["minilm"].load()
    layer = capture.layer(next(each.name for each in capture.layers if each.name.endswith(name)))
    one = Capture(model="", norm=capture.norm, eps=1e-6, layers=(layer,))
    plan = plans["all-low"].replace(prescale="row_max")
    advice = recommend_eps(one, format="float16", plan=plan)
    kind = np.float16
    x = np.concatenate([layer.x, np.zeros((1, layer.x.shape[1]))]).astype(kind)
    case = Case("layer", x, layer.weight.astype(kind), layer.bias.astype(kind), "float16", plan,
                1e-6)  # fmt: skip
    own = formats["float16"]
    lo, hi = (int(own.ordinal(end)) for end in advice.interval)
    assert [False, False] == [harmed(case, float(own.from_ordinal(k))) for k in (lo, hi)]
    assert [True, True] == [harmed(case, float(own.from_ordinal(k))) for k in (lo - 1, hi + 1)]


def test_rows_seen_that_are_no_numbers_are_left_out_and_told():
    """A NaN in one row says nothing about eps; the other rows do."""
    x = np.ones((3, 4), np.float32)
    x[1, 2] = np.nan
    layer = Layer(name="norm", x=x, weight=np.ones(4, np.float32))
    advice = recommend_eps(Capture(model="", norm="rms", eps=1e-6, layers=(layer,)))
    assert 2 == advice.layers[0].rows
    assert "1 row left out" in advice.evidence


def test_a_row_whose_outputs_overflow_bounds_eps_from_below():
    """A function of large gain: at the lower end all outputs stay finite."""
    x = np.array([[2.0**-8, 0, 0, 0]], np.float32)
    weight = np.full(4, 448.0, np.float32)
    layer = Layer(name="norm", x=x, weight=weight)
    capture = Capture(model="", norm="rms", eps=0.25, layers=(layer,))
    lo, _ = recommend_eps(capture, format="float8_e4m3fn", plan="all-low").interval
    own = formats["float8_e4m3fn"]
    kept = emulate(own.cast(x), own.cast(weight), eps=lo, plan="all-low").astype(np.float64)
    assert np.isfinite(kept).all()
    assert lo > 0
