# SPDX-License-Identifier: Apache-2.0
"""What eps does by the place where it is added, held to plans that add it there."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from conftest import wide

from precision_lab.eps.advice import recommend_eps
from precision_lab.numbers.table import formats
from precision_lab.plan.emulation import emulate
from precision_lab.plan.eps_places import grows_past, growth, shrinks, shrinks_past
from precision_lab.plan.switches import CHOICES
from precision_lab.plan.table import plans

PLACES = CHOICES["eps_place"]
WIDE = dict.fromkeys(
    ("eps_format", "compute_format", "square_format", "sum_format", "reciprocal_format",
     "gain_format"), "float64",
)  # fmt: skip
COUNT, EPS = 16, 1e-5


def outputs(place, size):
    """A row of ±size through a plan of float64 that adds eps at a place."""
    x = size * np.where(np.arange(COUNT) % 2, 1.0, -1.0)[None]
    plan = plans["late"].replace(eps_place=place, **WIDE)
    return np.abs(emulate(x, eps=EPS, plan=plan)).max()


@pytest.mark.parametrize("place", [place for place in PLACES if place != "missing"])
def test_noise_grows_as_a_plan_makes_it_grow(place):
    """A row far below eps is multiplied by the reciprocal that eps alone gives."""
    expected = outputs(place, 1e-30) / 1e-30
    assert expected == pytest.approx(growth(place, EPS, COUNT), rel=1e-12)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("size", [1e-4, 0.1, 30.0])
def test_rows_shrink_as_a_plan_shrinks_them(place, size):
    """The output of a row of one size is 1 less its shrink."""
    found = shrinks(place, np.array([size * size]), EPS, COUNT)[0]
    assert 1 - outputs(place, size) == pytest.approx(found, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("place", PLACES)
def test_exact_answers_turn_where_the_numbers_do(place):
    """A little more than the number is not passed, a little less is."""
    grown = growth(place, EPS, COUNT)
    if grown is None:
        assert grows_past(place, EPS, COUNT, 1e300)
    else:
        assert grows_past(place, EPS, COUNT, grown * (1 - 1e-12))
        assert not grows_past(place, EPS, COUNT, grown * (1 + 1e-12))
    square = 1e-6
    share = float(shrinks(place, np.array([square]), EPS, COUNT)[0])
    args = place, Fraction(square), EPS, COUNT
    assert not shrinks_past(*args, Fraction(share) + Fraction(1, 10**9))
    assert (share > 0) == shrinks_past(*args, Fraction(share) - Fraction(1, 10**9))


@pytest.mark.parametrize("new", [False, wide(True)])
@pytest.mark.parametrize("format", ["float16", wide("bfloat16"), wide("float8_e5m2")])
@pytest.mark.parametrize("base", ["late", "all-low"])
def test_the_verdict_agrees_with_the_findings(base, format, new):
    """Keep: no harm told; change: harm and an interval; impossible: harm and none."""
    for place in PLACES:
        for eps in (0.0, 1e-12, 1e-5, 1e-2):
            plan = plans[base].replace(eps_place=place)
            advice = recommend_eps(
                norm="rms", hidden_size=8, eps=eps, format=format, plan=plan, new=new, rms=(0.1, 1)
            )
            harm = [one for one in advice.findings if one.severity == "harm"]
            told = f"{place} {eps} {advice}"
            assert (advice.verdict == "keep") == (not harm), told
            assert (advice.verdict == "impossible") == (advice.interval is None), told
            if advice.recommended is not None:
                output = formats[advice.adding_format].round(advice.recommended)
                lo, hi = advice.interval
                assert lo <= output <= hi or lo <= advice.recommended <= hi, told
            if advice.interval is None:
                assert advice.reason.startswith("no eps is safe: "), told


def test_two_limits_that_cannot_meet_are_told():
    """In float32 noise may not grow 1024 times and no row of 1 shrink by half an ulp."""
    advice = recommend_eps(norm="rms", hidden_size=8, new=True, format="float32")
    assert "impossible" == advice.verdict
    assert ["eps-shrinks"] == [one.code for one in advice.findings if one.severity == "harm"]
    assert "noise grows too far" in advice.findings[0].text
    wider = recommend_eps(norm="rms", hidden_size=8, new=True, format="float32", amplification=1e4)
    assert "keep" == wider.verdict
