# SPDX-License-Identifier: Apache-2.0
"""The chunked Welford of `torch_welford` against loops that know nothing of arrays."""

from __future__ import annotations

import numpy as np
import pytest
from slow_torch import slow_moments

from precision_lab.arithmetic.emulated import Emulated
from precision_lab.arithmetic.orders.torch_welford import Layout, chunked_welford
from precision_lab.numbers.table import formats
from precision_lab.plan.bounds.error_model import Roundings
from precision_lab.plan.bounds.row_moments import Rows
from precision_lab.plan.bounds.torch_welford import ChunkedWelford, derived

SINGLE = formats["float32"]
LENGTHS = (1, 5, 7, 8, 15, 16, 17, 64, 129, 260, 280, 600, 769, 896, 1100)


def rows_of(format, n, rows=3):
    """Rows about 3, as many walks, which show the merges, in float32 with values of a format."""
    steps = np.random.default_rng(n).standard_normal((2 * rows, n))
    x = np.concatenate([steps[:rows] + 3, np.cumsum(steps[rows:], axis=-1)])
    return formats[format].cast(x).astype(np.float32)


@pytest.mark.parametrize("format", ["float32", "float16", "bfloat16"])
def test_the_moments_are_those_of_the_loops(format):
    """One number after the other, a counter for the levels: the same bits."""
    for n in LENGTHS:
        x = rows_of(format, n)
        mean, total = chunked_welford(x, Emulated(SINGLE), formats[format])
        expected = [slow_moments(list(row), format) for row in x]
        assert expected == list(zip(mean, total, strict=True)), n


def test_the_loops_tell_formats_apart():
    """The comparison above can fail: the layout of 16-bit rows is another."""
    x = rows_of("float32", 1100)
    moments = chunked_welford(x, Emulated(SINGLE), SINGLE)
    actual = list(zip(*moments, strict=True))
    assert actual == [slow_moments(list(row), "float32") for row in x]
    assert actual != [slow_moments(list(row), "bfloat16") for row in x]


def test_the_layout():
    """A 16-bit vector is two of float32; what fills none is left over."""
    assert (1, 96, 1) == Layout.of(769, SINGLE)
    assert (2, 48, 1) == Layout.of(769, formats["float16"])
    assert [16, 16, 16] == Layout.of(769, formats["float16"]).sizes
    assert [16, 2] == Layout.of(150, SINGLE).sizes
    assert [] == Layout.of(7, SINGLE).sizes


@pytest.mark.parametrize("source", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("target", ["float32", "bfloat16", "float16", "float8_e4m3fn"])
def test_moments_lie_in_their_enclosures(source, target):
    """Mean and total in any arithmetic are where the derivation puts them."""
    kind, arithmetic, bounded = formats[target], Emulated(formats[target]), 0
    for n in (1, 2, 7, 8, 40, 129, 280, 300, 641, 1100):
        for shift, size in ((0, 1), (3, 1), (100, 0.1), (0, 2.0**-9), (0, kind.tiny)):
            values = np.random.default_rng(n).standard_normal((16, n))
            values[8:12] = np.cumsum(values[8:12], axis=-1)
            values[12:, :: -(-n // 2)] = 0
            values = values * size + shift
            values[0] = values[0, 0]
            x = arithmetic.cast(values)
            exact = x.astype(np.float64)
            mean, total = chunked_welford(x, arithmetic, formats[source])
            with np.errstate(all="ignore"):
                held = Rows(exact, (0.0, np.zeros(1)), Roundings(
                    dict.fromkeys(("compute", "sum"), kind)
                ))  # fmt: skip
                derivation = ChunkedWelford(held, formats[source])
                error, enclosure = derivation.mean_error()[:, 0], derivation.total()
            off = np.abs(mean - exact.mean(-1))
            known = np.isfinite(error) & np.isfinite(enclosure.high[:, 0])
            bounded += np.count_nonzero(known)
            assert (off <= error)[known].all(), (n, shift)
            assert (enclosure.low[:, 0] <= total)[known].all(), (n, shift)
            assert (total <= enclosure.high[:, 0])[known].all(), (n, shift)
    assert bounded > (100 if kind.bits == 8 else 300)


def test_the_size_of_the_errors():
    """The mean of 4096 errs by 19u of the largest x and 8u of the range; M has 46 factors."""
    u = 2.0**-24
    errors = derived(4096, formats["bfloat16"], SINGLE)
    assert errors.mean[0] < 8 * u
    assert errors.mean[1] < 19 * u
    assert 46 == errors.roundings
    assert errors.skew < 4 * u


def test_a_merge_with_nothing_may_overflow():
    """641 is four chunks, nothing and one more: of 2^125 the mean times 16 is past float32."""
    for exponent, expected in ((123, 0.0), (125, np.nan)):
        x = np.full((1, 641), 2.0**exponent, np.float32)
        _, total = chunked_welford(x, Emulated(SINGLE), SINGLE)
        assert np.array_equal([expected], total, equal_nan=True)
        held = Rows(x.astype(np.float64), (0.0, np.zeros(1)), Roundings(
            {"compute": SINGLE, "sum": SINGLE}
        ))  # fmt: skip
        high = ChunkedWelford(held, SINGLE).total().high[0, 0]
        assert np.isfinite(expected) == np.isfinite(high)


def test_a_constant_row_has_no_deviations():
    """Every mean lies among the x, so that M of a constant row is 0, and its enclosure too."""
    x = np.full((1, 300), 5e4, np.float32)
    mean, total = chunked_welford(x, Emulated(SINGLE), formats["float16"])
    assert (5e4, 0.0) == (mean[0], total[0])
    held = Rows(
        x.astype(np.float64),
        (0.0, np.zeros(1)),
        Roundings({"compute": SINGLE, "sum": SINGLE}),
    )
    assert ChunkedWelford(held, formats["float16"]).total().high[0, 0] < 1e-3
