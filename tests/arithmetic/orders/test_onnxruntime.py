# SPDX-License-Identifier: Apache-2.0
"""The moments of `onnxruntime_orders` against loops, and where `fused_bounds` puts them."""

from __future__ import annotations

import numpy as np
import pytest
from slow_orders import slow_mlas, slow_mlas_squares

from precision_lab.arithmetic.emulated import Emulated
from precision_lab.arithmetic.orders.onnxruntime import fused_mean_square, fused_two_pass
from precision_lab.numbers.table import formats
from precision_lab.plan.bounds.error_model import Roundings
from precision_lab.plan.bounds.onnxruntime import FusedMeanSquare, FusedTwoPass
from precision_lab.plan.bounds.row_moments import Rows

SINGLE = formats["float32"]


def rows_of(n, shift, rows=3):
    """Rows about a number."""
    values = np.random.default_rng(n).standard_normal((rows, n)) + shift
    return values.astype(np.float32)


@pytest.mark.parametrize("n", [1, 3, 7, 8, 11, 12, 15, 16, 100, 769])
def test_the_squares_are_those_of_the_loops(n):
    """Lanes, halves, and the last few, of which four may round on their own: the same bits."""
    x = rows_of(n, 0.5)
    mean, total = fused_mean_square(x, Emulated(SINGLE), SINGLE)
    assert [0, 0, 0] == mean.tolist()
    assert [slow_mlas_squares(list(row)) for row in x] == list(total)


def test_a_row_of_halves_rounds_no_square():
    """Of 20 float32 numbers four squares are rounded alone; where x was 16-bit all are fused."""
    x = rows_of(20, 300, rows=200)
    sums = {}
    for source in ("float32", "float16"):
        mean, total = fused_two_pass(x, Emulated(SINGLE), formats[source])
        half = source == "float16"
        expected = [slow_mlas_squares(list(row), half=half) for row in x - mean[:, None]]
        assert expected == list(total)
        sums[source] = total
    assert (sums["float32"] != sums["float16"]).any()


def test_rounded_squares_have_other_sums():
    """The comparison above can fail: where each square is rounded, one sum in four is another."""
    x = rows_of(769, 0.5, rows=64)
    _, total = fused_mean_square(x, Emulated(SINGLE), SINGLE)
    rounded = np.array([slow_mlas(list(row * row)) for row in x])
    assert 0.1 < np.mean(rounded != total) < 0.9


@pytest.mark.parametrize("n", [1, 3, 4, 8, 15, 100, 769])
def test_the_mean_is_rounded_once(n):
    """Summed and divided in float64 and then rounded; the squares are those of the deviations."""
    x = rows_of(n, 300)
    mean, total = fused_two_pass(x, Emulated(SINGLE), SINGLE)
    assert (x.astype(np.float64).mean(-1).astype(np.float32) == mean).all()
    deviations = x - mean[:, None]
    assert [slow_mlas_squares(list(row)) for row in deviations] == list(total)


@pytest.mark.parametrize("target", ["float32", "bfloat16", "float16", "float8_e4m3fn"])
def test_moments_lie_in_their_enclosures(target):
    """Mean and total in any arithmetic are where the derivation puts them."""
    kind, arithmetic, bounded = formats[target], Emulated(formats[target]), 0
    for compute, derivation in (
        (fused_mean_square, FusedMeanSquare),
        (fused_two_pass, FusedTwoPass),
    ):
        for n in (1, 2, 7, 12, 129, 600):
            for shift, size in ((0, 1), (3, 1), (0, 2.0**-9)):
                values = np.random.default_rng(n).standard_normal((16, n)) * size + shift
                x = arithmetic.cast(values)
                exact = x.astype(np.float64)
                mean, total = compute(x, arithmetic, kind)
                roundings = Roundings(dict.fromkeys(("compute", "sum"), kind))
                with np.errstate(all="ignore"):
                    derived = derivation(Rows(exact, (0.0, np.zeros(1)), roundings))
                    error = derived.mean_error()[:, 0]
                    low, high = (end[:, 0] for end in derived.total())
                known = np.isfinite(high) & np.isfinite(error)
                bounded += np.count_nonzero(known)
                assert ((low <= total) & (total <= high))[known].all(), (n, shift)
                if compute is fused_two_pass:
                    off = np.abs(mean - exact.mean(-1))
                    assert (off <= error)[known].all(), (n, shift)
    assert bounded > 200
