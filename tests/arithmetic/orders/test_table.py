# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_orders import slow_mlas, slow_windows, slow_ynn
from slow_torch import slow_cascade

from precision_lab.arithmetic.emulated import Emulated
from precision_lab.arithmetic.orders.table import orders
from precision_lab.exceptions import InputError
from precision_lab.numbers.table import formats

EXAMPLES = [
    *orders,
    "blocked:1",
    "blocked:7",
    "blocked:1000",
    "lanes:1x1",
    "lanes:32x1",
    "lanes:8x3",
    "accumulator:bfloat16",
]
SINGLE = Emulated(formats["float32"])


SLOW = {
    "torch-cascade": slow_cascade,
    "mlas": slow_mlas,
    "xla-windows": slow_windows,
    "ynn": slow_ynn,
}


class Depth:
    """Arithmetic on depths: a value is 1 + the additions behind it, and 0 is a padded zero."""

    def add(self, a, b):
        """One addition more than the deeper operand, unless one of them is no addend."""
        return np.where(a == 0, b, np.where(b == 0, a, np.maximum(a, b) + 1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pairwise_is_numpys_own_order(dtype):
    """`pairwise` has the bits of np.sum over a contiguous last axis, whatever the length."""
    rng = np.random.default_rng(0)
    lengths = [*range(400), *rng.integers(400, 6000, 60), 4096, 5125, 8192, 8193, 12288, 100_003]
    arithmetic = Emulated(formats[np.dtype(dtype).name])
    for n in lengths:
        values = rng.standard_normal((3, n)) * 10.0 ** rng.integers(-4, 4, (3, n))
        values = values.astype(dtype)
        actual = orders["pairwise"].sum(values, arithmetic)
        assert np.sum(values, axis=-1).tobytes() == actual.tobytes(), n


def test_another_order_has_other_bits():
    """The comparison above can fail: no other order has NumPy's bits."""
    values = np.random.default_rng(0).standard_normal((8, 4096)).astype(np.float32)
    expected = np.sum(values, axis=-1)
    for name in set(orders) - {"pairwise"}:
        assert (expected != orders[name].sum(values, SINGLE)).any(), name


def plain(name: str, row: list[np.float32]) -> np.float32:
    """The sum of one row by a loop that follows the order's description."""
    zero, (kind, _, given_) = np.float32(0), name.partition(":")
    if kind in ("sequential", "wider"):
        total = zero if kind == "sequential" else np.float64(0)
        for value in row:
            total = total + value
        return np.float32(total)
    if kind == "accumulator":
        total = np.float32(0)
        for value in row:
            # float64 holds the exact sum of these; float32 would round it first.
            total = formats[given_].cast(np.float64(total) + np.float64(value))[()]
        return np.float32(total)
    if kind == "blocked":
        size, total = int(given_), zero
        for start in range(0, len(row), size):
            total = total + plain("sequential", row[start : start + size])
        return total
    if kind == "lanes":
        width, vector = map(int, given_.split("x"))
        threads = [zero] * width
        for start in range(0, len(row), vector):
            for value in row[start : start + vector]:
                threads[start // vector % width] += value
        offset = width // 2
        while offset:
            threads = [threads[t] + threads[t ^ offset] for t in range(width)]
            offset //= 2
        return threads[0]
    if kind in SLOW:
        return SLOW[kind](row)
    total, lost = zero, zero
    for value in row:
        y = value - lost
        raised = total + y
        total, lost = raised, (raised - total) - y
    return total


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "pairwise"])
def test_orders_follow_their_description(name):
    """Every order has the bits of a plain loop over one row."""
    rng = np.random.default_rng(2)
    for n in (1, 2, 3, 7, 8, 31, 64, 129, 1023, 1024, 1500, 3333):
        values = (rng.standard_normal((2, n)) * 10.0 ** rng.integers(-3, 3, (2, n))).astype("f4")
        expected = [plain(name, list(row)) for row in values]
        assert expected == orders[name].sum(values, SINGLE).tolist(), n


@pytest.mark.parametrize(
    "name", [n for n in EXAMPLES if n.partition(":")[0] not in ("kahan", "wider", "accumulator")]
)
def test_depth_is_counted_exactly(name):
    """`depth` is the most additions that an addend passes through, for every length."""
    for n in [*range(1, 300), 576, 1000, 1023, 1024, 1025, 4096, 5125]:
        if name == "ynn" and n >= 1024:
            # Corrections are no addends, and are counted as additions.
            break
        deepest = orders[name].sum(np.ones((1, n)), Depth())[0]
        assert deepest - 1 == orders[name].depth(n), n


@pytest.mark.parametrize("name", [*orders, "blocked:7", "lanes:8x3", "accumulator:float8_e5m2"])
@pytest.mark.parametrize("format", ["bfloat16", "float8_e4m3fn"])
@settings(max_examples=40)
@given(data=st.data())
def test_factor_bounds_the_error(format, name, data):
    """The error of a sum is at most `factor` times the sum of magnitudes."""
    n = data.draw(st.integers(0, 150))
    seed = data.draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    spread = data.draw(st.sampled_from([0.0, 1.0, 3.0]))
    values = rng.standard_normal(n) * 2.0 ** rng.normal(0, spread, n) / (8 + n)
    if data.draw(st.booleans()):
        values = np.abs(values)
    arithmetic = Emulated(formats[format])
    values = arithmetic.cast(values).astype(np.float64)
    computed = arithmetic.sum(values[None], orders[name])[0]
    exact = [Fraction(value) for value in values.tolist()]
    error = abs(Fraction(float(computed)) - sum(exact, Fraction(0)))
    factor = orders[name].factor(n, formats[format])
    assert np.isinf(factor) or error <= Fraction(factor) * sum(map(abs, exact))


def test_factors_are_of_the_textbook_size():
    """Sequential errs by (n − 1)u at most, a tree by about depth·u, Kahan by about 3u."""
    single, u = formats["float32"], 2.0**-24
    assert 4095 * u == orders["sequential"].factor(4096, single)
    assert 23 * u < orders["pairwise"].factor(4096, single) < 23.001 * u
    assert 2 * u < orders["kahan"].factor(4096, single) < 3.01 * u
    assert u < orders["wider:float64"].factor(4096, single) < 1.001 * u
    # In 4 bits Kahan's argument proves nothing for long rows, and says so.
    assert np.isinf(orders["kahan"].factor(4096, formats["float8_e4m3fn"]))


@pytest.mark.parametrize("name", EXAMPLES)
def test_short_rows_and_zeros(name):
    """A sum of nothing is +0, of one value that value, of negative zeros +0, in any shape."""
    order = orders[name]
    assert [0.0, 0.0] == order.sum(np.zeros((2, 0), np.float32), SINGLE).tolist()
    assert (0, 3) == order.sum(np.zeros((0, 3, 5), np.float32), SINGLE).shape
    assert [1.5, -2.0] == order.sum(np.array([[1.5], [-2.0]], np.float32), SINGLE).tolist()
    assert not np.signbit(order.sum(np.full((1, 9), -0.0, np.float32), SINGLE)).any()
    assert np.float32(3) == order.sum(np.array([1, 2], np.float32), SINGLE)


@pytest.mark.parametrize("name", EXAMPLES)
def test_nan_and_infinities_come_through(name):
    """A NaN anywhere makes the sum NaN, an infinity infinite (Kahan: inf − inf)."""
    values = np.ones((2, 40), np.float32)
    values[0, 17], values[1, 23] = np.nan, np.inf
    total = orders[name].sum(values, SINGLE)
    assert np.isnan(total[0])
    assert np.isnan(total[1]) if name == "kahan" else total[1] == np.inf


def test_sixteen_bit_sums_stagnate():
    """4096 ones in bf16: 256 in turn, 4096 in a tree; compensation and a wider sum save the day."""
    ones, low = np.ones((1, 4096)), Emulated(formats["bfloat16"])
    sums = {name: low.sum(ones, order)[0] for name, order in orders.items()}
    assert 256 == sums["sequential"]
    exact = ("pairwise", "blocked:128", "lanes:256x4", "kahan", "wider:float64", "torch-cascade")
    assert {4096.0} == {sums[name] for name in exact}


@pytest.mark.parametrize(
    "name",
    ["pairwize", "blocked", "blocked:0", "blocked:x", "lanes:3x4", "lanes:256", "wider:bf61", 7],
)
def test_unknown_orders_are_refused(name):
    """A name that is no order is told in one sentence."""
    with pytest.raises(InputError):
        orders[name]
    assert name not in orders


@pytest.mark.parametrize(
    "name", ["blocked:0", "blocked:x", "lanes:3x4", "lanes:256", "wider:", "accumulator:"]
)
def test_the_rule_of_a_parameter_is_told(name):
    """A name whose parameters are wrong is answered with the rule, and its example is an order."""
    with pytest.raises(InputError, match=f"no order '{name}': write ") as told:
        orders[name]
    assert str(told.value).rpartition("such as ")[2] in orders


def test_parametrised_orders_are_found():
    """Any block size, width, vector and format makes an order, named as it was asked for."""
    assert "lanes:512x8" in orders
    assert "lanes:512x8" == orders["lanes:512x8"].name
    assert "wider:float32" == orders["wider:fp32"].name
    assert "accumulator:bfloat16" == orders["accumulator:bf16"].name
    with pytest.raises(InputError, match="no wider"):
        SINGLE.sum(np.ones((1, 3)), orders["wider:float16"])


@pytest.mark.parametrize("format", ["bfloat16", "float8_e4m3fn"])
def test_the_factor_of_compensated_chunks(format):
    """`ynn` past its first chunk: the error is within the factor, which hardly grows."""
    order, arithmetic = orders["ynn"], Emulated(formats[format])
    for n in (1024, 1025, 2047, 2048, 3000, 5125):
        values = np.random.default_rng(n).standard_normal((8, n)) / 64
        values = arithmetic.cast(np.concatenate([values, np.abs(values)])).astype(np.float64)
        error = np.abs(arithmetic.sum(values, order) - values.sum(-1))
        factor = order.factor(n, formats[format])
        assert (error <= factor * np.abs(values).sum(-1)).all(), n
        if format == "bfloat16":
            assert 2.0**-5 < factor < 2.0**-3
