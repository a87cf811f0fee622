# SPDX-License-Identifier: Apache-2.0
"""Sums of many addends: the errors told are those of sums taken by hand, and stay in bounds."""

from __future__ import annotations

import dataclasses
import re
from functools import cache

import ml_dtypes
import numpy as np
import pytest

from precision_lab.inputs.synthetic import make_inputs
from precision_lab.report.library import load
from precision_lab.sweeps.execution import sweep

SIZES = (64, 1024, 4096)
ERROR = "arithmetic_relative_max"


@cache
def rows():
    """The rows of the analysis up to 4,096 elements."""
    grids = load("accumulation").sweep(full=False)
    found = sweep(grids_up_to(grids, max(SIZES)))
    return found[found["hidden"].isin(SIZES)].reset_index(drop=True)


def grids_up_to(grids, most):
    """The same grids without the longer rows."""
    return [
        dataclasses.replace(grid, hidden=[n for n in grid.hidden if n <= most]) for grid in grids
    ]


def in_turn(squares, dtype):
    """Each row's sum, one addend after the other in the type."""
    total = np.zeros(len(squares), dtype)
    for column in squares.T:
        total = (total.astype(np.float32) + column.astype(dtype).astype(np.float32)).astype(dtype)
    return total.astype(np.float64)


def pairs(squares, dtype):
    """NumPy's own sum of float32 rows."""
    assert dtype is np.float32
    return np.add.reduce(np.ascontiguousarray(squares.astype(dtype)), axis=1).astype(np.float64)


def error_of_r(n, summed, dtype):
    """The largest relative error of r when the mean of squares comes of such sums."""
    x = make_inputs("normal", rows=4, hidden=n, seed=0, scale=0.5)
    squares = np.square(x.astype(np.float32).astype(ml_dtypes.bfloat16).astype(np.float64))
    return np.max(np.abs(np.sqrt(squares.sum(axis=1) / summed(squares, dtype)) - 1))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(
    ("order", "summed", "name", "dtype"),
    [
        ("sequential", in_turn, "float32", np.float32),
        ("sequential", in_turn, "bfloat16", ml_dtypes.bfloat16),
        ("pairwise", pairs, "float32", np.float32),
    ],
)
def test_errors_are_those_of_sums_by_hand(n, order, summed, name, dtype):
    """In turn in float32 and bfloat16, and NumPy's own pairs."""
    mine = rows()[lambda row: (row["hidden"] == n) & (row["plan_order"] == order)]
    found = mine.loc[mine["plan_sum_format"] == name, ERROR].item()
    assert np.isclose(error_of_r(n, summed, dtype), found, rtol=1e-6)
    assert not np.isclose(2 * error_of_r(n, summed, dtype), found, rtol=1e-6)


def test_the_headline_tells_the_longest_rows():
    """The errors of the longest rows, of both orders, in both formats."""
    found = load("accumulation").findings(rows())[0]
    longest = rows()[rows()["hidden"] == max(SIZES)]
    told = [float(text) / 100 for text in re.findall(r"[\d.]+(?:e-\d+)?(?= % in [bf])", found)]
    assert 4 == len(told)
    for name, errors in longest.groupby("plan_sum_format"):
        for order in ("sequential", "pairwise"):
            error = errors.loc[errors["plan_order"] == order, ERROR].item()
            assert np.isclose(error, told, rtol=5e-3).any(), (name, order)
    assert found.startswith("4,096 squares added one after the other: 1/rms is off by")


def test_pairs_beat_sums_in_turn():
    """By ten times and more at 4,096 elements, and compensation is within u of right."""
    longest = rows()[rows()["hidden"] == max(SIZES)]
    for name, u in (("float32", 2.0**-24), ("bfloat16", 2.0**-8)):
        mine = longest[longest["plan_sum_format"] == name].set_index("plan_order")[ERROR]
        assert mine["sequential"] > 10 * mine["pairwise"]
        assert mine["wider:float64"] <= u
        assert "kahan" not in mine or mine["kahan"] <= u


def test_every_error_is_drawn_below_its_bound():
    """In the figure of the longest rows; the finding says by how much, also where one passes."""
    figure = list(load("accumulation").figures(rows()))[1]
    pairs = re.findall(r": ([\d.e-]+), bound ([\d.e-]+|inf)", figure.alt.removesuffix("."))
    assert len(pairs) > 10
    assert all(float(error) <= float(bound) for error, bound in pairs)
    held = load("accumulation").findings(rows())[-1]
    assert float(re.search(r"the largest is ([\d.]+) of", held)[1]) < 1
    passed = load("accumulation").findings(rows().assign(**{ERROR: 1e6}))[-1]
    assert float(re.search(r"the largest is ([\d.,]+e?\d*) of", passed)[1].replace(",", "")) > 1


def test_guides_are_n_u_and_root_n_u():
    """Half of n·u and of √n·u, of the coarser format at the most."""
    figure = next(iter(load("accumulation").figures(rows())))
    assert "½·n·u: up to 8" in figure.alt
    assert "½·√n·u: up to 0.125" in figure.alt
