# SPDX-License-Identifier: Apache-2.0
"""The size of rows at which a verdict turns, on both sides, by the exact function and the plan."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from eps_harms import Case

from precision_lab import compare_eps, emulate, formats, plans, recommend_eps, truth
from precision_lab.eps.evidence import ROW_SIZES, normal_rows
from precision_lab.eps.row_sizes import describe_safe_rms, safe_rms
from precision_lab.norm.norm import norms

WIDE = formats["float32"]


def beside(value, step):
    """The float32 a step away."""
    return float(WIDE.from_ordinal(WIDE.ordinal(value) + step))


def moves(rms, function, added, output):
    """By how many half-ulps the output moves that lies just below a power of two, by `truth`."""
    x = np.full((1, 4), rms, np.float64)
    r = float(truth("rms", x, eps=function).value[0, 0])
    weight = np.full(4, np.nextafter(2.0, 0) / r)
    weight *= 1 - 2.0**-50
    y, z = (truth("rms", x, weight, eps=eps) for eps in (function, added))
    assert y.value.max() < 2
    moved = np.abs((z.value - y.value) + (z.low - y.low)).max()
    return float(moved / (output.ulp(1.0) / 2))


DEPARTING = [
    ("hf-llama", "bfloat16", 1e-5, 1e-6),
    ("hf-llama", "bfloat16", 1e-6, 1e-5),
    ("late", "float16", 1e-6, 1e-5),
    ("all-low", "float16", 1e-5, 1e-5),
    ("all-low", "bfloat16", 1e-6, 2e-6),
    ("torch-layer-norm", "float16", 1e-12, 1e-7),
]


@pytest.mark.parametrize(("plan", "format", "function", "eps"), DEPARTING)
def test_the_least_size_without_harm_is_exact(plan, format, function, eps):
    """By the exact function: at it no output moves by more than half an ulp, one below one does."""
    kind = plans[plan].norm
    norm = norms["rms" if kind == "any" else kind]
    low, _ = safe_rms(norm, 256, formats[format], plans[plan], eps=eps, function=function)
    added = Case("", None, None, None, format, plan, function).becomes(eps)
    output = formats[format]
    assert (
        moves(low, function, added, output) <= 1 < moves(beside(low, -1), function, added, output)
    )
    assert 1e-4 < low < 1


def test_no_row_is_too_small_where_the_plan_keeps_eps():
    """float32 changes 1e-5 by 2^-26 of it, which moves no output of bfloat16 by half an ulp."""
    low, _ = safe_rms(
        norms["rms"], 4096, formats["bfloat16"], plans["hf-llama"], eps=1e-5, function=1e-5
    )
    assert low == 0
    for rms in (1e-30, 1e-3, 1.0):
        assert moves(rms, 1e-5, float(np.float32(1e-5)), formats["bfloat16"]) < 1


@pytest.mark.parametrize(
    ("plan", "format", "norm"),
    [("all-low", "float16", "rms"), ("all-low", "float16", "layer"), ("hf-llama", "float16", "rms"),
     ("all-low", "float8_e4m3fn", "rms"), ("hf-llama", "bfloat16", "rms")],
)  # fmt: skip
def test_the_largest_size_without_harm_is_that_of_the_plan(plan, format, norm):
    """A normal row of it is run through the plan and comes out; one of the next float32 is lost."""
    row = norms[norm]
    _, high = safe_rms(row, 64, formats[format], plans[plan], eps=1e-3, function=1e-3)
    lost = []
    for size in (high, beside(high, 1)):
        x = formats[format].round(normal_rows(64, row.centred)[:1] * size)
        if not np.isfinite(x).all():
            lost.append(True)
            continue
        y = emulate(formats[format].cast(x), eps=1e-3, plan=plan, norm=norm).astype(np.float64)
        # An infinite mean square leaves zeros.
        lost.append(not (np.isfinite(y).all() and y.any()))
    assert [False, True] == lost


def test_small_rows_that_a_plan_loses_are_too_small():
    """eps 1e-12 is 0 in float16; a row whose squares are 0 too gives NaN there."""
    low, _ = safe_rms(
        norms["rms"], 64, formats["float16"], plans["all-low"], eps=1e-12, function=1e-12
    )
    x = [formats["float16"].cast(normal_rows(64, False)[:1] * size)
         for size in (low, beside(low, -1))]  # fmt: skip
    y = [emulate(each, eps=1e-12, plan="all-low", norm="rms") for each in x]
    assert [True, False] == [bool(np.isfinite(each).all()) for each in y]


def test_a_new_design_turns_where_a_row_shrinks_by_half_an_ulp():
    """1 − √(ms/(ms + eps)) is 2^-12 in float16."""
    low, _ = safe_rms(
        norms["rms"], 64, formats["float16"], plans["hf-llama"], eps=1e-3, function=None
    )
    eps = float(np.float32(1e-3))
    shrink = [1 - math.sqrt(s * s / (s * s + eps)) for s in (low * (1 + 1e-7), low * (1 - 1e-7))]
    assert shrink[0] < 2.0**-12 < shrink[1]


@pytest.mark.parametrize("place", ["outside", "outside_root", "both", "max"])
def test_a_plan_with_eps_elsewhere_turns_where_its_last_row_departs(place):
    """Above the size no row departs: in float64 over 20 binades; one just below does."""
    plan = plans["late"].replace(eps_place=place)
    low, _ = safe_rms(norms["rms"], 64, formats["float16"], plan, eps=1e-3, function=1e-3)
    e = float(np.float32(1e-3))
    below = {"outside": lambda s: s + e, "outside_root": lambda s: s + math.sqrt(e),
             "both": lambda s: math.sqrt(s * s + e) + e,
             "max": lambda s: max(s, math.sqrt(e))}[place]  # fmt: skip

    def departs(s):
        return abs(math.sqrt(s * s + 1e-3) / below(s) - 1) > 2.0**-12

    assert departs(low * (1 - 1e-6))
    assert not any(departs(low * (1 + 1e-6) * 2 ** (k / 64)) for k in range(20 * 64))


def test_the_first_norm_of_a_real_model_is_no_longer_called_harmless():
    """Rows of 0.0186, as at initialisation, move by 3.3 ulp of bfloat16 with 1e-6 for 1e-5."""
    found = compare_eps("Llama-3.1-8B", 1e-6)
    assert not found.harmless
    assert found.safe_rms[0] == pytest.approx(0.04797, rel=1e-3)
    assert "no harm for rows of RMS above 0.048" in str(found)
    move = moves(0.0186, 1e-5, 1e-6, formats["bfloat16"]) / 2
    assert move == pytest.approx(3.3, abs=0.05)
    assert compare_eps("Llama-3.1-8B", 1e-6, rms=(0.048, 100.0)).harmless


def test_the_advice_says_where_it_turns():
    """In words, rounded to the safe side, and by norm in JSON."""
    advice = recommend_eps("Llama-3.1-8B", format="float16", plan="all-low")
    (turn,) = [one for one in advice.findings if one.code == "row-sizes"]
    assert "no harm for normal rows of RMS from 0.00422 to 3.99" in turn.text
    low, high = json.loads(advice.to_json())["layers"][0]["safe_rms"]
    assert low < 0.00422
    assert high > 3.99
    (turn,) = [
        one for one in recommend_eps("smollm2", eps=1e-6).findings if one.code == "row-sizes"
    ]
    assert "no harm for rows of any RMS" in turn.text


@pytest.mark.parametrize(
    ("ends", "expected"),
    [((0.0, 1e18), "rows of any RMS"), ((0.0, 3.9988), "normal rows of RMS up to 3.99"),
     ((0.047961, 1e9), "rows of RMS above 0.048"),
     ((0.01231, 3.9988), "normal rows of RMS from 0.0124 to 3.99")],
)  # fmt: skip
def test_sizes_in_words(ends, expected):
    """The least is rounded up, the largest down."""
    assert f"no harm for {expected}" == describe_safe_rms(ends)


def test_of_a_new_design_the_median_row_is_spoken_of():
    """Its verdict turns with the median row, and with rows that overflow."""
    text = describe_safe_rms((1.43082, 19444.47), new=True)
    assert text == (
        "no harm where the median row has an RMS above 1.44, and normal rows none above 1.94e+04"
    )
    advice = recommend_eps("Llama-3.1-8B", new=True, eps=1e-3, format="float16", rms=(0.1, 100))
    found = {one.code: one.text for one in advice.findings}
    assert "shrinks 24 of 61 assumed sizes by more than half an ulp" in found["eps-shrinks"]
    assert "by up to 4.65 %" in found["eps-shrinks"]
    assert found["row-sizes"] == text


def test_where_no_size_will_do():
    """In float8 every sum of 65,536 squares overflows or loses all of them."""
    (turn,) = [
        one
        for one in recommend_eps(
            norm="rms", hidden_size=65536, eps=1e-5, format="float8_e4m3fn", plan="all-low"
        ).findings
        if one.code == "row-sizes"
    ]
    assert "normal rows of every RMS depart or are lost in norm" == turn.text


def test_a_place_in_the_model_has_rows_of_its_own_size():
    """Every range reaches the fresh models and the captures that it is derived from."""
    for place, seen in [("embedding", (0.0186, 1.1)), ("stream", (0.0188, 33.0)),
                        ("qk", (0.0116, 0.77)), ("latent", (0.56, 0.71)),
                        ("gated", (2e-5, 18.0))]:  # fmt: skip
        low, high = ROW_SIZES[place]
        assert low <= seen[0] < seen[1] <= high
