# SPDX-License-Identifier: Apache-2.0
"""Statistics that scale, run or shift before they add, with every rounding as bad as it may be."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from precision_lab.norm.arguments import check
from precision_lab.validation.soundness.allowance import UNIT, Allowance, statistics_of
from precision_lab.validation.soundness.exact_values import Exact

EPS = 1e-12
FLOAT32 = "float32"


class Arithmetic:
    """Rounding to float32, or a relative error of u at each operation: up, down or at random."""

    def __init__(self, way):
        self.way, self.random = way, np.random.default_rng(4)

    def __call__(self, value):
        """The value, rounded."""
        if self.way == FLOAT32:
            return np.float32(value).astype(np.float64)
        sign = self.random.choice([-1, 1], np.shape(value)) if self.way == 0 else self.way
        return value * (1 + UNIT * sign)


def added(fl, terms):
    """The terms of [rows, n] added from the first to the last."""
    total = terms[:, 0]
    for term in terms.T[1:]:
        # What is added to 0, or 0, is not rounded.
        total = np.where((total == 0) | (term == 0), total + term, fl(total + term))
    return total


def divided(fl, x):
    """Σ x·(x·(1/n))."""
    return added(fl, fl(x * fl(x * fl(1 / x.shape[1]))))


def by_root(fl, x):
    """Σ (x/√n)²."""
    part = fl(x / fl(np.sqrt(x.shape[1])))
    return added(fl, fl(part * part))


def by_largest(fl, x):
    """The largest multiplied to the mean square of the row times its reciprocal."""
    top = np.abs(x).max(1, keepdims=True)
    top = np.where(top > 0, top, 1.0)
    part = fl(x * fl(1 / top))
    square = fl(added(fl, fl(part * part)) / x.shape[1])
    return fl(top[:, 0] * fl(top[:, 0] * square))


def running_scale(fl, x):
    """LAPACK's scaled sum of squares."""
    scale, squares = np.zeros(len(x)), np.ones(len(x))
    for size in np.abs(x).T:
        grows, known = size > scale, (size > 0) | (scale > 0)
        ratio = fl(np.where(grows, scale, size) / np.where(known, np.maximum(size, scale), 1.0))
        square = fl(ratio * ratio)
        same = np.where(ratio == 0, squares, fl(squares + square))
        squares = np.where(grows, np.where(scale > 0, fl(1 + fl(squares * square)), 1.0), same)
        scale = np.maximum(size, scale)
    return fl(fl(fl(scale * scale) * squares) / x.shape[1])


def running_mean(fl, x):
    """m + (x² − m)/k."""
    mean = np.zeros(len(x))
    for k, column in enumerate(x.T, 1):
        mean = fl(mean + fl(fl(fl(column * column) - mean) / k))
    return mean


def running_weights(fl, x):
    """m·((k − 1)/k) + x²·(1/k)."""
    mean = np.zeros(len(x))
    for k, column in enumerate(x.T, 1):
        old, new = fl(mean * fl((k - 1) / k)), fl(fl(column * column) * fl(1 / k))
        mean = fl(old + new)
    return mean


KINDS = {
    divided: "scaled",
    by_root: "scaled",
    by_largest: "scaled",
    running_scale: "running",
    running_mean: "running",
    running_weights: "running",
}


def rows_of(n):
    """Rows of n float32 numbers in orders that are hard for one kind or another."""
    random = np.random.default_rng(n)
    normal = random.normal(size=(4, n))
    size = np.sort(np.abs(normal[0]))
    late = np.where(np.arange(n) < n - n // 8 - 1, 0.0, normal[1])
    return np.float32(
        [
            *normal, size, size[::-1], late, late[::-1], np.ones(n), np.arange(1.0, n + 1),
            np.exp2(np.linspace(-3, 3, n)), np.where(np.arange(n) == n // 2, 1e3, normal[2]),
            np.where(np.arange(n) == 0, 1e3, normal[3]), 2.0**40 * normal[0],
            2.0**-15 * normal[1], np.round(9 * normal[2]), np.zeros(n),
        ]
    )  # fmt: skip


def departures(statistic, kind, x, way, eps=EPS):
    """[rows]: how far 1/√ of a statistic is from r, as a share of what its kind allows beside 12.

    The root itself, eps and the division by n have 12 roundings of their own in every kind.
    """
    exact = Exact(check("rms", x, None, None, eps=eps))
    allowed = Allowance(exact, kind)
    with np.errstate(all="ignore"):
        square = statistic(Arithmetic(way), x.astype(np.float64))
        share = np.abs(np.sqrt(exact.radicand[:, 0] / (square + eps)) - 1)
    assert allowed.judged.all()
    return share / (allowed.root_error[:, 0] - 10 * UNIT)


@pytest.mark.parametrize("way", [1, -1, 0, FLOAT32])
@pytest.mark.parametrize("statistic", KINDS, ids=lambda one: one.__name__)
def test_no_computation_passes_the_bound_of_its_kind(statistic, way):
    """Whatever the row and the roundings, the root stays 10 roundings inside the bound."""
    for n in (1, 2, 3, 8, 64, 300):
        x = rows_of(n)
        shuffled = np.random.default_rng(5).permuted(x, axis=1)
        for rows in (x, x[:, ::-1], shuffled):
            assert (
                departures(statistic, KINDS[statistic], np.ascontiguousarray(rows), way).max() < 1
            )


@pytest.mark.parametrize(
    ("statistic", "row"),
    [
        (divided, [1.0, -1.0] * 150),
        (by_largest, [1.0, -1.0] * 150),
        (running_weights, [1.0, *[0.0] * 299]),
        (running_scale, np.linspace(1, 1.5, 300)),
    ],
    ids=["divided", "by-largest", "running-weights", "running-scale"],
)
def test_narrower_kinds_do_not_hold_it(statistic, row):
    """The same computations pass the bound of the kind before theirs, where roundings conspire."""
    x = np.float32([row])
    kinds = statistics_of(centred=False)
    narrower = kinds[kinds.index(KINDS[statistic]) - 1]
    assert max(departures(statistic, narrower, x, way)[0] for way in (1, -1)) > 1


@pytest.mark.parametrize("n", [1, 3, 64, 300])
@pytest.mark.parametrize("statistic", KINDS, ids=lambda one: one.__name__)
def test_what_underflows_is_allowed(statistic, n):
    """In float32 itself, rows whose scaled squares are subnormal, without eps."""
    random = np.random.default_rng(7)
    x = np.float32(random.normal(size=(40, n)) * np.exp2(-62 + random.integers(0, 6, (40, 1))))
    exact = Exact(check("rms", x, None, None, eps=0.0))
    x = x[Allowance(exact).judged[:, 0]]
    assert len(x) > 5
    assert departures(statistic, KINDS[statistic], x, FLOAT32, 0.0).max() < 1


def test_each_kind_lies_within_the_next():
    """On all of these rows, for both norms, the bounds grow from kind to kind."""
    for norm in ("rms", "layer"):
        for n in (1, 3, 64, 300):
            exact = Exact(check(norm, rows_of(n), None, None, eps=EPS))
            bounds = [
                Allowance(exact, kind).normalised for kind in statistics_of(centred=norm == "layer")
            ]
            for narrow, wide in itertools.pairwise(bounds):
                assert (narrow <= wide).all()


@pytest.mark.parametrize("place", [0, -1])
def test_a_shifted_row_stays_within_its_bound(place):
    """x less one of its elements, and the mean of that, in float32: every output is allowed."""
    for n in (1, 3, 64, 300):
        x = rows_of(n)
        exact = Exact(check("layer", x, None, None, eps=EPS))
        allowed = Allowance(exact, "shifted")
        part = x - x[:, place][:, None]
        mean = np.add.accumulate(part, axis=1)[:, -1:] / np.float32(n)
        d = part - mean
        square = np.add.accumulate(d * d, axis=1)[:, -1:] / np.float32(n)
        y = d * (np.float32(1) / np.sqrt(square + np.float32(EPS)))
        assert (np.abs(y - exact.normalised[0]) <= allowed.normalised).all()
