# SPDX-License-Identifier: Apache-2.0
"""Which step costs most: savings against ones computed with NumPy and ml_dtypes alone."""

from __future__ import annotations

import re
from functools import cache

import ml_dtypes
import numpy as np
import pytest

from precision_lab.inputs.parameters import make_gain
from precision_lab.inputs.synthetic import make_inputs
from precision_lab.plan.a_priori import bound_terms
from precision_lab.report.library import load
from precision_lab.sweeps.execution import sweep

TYPES = {
    "float16": np.float16, "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn, "float8_e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip
ANALYSIS = load("attribution")
every_format = pytest.mark.parametrize("name", TYPES)


@cache
def rows():
    """The rows of the short report."""
    return sweep(ANALYSIS.sweep(full=False))


@cache
def words():
    """The words of its figure."""
    return ANALYSIS.figures(rows())[0].alt


def error(name, *exact, late=False, early=False):
    """The relative error, root mean square, of a norm summed in turn, some of its steps exact."""
    held = TYPES[name]

    def step(which, values):
        values = np.asarray(values, np.float64)
        if which in exact:
            return values
        return values.astype(np.float32).astype(held).astype(np.float64)

    x = step("x", make_inputs("normal", rows=64, hidden=256, seed=0))
    g = step("g", make_gain("random", hidden=256, seed=0))
    y = x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + 1e-6) * g
    with np.errstate(over="ignore"):
        if late or early:
            r = 1 / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + 1e-6)
            found = step("output", step("cast", x * r) * g if early else x * r * g)
        else:
            total = np.zeros(64)
            for column in step("square", x * x).T:
                total = step("sum", total + column)
            r = step("reciprocal", 1 / np.sqrt(step("radicand", total / 256 + step("eps", 1e-6))))
            found = step("output", step("gain", step("normalise", x * r[:, None]) * g))
    # A relative error is of what is not 0.
    found, y = found[y != 0], y[y != 0]
    return np.sqrt(np.mean(np.square(found / y - 1)))


def change(plan, name, step):
    """How a step exact changes the error, in whole per cent, as the figure says."""
    clause = re.search(rf"(?:^|; ){plan} {re.escape(step)} {name}: ([^;]*?)(?:;|\.$)", words())
    return 0 if clause[1] == "0" else int(clause[1].replace("−", "-").removesuffix(" %"))


@every_format
def test_a_sum_in_turn_costs_what_a_plain_loop_says(name):
    """An exact sum saves as much of the error as it does in a loop over the elements."""
    expected = 100 * (error(name, "sum") / error(name) - 1)
    assert expected == pytest.approx(change("all, summed in turn", name, "sum"), abs=1.5)


@every_format
def test_a_cast_before_the_gain_costs_what_makes_it_late(name):
    """Without that cast, early is late."""
    expected = 100 * (error(name, late=True) / error(name, early=True) - 1)
    assert expected == pytest.approx(change("float32, cast early", name, "cast before gain"), abs=1)
    assert error(name, "cast", early=True) == error(name, late=True)


@every_format
def test_late_costs_its_last_cast_alone(name):
    """All of its error but that of float32."""
    assert -100 == change("float32, cast late", name, "last cast")


def test_the_costliest_step_is_named():
    """The sum where it adds in turn, 1/√ or the sum where it adds in pairs."""
    first, *others = ANALYSIS.findings(rows())
    assert "sums in turn, what costs most is the sum in each format: " in first
    saved = [1 - error(name, "sum") / error(name) for name in TYPES]
    told = [int(share) / 100 for share in re.findall(r"(\d+) %", first)]
    assert pytest.approx([min(saved), max(saved)], abs=0.015) == told
    assert "All in the format: the relative error falls most with an exact 1/√ in" in others[0]
    assert any(text.startswith("Float32, cast early: ") and "an exact cast before gain in" in text
               for text in others)  # fmt: skip


def test_another_step_may_cost_most():
    """Rows in which an exact sum saves nothing name another step, or none."""
    told = rows()
    whole = told[told["exact"] == ""].set_index(["plan", "format"])["arithmetic_relative_rms"]
    back = [whole[pair] for pair in zip(told["plan"], told["format"], strict=True)]
    idle = told.assign(
        arithmetic_relative_rms=told["arithmetic_relative_rms"].where(told["exact"] != "sum", back)
    )
    first = ANALYSIS.findings(idle)[0]
    assert "the sum" not in first
    assert re.search("what costs most is (x · )?1/√ in", first)
    none = ANALYSIS.findings(told.assign(arithmetic_relative_rms=1.0))
    assert (
        sum("none of its steps, computed exactly, lowers the error" in text for text in none) == 4
    )


def test_rows_that_are_lost_have_no_error():
    """Where a plan loses rows its errors are no errors, and the figure says so."""
    told = rows()
    mine = (told["plan"] == "all-low") & (told["format"] == "float8_e4m3fn")
    lost = told.assign(arithmetic_rows_lost=told["arithmetic_rows_lost"].where(~mine, 3))
    figure = ANALYSIS.figures(lost)[0]
    assert "all in the format sum float8_e4m3fn: rows lost" in figure.alt
    assert "rows lost" not in words()
    assert "e4m3fn" in ANALYSIS.findings(told)[1]
    assert "e4m3fn" not in ANALYSIS.findings(lost)[1]


def test_what_the_bound_says_beforehand():
    """It fears the sum most, which for sums in pairs is not what costs most in 16 bits."""
    figure = ANALYSIS.figures(rows())[1]
    assert figure.title.endswith("blames the sum in each format and order")
    x = make_inputs("normal", rows=64, hidden=256, seed=0).astype(np.float16)
    gain = make_gain("random", hidden=256, seed=0).astype(np.float16)
    terms = bound_terms(x, gain, eps=1e-6, plan="all-low")
    expected = 100 * terms["sum"] / sum(terms.values())
    assert f"all in the format sum float16: {expected:.0f} %; " in figure.alt
    # Sums of 256 squares may pass the 448 that the format holds, as far as the bound can tell.
    assert "all in the format sum float8_e4m3fn: no bound" in figure.alt
    other = ANALYSIS.figures(rows().assign(hidden=1))[1]
    assert "the sum" not in other.title
