# SPDX-License-Identifier: Apache-2.0
"""What eps does: each cell of the map against arithmetic of NumPy and ml_dtypes."""

from __future__ import annotations

import math
from functools import cache

import ml_dtypes
import numpy as np
import pytest

from precision_lab.report.charts.words import power
from precision_lab.report.library import load
from precision_lab.sweeps.execution import sweep

TYPES = {
    "float32": np.float32, "bfloat16": ml_dtypes.bfloat16, "float16": np.float16,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
}  # fmt: skip
ANALYSIS = load("eps_sweep")
EPS = (1e-12, 1e-10, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
KS = range(-16, 5, 2)


@cache
def rows():
    """The rows of the short report."""
    return sweep(ANALYSIS.sweep(full=False))


@cache
def found():
    """Its findings."""
    return ANALYSIS.findings(rows())


def kind(name, eps, k):
    """What eps does to a row whose elements are ±2^k, computed in the format itself."""
    held = TYPES[name]
    stored, ms = float(held(eps)), 4.0**k
    if stored == 0:
        return "eps is 0"
    if stored > ms:
        return "eps exceeds the mean square"
    if not np.isfinite(held(16 * ms)):
        return "row lost, whatever eps is"
    # Both are values of the format, and float64 holds their sum.
    total = float(held(stored + float(held(ms))))
    if total == float(held(ms)):
        return "eps changes nothing"
    return "shrinks outputs by 0.2 % or more" if 1 - math.sqrt(ms / total) >= 2**-9 else ""


def lane(name, eps):
    """A line of the map in words."""
    places = {}
    for k in KS:
        places.setdefault(kind(name, eps, k), []).append(k)
    order = ("eps is 0", "eps changes nothing", "shrinks outputs by 0.2 % or more",
             "eps exceeds the mean square", "row lost, whatever eps is")  # fmt: skip
    told = []
    for word in order:
        if word in places:
            low, high = power(min(places[word])), power(max(places[word]))
            told.append(f"{word} {low if low == high else f'from {low} to {high}'}")
    written = f"{eps:.0e}".replace("e-0", "e-")
    return f"{name} {written}: {', '.join(told) or 'none of these'}"


def test_each_cell_is_what_the_format_s_own_arithmetic_gives():
    """Stored, added and compared by other hands, eps does what the map says."""
    (figure,) = ANALYSIS.figures(rows())
    expected = [lane(name, eps) for name in TYPES for eps in EPS]
    assert expected == figure.alt.removesuffix(".").split("; ")


def test_the_map_can_be_another():
    """Rows in which eps changed outputs are not told as absorbed."""
    (figure,) = ANALYSIS.figures(rows().assign(against_differs=1, against_relative_rms=1e-9))
    assert "changes nothing" not in figure.alt
    some = ANALYSIS.findings(rows().assign(against_differs=1))
    assert "An eps of 1e-6 changes some bit of rows of each of the rms." in some


@pytest.mark.parametrize("name", TYPES)
def test_outputs_shrink_as_the_formula_says(name):
    """1 − 1/√(1 + eps/ms), but for the rounding of the sum in the format."""
    mine = rows()[rows()["plan_eps_format"] == name]
    mine = mine[(mine["arithmetic_rows_lost"] == 0) & np.isfinite(mine["against_relative_rms"])]
    assert len(mine) > 4
    ms = mine["parameter_scale"] ** 2
    stored = mine["eps"].map(lambda eps: float(TYPES[name](eps)))
    expected = 1 - 1 / np.sqrt(1 + stored / ms)
    unit = float(ml_dtypes.finfo(TYPES[name]).eps)
    assert (np.abs(expected - mine["against_relative_rms"]) <= unit / 2).all()


def test_which_eps_is_zero():
    """In float16 1e-8 and below, 1e-7 not; in bfloat16 none."""
    assert found()[0] == (
        "Add eps in float32: in float16 it is 0 up to 1e-8, in float8_e4m3fn it is 0 up to 1e-4 "
        "and in bfloat16 it does nothing or shrinks outputs by 0.2 % or more."
    )
    assert float(np.float16(1e-8)) == 0 < float(np.float16(1e-7))


def test_where_the_usual_eps_is_absorbed():
    """1e-6 is half an ulp of a float32 between 8 and 16, of a bfloat16 between 2^-13 and 2^-12."""
    assert "at least 2⁴ in float32, 2⁻⁴ in bfloat16 and float16: " in found()[1]


def test_a_bfloat16_has_no_room_between_nothing_and_too_much():
    """Half an ulp of the mean square is 0.2 % of the output: where eps counts, it shows."""
    assert any(
        "31 in float32, none in bfloat16 and float8_e4m3fn, 4 in float16" in text
        for text in found()
    )


def test_rows_divided_by_zero_are_told():
    """4^-14 is 0 in float16, as 2^-28 lies below half its smallest value."""
    assert float(np.float16(4.0**-14)) == 0 < float(np.float16(4.0**-12))
    assert "up to an rms of 2⁻¹⁴ in float16, 2⁻⁶ in float8_e4m3fn." in found()[-1]
    kept = rows().assign(arithmetic_rows_inf=0)
    assert not any("divided by 0" in text for text in ANALYSIS.findings(kept))
