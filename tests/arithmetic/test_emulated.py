# SPDX-License-Identifier: Apache-2.0
"""Emulated operations: every result is the exact one, rounded once."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from slow_rounding import MODES, float32_round, grid, near_root, same

from precision_lab.arithmetic import odd
from precision_lab.arithmetic.emulated import Emulated
from precision_lab.arithmetic.orders.table import orders
from precision_lab.exceptions import InputError
from precision_lab.numbers.table import formats

NARROW = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")


def finite(name: str) -> np.ndarray:
    """All finite values of a format, zeros of both signs among them where it has them."""
    codes = np.arange(2 ** formats[name].bits)
    values = formats[name].decode(codes)
    return values[np.isfinite(values)]


def exact_results(
    operation: str, a: np.ndarray, b: np.ndarray
) -> tuple[list[Fraction], np.ndarray]:
    """The different exact results of an operation on FP8 values, and which pair has which."""
    if operation != "divide":
        # float64 holds every sum and product of two FP8 values exactly: they have 34 bits at most.
        known, place = np.unique(getattr(np, operation)(a, b), return_inverse=True)
        return [Fraction(value) for value in known.tolist()], place
    # In units of 2^-16 all values are integers.
    x, y = (np.ldexp(part, 16).astype(np.int64) for part in (a, b))
    common = np.gcd(x, y) * np.sign(y)
    known, place = np.unique([x // common, y // common], axis=1, return_inverse=True)
    return [Fraction(n, d) for n, d in known.T.tolist()], place


def test_slow_rounding_can_fail():
    """The slow rounding tells a midpoint from its neighbours, and one mode from another."""
    tie, nudge = 1 + Fraction(1, 256), Fraction(1, 2**60)
    slow = grid("bfloat16")
    assert (1.0, 1.0078125) == (slow.round(tie, "nearest_even"), slow.round(tie, "nearest_away"))
    assert (1.0, 1.0078125) == tuple(slow.round(tie + s * nudge, "nearest_even") for s in (-1, 1))
    assert (448.0, math.inf) == (
        grid("float8_e4m3fn").round(Fraction(464), "nearest_even"),
        grid("float16").round(Fraction(65520), "nearest_even"),
    )
    assert math.isnan(grid("float8_e4m3fn").round(Fraction(465), "nearest_even"))
    assert [False, True] == same(np.array([1.0, np.nan]), np.array([2.0, np.nan])).tolist()


@pytest.mark.parametrize("operation", ["add", "subtract", "multiply", "divide"])
@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_all_pairs_of_fp8(name, operation):
    """Every pair of finite FP8 values gives the exact result rounded once, in every mode."""
    values = finite(name)
    a, b = (part.ravel() for part in np.meshgrid(values, values))
    if operation == "divide":
        a, b = a[b != 0], b[b != 0]
    slow = grid(name)
    exacts, which = exact_results(operation, a, b)
    places = [slow.place(exact) for exact in exacts]
    for overflow in ("ieee", "saturate"):
        for mode in MODES:
            arithmetic = Emulated(formats[name], mode=mode, overflow=overflow)
            expected = np.array([slow.pick(each, mode, overflow) for each in places])[which]
            actual = getattr(arithmetic, operation)(a, b)
            assert 0 == np.count_nonzero(~same(expected, actual)), (mode, overflow)


@pytest.mark.parametrize("operation", ["sqrt", "rsqrt"])
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_all_roots_of_16_bit_formats(name, operation):
    """√ and 1/√ of every code of fp16 and bf16 are correctly rounded, in every mode."""
    values = finite(name)
    positive = values[values > 0]
    slow = grid(name)
    exacts = [Fraction(value) for value in positive.tolist()]
    inverse = operation == "rsqrt"
    places = [slow.place(near_root(1 / v if inverse else v, 80)) for v in exacts]
    for mode in MODES:
        actual = getattr(Emulated(formats[name], mode=mode), operation)(positive)
        expected = np.array([slow.pick(place, mode) for place in places])
        assert 0 == np.count_nonzero(~same(expected, actual)), mode
        # No other code has a root but the zeros and infinity.
        assert np.isnan(
            getattr(Emulated(formats[name], mode=mode), operation)(values[values < 0])
        ).all()


def test_roots_of_special_values():
    """Roots of zeros, infinities and negative numbers are IEEE 754's."""
    arithmetic = Emulated(formats["float16"])
    zeros = np.array([0.0, -0.0, np.inf])
    with np.errstate(divide="ignore"):
        assert (1 / zeros).tolist() == arithmetic.rsqrt(zeros).tolist()
    negative = np.array([-1.0, -(2.0**-24), -np.inf])
    assert np.isnan(arithmetic.rsqrt(negative)).all()
    assert np.isnan(arithmetic.sqrt(negative)).all()


def test_float32_rsqrt_is_correctly_rounded_where_two_roundings_are_not():
    """1/√ in float32 is rounded once; the reciprocal of a rounded root differs in many places."""
    rng = np.random.default_rng(1)
    values = np.ldexp(rng.integers(2**23, 2**24, 4000), rng.integers(-172, 104, 4000))
    values = values.astype(np.float32)
    expected = [float32_round(near_root(1 / Fraction(value))) for value in values.tolist()]
    single = Emulated(formats["float32"])
    assert expected == single.rsqrt(values).tolist()
    twice = single.divide(np.float32(1), single.sqrt(values))
    assert 0.1 < np.mean(twice != np.array(expected)) < 0.4


def test_rsqrt_next_to_a_midpoint():
    """Where 1/√v lies closest to a midpoint the exact comparison decides, not float64."""
    single = Emulated(formats["float32"])
    rng = np.random.default_rng(5)
    # v = RN(1/m²) for midpoints m of float32: 1/√v is within 2^-24 of m, often far closer.
    m = np.ldexp(2.0 * rng.integers(2**23, 2**24, 3000) + 1, -25)
    values = (1 / (m * m)).astype(np.float32)
    expected = [float32_round(near_root(1 / Fraction(value))) for value in values.tolist()]
    assert expected == single.rsqrt(values).tolist()
    # A float64 operand can be far closer to the midpoint than float64's own 1/√ can tell.
    wide = 1 / (m * m)
    expected = [float32_round(near_root(1 / Fraction(value))) for value in wide.tolist()]
    assert expected == single.rsqrt(wide).tolist()
    assert expected != (1 / np.sqrt(wide)).astype(np.float32).tolist()


WIDER_SUMS = [
    # float32 (1 + 2^-11) + 2^-60 lies above the fp16 midpoint, and float64 rounds it onto it.
    ("float16", 1 + 2.0**-11, 2.0**-60, 1 + 2.0**-10),
    ("float16", 1 + 2.0**-11, -(2.0**-60), 1.0),
    ("float16", 1 + 2.0**-11, 0.0, 1.0),
    ("bfloat16", 1 + 2.0**-8, 2.0**-60, 1 + 2.0**-7),
    ("bfloat16", -1 - 2.0**-8, -(2.0**-126), -1 - 2.0**-7),
    ("float8_e4m3fn", 1 + 2.0**-4, 2.0**-149, 1 + 2.0**-3),
    ("float8_e4m3fn", 464.0, 2.0**-149, np.nan),
    ("float8_e5m2", 61440.0, -(2.0**-60), 57344.0),
    ("float16", 2.0**-25, 2.0**-149, 2.0**-24),
    ("float32", 1 + 2.0**-24, 2.0**-80, 1 + 2.0**-23),
]


@pytest.mark.parametrize(("name", "a", "b", "expected"), WIDER_SUMS)
def test_sums_of_wider_operands_are_rounded_once(name, a, b, expected):
    """A sum of operands wider than the target is rounded from its exact value."""
    actual = Emulated(formats[name]).add(np.array([a]), np.array([b]))
    assert same(np.array([expected]), actual).all()


def test_a_plain_float64_sum_would_fail():
    """The cases above do tell: float64's own sum, rounded, gets half of them wrong."""
    wrong = [
        not same(np.array(expected), formats[name].round(a + b)).all()
        for name, a, b, expected in WIDER_SUMS
    ]
    assert sum(wrong) >= 5


def boundaries(name: str, rng: np.random.Generator, count: int) -> np.ndarray:
    """Values of a format and midpoints between them, where roundings are decided."""
    values = finite(name)
    positive = values[values > 0]
    i = rng.integers(0, len(positive) - 1, count)
    positive.sort()
    return (positive[i] + positive[i + rng.integers(0, 2, count)]) / 2


def check_exactly(name, operation, operands, exact):
    """Hold an operation on arrays to the slow rounding, in every mode; nothing may be double."""
    slow = grid(name)
    places = [slow.place(exact(*map(Fraction, each))) for each in np.transpose(operands).tolist()]
    for mode in MODES:
        actual = getattr(Emulated(formats[name], mode=mode), operation)(*operands)
        expected = np.array([slow.pick(place, mode) for place in places])
        assert 0 == np.count_nonzero(~same(expected, actual)), mode


@pytest.mark.parametrize("name", NARROW)
def test_results_next_to_a_boundary(name):
    """Results within 2^-53 of a value or a midpoint, built from the result, are rounded once.

    float64's own result falls on the boundary in half of them: it cannot tell the sides apart.
    """
    rng = np.random.default_rng(11)
    m = boundaries(name, rng, 400)
    b = rng.uniform(1, 2, 400) * rng.choice([1, -1], 400)
    assert 0.3 < np.mean((m * b) / b == m)
    check_exactly(name, "divide", (m * b, b), Fraction.__truediv__)
    check_exactly(name, "multiply", (m / b, b), Fraction.__mul__)
    check_exactly(name, "fma", (b, m / b, m / 3), lambda x, y, z: x * y + z)
    check_exactly(name, "fma", (b, m / 3, m - b * (m / 3)), lambda x, y, z: x * y + z)
    beside = np.nextafter(m * m, np.where(rng.integers(0, 2, 400) == 1, np.inf, 0))
    check_exactly(name, "sqrt", (beside,), near_root)
    check_exactly(name, "rsqrt", (1 / (m * m),), lambda x: near_root(1 / x))


def infinity(exact: Fraction) -> float:
    """The one of its sign: a fraction past float64's range is not for `math.copysign`."""
    return math.inf if exact > 0 else -math.inf


def exact_odd(exact: Fraction) -> float:
    """A number rounded to odd in float64, found from its nearest value."""
    try:
        value = exact.numerator / exact.denominator
    except OverflowError:
        value = infinity(exact)
    if abs(Fraction(value) if math.isfinite(value) else Fraction(2) ** 1024) > abs(exact):
        value = math.nextafter(value, 0.0)
    odd_bit = int(np.float64(value).view(np.int64)) & 1
    if Fraction(value) == exact or odd_bit:
        return value
    return math.nextafter(value, infinity(exact))


@given(data=st.data())
def test_results_are_rounded_to_odd_in_all_of_float64(data):
    """Products, quotients and fused sums are odd neighbours at every exponent, the ends too."""
    a, b, c = (data.draw(floats(64)) for _ in range(3))
    x, y, z = (np.array([part]) for part in (a, b, c))
    with np.errstate(all="ignore"):
        assert exact_odd(Fraction(a) * Fraction(b)) == odd.product_to_odd(x, y)[0]
        assert exact_odd(Fraction(a) * Fraction(b) + Fraction(c)) == odd.fma_to_odd(x, y, z)[0]
        if b:
            assert exact_odd(Fraction(a) / Fraction(b)) == odd.quotient_to_odd(x, y)[0]


def floats(width: int) -> st.SearchStrategy[float]:
    """Finite floats by bit pattern: every exponent is as likely as every other."""
    kind, integer = (np.float32, np.uint32) if width == 32 else (np.float64, np.uint64)
    bits = st.integers(0, 2**width - 1)
    return bits.map(lambda b: float(integer(b).view(kind))).filter(math.isfinite)


@st.composite
def near_each_other(draw, width: int) -> tuple[float, ...]:
    """Three floats, the later ones often scaled to the size of the first."""
    a, b, c = (draw(floats(width)) for _ in range(3))
    if draw(st.booleans()):
        kind = np.float32 if width == 32 else np.float64
        top = math.frexp(a)[1]
        shift = draw(st.integers(-70, 70))
        with np.errstate(over="ignore", under="ignore"):
            b = float(kind(math.ldexp(math.frexp(b)[0], max(-1070, min(1000, top + shift)))))
        b = b if math.isfinite(b) else 1.0
    return a, b, c


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("name", NARROW)
@given(data=st.data())
def test_operands_of_any_width(name, width, data):
    """Any float32 or float64 operands give the exact result rounded once, in every mode."""
    a, b, c = data.draw(near_each_other(width))
    mode = data.draw(st.sampled_from(MODES))
    overflow = data.draw(st.sampled_from(["ieee", "saturate"]))
    arithmetic = Emulated(formats[name], mode=mode, overflow=overflow)
    x, y, z = (np.array([part]) for part in (a, b, c))
    cases = [
        (arithmetic.add(x, y), Fraction(a) + Fraction(b)),
        (arithmetic.subtract(x, y), Fraction(a) - Fraction(b)),
        (arithmetic.multiply(x, y), Fraction(a) * Fraction(b)),
        (arithmetic.square(x), Fraction(a) ** 2),
        (arithmetic.fma(x, y, z), Fraction(a) * Fraction(b) + Fraction(c)),
        (arithmetic.sqrt(np.abs(x)), near_root(abs(Fraction(a)))),
    ]
    if b:
        cases.append((arithmetic.divide(x, y), Fraction(a) / Fraction(b)))
    if a:
        cases.append((arithmetic.rsqrt(np.abs(x)), near_root(1 / abs(Fraction(a)))))
    for actual, exact in cases:
        assert same(np.array([grid(name).round(exact, mode, overflow)]), actual).all()


@given(floats(32), floats(32), floats(32))
def test_float32_operations_are_correctly_rounded(a, b, c):
    """float32, on the hardware's path and on the general one, is correctly rounded."""
    single = Emulated(formats["float32"])
    for kind in (np.float32, np.float64):
        x, y, z = (np.array([part], kind) for part in (a, b, c))
        cases = [
            (single.add(x, y), Fraction(a) + Fraction(b)),
            (single.multiply(x, y), Fraction(a) * Fraction(b)),
            (single.fma(x, y, z), Fraction(a) * Fraction(b) + Fraction(c)),
            (single.sqrt(np.abs(x)), near_root(abs(Fraction(a)))),
        ]
        if b:
            cases.append((single.divide(x, y), Fraction(a) / Fraction(b)))
        for actual, exact in cases:
            assert np.float32 == actual.dtype
            assert float32_round(exact) == actual[0]


@given(floats(64), floats(64), floats(64))
@example(1e300, 1e300, 0.0)
@example(-1e300, 1e300, 1e300)
def test_float64_fma_and_rsqrt_are_correctly_rounded(a, b, c):
    """float64's fma and 1/√, which NumPy lacks, are rounded once to nearest-even."""
    double = Emulated(formats["float64"])
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        expected = exact.numerator / exact.denominator
    except OverflowError:
        expected = infinity(exact)
    assert expected == double.fma(np.array([a]), np.array([b]), np.array([c]))[0]
    if a:
        with mpmath.workprec(400):
            root = 1 / mpmath.sqrt(mpmath.mpf(abs(a)))
            expected = Fraction(int(mpmath.floor(root * 2**900)), 2**900)
        # At 2^900 and up the quotient still has 53 bits to spare for every finite operand.
        assert expected.numerator / expected.denominator == double.rsqrt(np.array([abs(a)]))[0]


def test_stochastic_rounding_is_right_on_average():
    """Stochastic sums hit the exact value on average, which nearest-even misses."""
    generator = np.random.default_rng(7)
    ones, small = np.ones(20000), np.full(20000, 2.0**-9)
    total = Emulated(formats["bfloat16"], mode="stochastic", generator=generator).add(ones, small)
    assert {1.0, 1 + 2.0**-7} == set(total.tolist())
    assert abs(total.mean() - (1 + 2.0**-9)) < 2.0**-7 * 0.5 / math.sqrt(20000) * 4


def test_the_mean_divides_by_the_exact_count():
    """4096 bf16 ones: the sum stagnates at 256 in turn, and 256/4096 is the mean."""
    ones = np.ones((1, 4096))
    arithmetic = Emulated(formats["bfloat16"])
    assert 256 == arithmetic.sum(ones, orders["sequential"])[0]
    assert 0.0625 == arithmetic.mean(ones, orders["sequential"])[0]
    # 70,000 is past fp16's range; the count is not rounded to it.
    assert 0.5 == Emulated(formats["float16"]).divided(np.array([35000.0]), 70000)[0]
    # 2^24 + 1 is no float32: the division is still one rounding from the exact quotient.
    count = 2**24 + 1
    quotient = Emulated(formats["float32"]).divided(np.array([3.0], np.float32), count)
    assert float32_round(Fraction(3, count)) == quotient[0]


def test_containers():
    """float32 lives in float32 arrays, all else in float64."""
    one = np.ones(1)
    assert np.float32 == Emulated(formats["float32"], mode="up").add(one, one).dtype
    assert np.float64 == Emulated(formats["float32"].unbounded).add(one, one).dtype
    assert np.float64 == Emulated(formats["tf32"]).add(one, one).dtype
    assert np.float64 == Emulated(formats["float64"]).add(np.float32(one), np.float32(one)).dtype


def test_float64_adds_in_float64_even_float32_operands():
    """Operands narrower than the format are widened first, not summed in their own type."""
    a, b = np.array([1.0], np.float32), np.array([2.0**-40], np.float32)
    assert 1 + 2.0**-40 == Emulated(formats["float64"]).add(a, b)[0]


@pytest.mark.parametrize(
    "arguments",
    [
        {"format": "bf61"},
        {"format": "bfloat16", "mode": "nearest"},
        {"format": "bfloat16", "overflow": "clip"},
        {"format": "float64", "mode": "up"},
        {"format": formats["float64"].flushed},
        {"format": formats["float64"].unbounded},
        {"format": "float16", "mode": "stochastic"},
    ],
)
def test_bad_arithmetics_are_refused(arguments):
    """Unknown names and impossible combinations are told in one sentence."""
    with pytest.raises(InputError):
        Emulated(**arguments)
