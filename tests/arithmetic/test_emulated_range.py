# SPDX-License-Identifier: Apache-2.0
"""Emulated operations on special values, at the ends of float64's range, and without a range."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from slow_rounding import grid, same

from precision_lab.arithmetic import odd
from precision_lab.arithmetic.emulated import Emulated
from precision_lab.exceptions import InputError
from precision_lab.numbers.table import formats


def test_results_far_outside_the_range():
    """Products and sums beyond float64's own range still know their side and their sign."""
    tie, big = 1 + 2.0**-8, np.finfo(np.float64).max
    cases = {
        "fma": [
            ((2.0**-600, 2.0**-600, tie), {"nearest_even": 1 + 2.0**-7, "down": 1.0}),
            ((2.0**-600, -(2.0**-600), tie), {"nearest_even": 1.0, "up": 1 + 2.0**-7}),
            ((1 + 2.0**-52, 2.0**-1060, 0.0), {"nearest_even": 0.0, "up": 2.0**-133}),
            (
                (big, big, -1.0),
                {"nearest_even": np.inf, "toward_zero": grid("bfloat16").values[-1]},
            ),
        ],
        "multiply": [
            ((2.0**-600, 2.0**-600), {"nearest_even": 0.0, "up": 2.0**-133, "down": 0.0}),
            ((2.0**-600, -(2.0**-600)), {"up": 0.0, "to_odd": -(2.0**-133)}),
            ((big, -big), {"up": -grid("bfloat16").values[-1], "down": -np.inf}),
        ],
        "add": [((big, big), {"nearest_even": np.inf, "down": grid("bfloat16").values[-1]})],
        "divide": [((2.0**-1060, 3 * 2.0**600), {"nearest_even": 0.0, "up": 2.0**-133})],
    }
    for operation, examples in cases.items():
        for operands, results in examples:
            for mode, expected in results.items():
                arithmetic = Emulated(formats["bfloat16"], mode=mode)
                actual = getattr(arithmetic, operation)(*(np.array([each]) for each in operands))
                assert expected == actual[0], (operation, operands, mode)
    # A true infinity is no overflow: every mode keeps it.
    assert (
        np.inf == Emulated(formats["bfloat16"], mode="down").add(np.array([np.inf]), np.ones(1))[0]
    )


def test_rational_numbers_rounded_to_odd():
    """The last resort of the fused multiply-add keeps 53 bits and a sticky last one."""
    assert 1 + 2.0**-52 == odd.fraction_to_odd(1 + Fraction(1, 2**80))
    assert -1 - 2.0**-52 == odd.fraction_to_odd(-1 - Fraction(1, 2**53))
    assert 1 + 3 * 2.0**-52 == odd.fraction_to_odd(1 + 3 * Fraction(1, 2**52) + Fraction(1, 2**60))
    assert 1.5 == odd.fraction_to_odd(Fraction(3, 2))
    assert 2 - 2.0**-52 == odd.fraction_to_odd(2 - Fraction(1, 2**54))
    assert 1 + 2.0**-52 == odd.fraction_to_odd(Fraction(2**54 + 1, 2**54))


@pytest.mark.parametrize("sign", [1, -1])
def test_float64_fma_beyond_plain_products(sign):
    """float64's fma is exact where the product underflows or overflows on the way."""
    double = Emulated(formats["float64"])
    tie = 1 + 2.0**-52
    fused = double.fma(np.array([2.0**-600]), np.array([sign * 2.0**-600]), np.array([tie]))
    assert tie == fused[0]
    a = 1 + 2.0**-30
    assert sign * 2.0**-60 == double.fma(
        np.array([sign * a]), np.array([a]), np.array([-sign * (1 + 2.0**-29)])
    )
    top = 2.0**1023
    assert sign * top == double.fma(
        np.array([sign * top]), np.array([2.0]), np.array([-sign * top])
    )


@pytest.mark.parametrize("sign", [1, -1])
def test_float64_fma_overflows_to_infinity(sign):
    """An overflow of float64's fma is an infinity, also where the exact result is an integer."""
    double = Emulated(formats["float64"])
    for a, b, c in ((1e308, 10.0, 1.0), (1e308, 1e308, -1e308), (1e308, 10.0, 0.5)):
        fused = double.fma(np.array([sign * a]), np.array([b]), np.array([sign * c]))
        assert [sign * np.inf] == fused.tolist()


UNBOUNDED = formats["bfloat16"].unbounded


def test_unbounded_formats_reach_as_far_as_float64():
    """Without a range a format rounds once at 2^±950 and beyond as it does at 1."""
    above, half = 1 + 2.0**-40, 1 + 2.0**-8
    one, root = np.ones(1), np.array([half * half])
    for mode, expected in (("nearest_even", 1.0), ("up", 1 + 2.0**-7), ("to_odd", 1 + 2.0**-7)):
        arithmetic = Emulated(UNBOUNDED, mode=mode)
        for power in (-1060, -950, -901, 0, 901, 950, 1020):
            near, far = 2.0 ** (power // 2), 2.0 ** (power - power // 2)
            x, y = np.array([above * near]), np.array([far])
            results = {
                "multiply": arithmetic.multiply(x, y),
                "divide": arithmetic.divide(x, 1 / y),
                "fma": arithmetic.fma(x, y, 0 * one),
                "fma after": arithmetic.fma(one * near, y, np.array([2.0 ** (power - 14)])),
            }
            wanted = dict.fromkeys(results, expected * 2.0**power)
            assert wanted == {name: value[0] for name, value in results.items()}, (mode, power)
    # Exact midpoints, and just above one: √ and 1/√ of numbers at both ends.
    nearest = Emulated(UNBOUNDED)
    for power in (-1000, 1000):
        beside = np.nextafter(root, 2) * 2.0**power
        assert (1 + 2.0**-7) * 2.0 ** (power // 2) == nearest.sqrt(beside)[0]
        assert 2.0 ** (power // 2) == nearest.sqrt(root * 2.0**power)[0]
        assert 2.0 ** (-power // 2) == nearest.rsqrt(one * 2.0**power)[0]


@pytest.mark.parametrize(
    ("operation", "operands"),
    [
        ("multiply", (2.0**-600, 2.0**-470)),
        ("multiply", (2.0**600, 2.0**600)),
        ("divide", (2.0**-1000, 2.0**70)),
        ("fma", (2.0**-600, 2.0**-600, 0.0)),
        ("fma", (-(2.0**600), 2.0**600, 1.0)),
        ("add", (2.0**1023, 2.0**1023)),
    ],
)
def test_unbounded_formats_refuse_what_float64_does_not_hold(operation, operands):
    """Past float64's range, or among the subnormals that lack bits, there is no result."""
    arrays = [np.array([each]) for each in operands]
    with pytest.raises(InputError, match=r"bfloat16 without its range .* from 2\^-1065 to 2\^1024"):
        getattr(Emulated(UNBOUNDED), operation)(*arrays)
    # Zeros and infinities that are exact are no such results.
    zero, inf = np.zeros(1), np.array([np.inf])
    assert 0 == Emulated(UNBOUNDED).multiply(zero, arrays[0])[0]
    assert np.inf == Emulated(UNBOUNDED).add(inf, arrays[0])[0]


@pytest.mark.parametrize("name", formats)
def test_special_values(name):
    """NaN and infinities follow IEEE 754 in every format, and nothing warns."""
    arithmetic = Emulated(formats[name])
    inf, one, nan = np.array([np.inf]), np.array([1.0]), np.array([np.nan])
    beyond = formats[name].round(np.inf)
    assert same(beyond, arithmetic.add(inf, one)[0])
    assert same(beyond, arithmetic.divide(one, 0 * one)[0])
    for actual in (
        arithmetic.subtract(inf, inf),
        arithmetic.multiply(inf, 0 * one),
        arithmetic.divide(inf, inf),
        arithmetic.sqrt(-one),
        arithmetic.fma(inf, 0 * one, one),
        arithmetic.add(nan, one),
    ):
        assert np.isnan(actual).all()


def test_exact_zeros_have_ieee_signs():
    """x − x is +0, and −0 in mode down."""
    x = np.array([1.5])
    signs = [
        bool(np.signbit(Emulated(formats["float16"], mode=mode).subtract(x, x))[0])
        for mode in ("nearest_even", "up", "toward_zero", "down")
    ]
    assert [False, False, False, True] == signs
    assert np.signbit(Emulated(formats["float16"], mode="down").fma(x, x, -x * x)).all()
