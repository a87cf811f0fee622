# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precision_lab.numbers.table import formats
from precision_lab.validation.soundness.allowance import GRADUAL, UNIT
from precision_lab.validation.soundness.rounding_schedules import Cast, ValueRange, schedules

FORMATS = ("bfloat16", "float16", "float32", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz")
CASTS = [(name, policy) for name in FORMATS for policy in ("ieee", "saturate")]


def outputs(cast):
    """All values of a narrow format; of the wider ones the ends and some between."""
    target = cast.format
    if target.bits == 8:
        return target.values()
    top = int(target.ordinal(target.largest))
    places = np.unique(np.concatenate([np.arange(4), np.geomspace(1, top, 300).astype(np.int64)]))
    powers = target.ordinal(np.ldexp(1.0, np.arange(target.emin, target.emax, 3)))
    places = np.concatenate([places, top - np.arange(4), powers, powers - 1])
    return target.from_ordinal(np.concatenate([places, -places]))


@pytest.mark.parametrize(("name", "policy"), CASTS)
def test_what_is_cast_to_a_value(name, policy):
    """Of each value's interval the ends and all between are cast to it; past the ends nothing is.

    An end itself is a tie, which goes to one of two.
    """
    cast = Cast(formats[name], policy)
    y = outputs(cast)
    low, high = cast.of(y)
    assert (low <= y).all()
    assert (y <= high).all()

    def rounded(values):
        return cast.format.round(values, overflow=policy)

    for inside, outside, end in (
        (np.nextafter(low, np.inf), np.nextafter(low, -np.inf), low),
        (np.nextafter(high, -np.inf), np.nextafter(high, np.inf), high),
    ):
        finite = np.isfinite(end)
        assert (rounded(inside)[finite] == y[finite]).all()
        other = rounded(outside)[finite]
        assert not (other == y[finite]).any()


def test_infinities_and_nan_as_outputs():
    """An infinity comes from beyond the edge, in a format and policy that has it; NaN from none."""
    ends = np.array([np.inf, -np.inf, np.nan])
    low, high = Cast(formats["float16"]).of(ends)
    assert low[0] == 65520.0
    assert high[0] == np.inf
    assert (low[1], high[1]) == (-np.inf, -65520.0)
    assert np.isnan(low[2])
    assert np.isnan(Cast(formats["float16"], "saturate").of(ends)[0]).all()


narrow = formats["float8_e4m3fn"]
small = st.sampled_from(narrow.values().tolist())


def forward(schedule, n_from, gain, bias, cast):
    """Every output that v̂ can give by a schedule: the products of one float32 rounding each way."""
    f32 = formats["float32"]
    if schedule.name == "late":
        return {float(cast.format.round(n_from * gain + bias, overflow=cast.overflow))}
    n = float(cast.format.round(n_from, overflow=cast.overflow))
    product = float(f32.round(n * gain))
    if schedule.name == "early-separate":
        product = float(cast.format.round(product, overflow=cast.overflow))
    total = float(f32.round(product + bias))
    return {float(cast.format.round(total, overflow=cast.overflow))}


@pytest.mark.parametrize("schedule", schedules.values(), ids=lambda row: row.name)
@given(
    v=st.floats(-30, 30), gain=small.filter(bool), bias=small, policy=st.sampled_from(["saturate"])
)
def test_going_forward_and_backward_agree(schedule, v, gain, bias, policy):
    """An output's source holds the value that it came from, whatever gain and bias."""
    cast = Cast(narrow, policy)
    for y in forward(schedule, v, gain, bias, cast):
        source = schedule.source(
            cast, np.array([[y]]), np.array([[gain]]), np.array([[bias]]), GRADUAL
        )
        near = v * gain + bias if schedule.name == "late" else v
        slack = 0.0 if schedule.early else 4 * UNIT * (abs(v * gain) + abs(bias))
        assert source.meets(np.array([[near]]), np.array([[slack]])).all()


def test_sources_can_refuse():
    """1.5·1.5 late is 2.25; early from n = 1.5 it is the same, from no n it is 2.5 + 0.25."""
    cast = Cast(narrow)
    gain = np.array([[1.5]])
    y = np.array([[2.25]])
    early = schedules["early"].source(cast, y, gain, None, GRADUAL)
    assert early.meets(np.array([[1.5]]), np.array([[0.0]])).all()
    assert not early.meets(np.array([[1.7]]), np.array([[0.0]])).any()
    odd = np.array([[2.0]])
    # n·1.5 rounds to 2 for n = 1.25 (1.875, a tie) and 1.375 (2.0625): 1.5 gives 2.25.
    early = schedules["early"].source(cast, odd, gain, None, GRADUAL)
    assert not early.meets(np.array([[1.5]]), np.array([[0.01]])).any()


def test_intervals():
    """Quotients by 0, empty intervals, and touching ends."""
    whole = ValueRange(np.array([-1.0, 1.0, 2.0]), np.array([1.0, 2.0, 1.0]))
    low, high = whole.over(np.array([0.0, 0.0, -1.0]))
    assert (low[0], high[0]) == (-np.inf, np.inf)
    assert np.isnan(low[1:]).all()
    assert whole.meets(np.array([2.0, 3.0, 1.5]), np.array([1.0, 1.0, 0.0])).tolist() == [
        True, True, False,
    ]  # fmt: skip
    assert not whole.meets(np.array([3.0, 3.0, 0.0]), np.array([1.0, 0.5, 9.0]))[1:2].any()
