# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ast
import hashlib
import math
from pathlib import Path

import mpmath
import numpy as np
import pytest

from precision_lab.inputs import draws
from precision_lab.inputs.draws import Draws, cosine_of_turns, exponential, logarithm, tree_sum

SEED = Draws(2024)


def farthest(found, inputs, function):
    """The largest relative error of `found`, in units of 2^-53."""
    with mpmath.workprec(120):
        return max(
            float(abs(mpmath.mpf(float(y)) / function(mpmath.mpf(float(x))) - 1) * 2**53)
            for x, y in zip(inputs, found, strict=True)
        )


def test_the_logarithm_is_right_to_two_ulp():
    """Near 0 and near 1, and at the ends of what `uniform` gives."""
    small = SEED.uniform(0, 500) ** 30
    inputs = np.concatenate([small, SEED.uniform(1, 500), [2.0**-53, 1 - 2.0**-53, 0.5]])
    assert farthest(logarithm(inputs), inputs, mpmath.log) < 4
    assert farthest(logarithm(inputs) * (1 + 2.0**-50), inputs, mpmath.log) > 4


def test_the_exponential_is_right_to_two_ulp():
    """Over the range of its arguments, and held at its ends."""
    inputs = np.concatenate([1400 * SEED.uniform(0, 1000) - 700, [-700.0, 0.0, 1e-300, 700.0]])
    assert farthest(exponential(inputs), inputs, mpmath.exp) < 4
    assert (exponential(np.array([-1e9, 1e9])) == exponential(np.array([-700.0, 700.0]))).all()


def test_the_cosine_is_right_to_two_units():
    """Absolutely to 2^-52, in each quarter of the turn, and exact at the quarters."""
    inputs = np.concatenate([SEED.uniform(0, 1000), np.arange(9) / 8])
    with mpmath.workprec(120):
        worst = max(
            abs(mpmath.mpf(float(y)) - mpmath.cos(2 * mpmath.pi * mpmath.mpf(float(x))))
            for x, y in zip(inputs, cosine_of_turns(inputs), strict=True)
        )
    assert worst < 2.0**-52
    assert cosine_of_turns(np.arange(5) / 4).tolist() == [1, 0, -1, 0, 1]


def test_uniform_values_lie_strictly_between_0_and_1():
    """The ends of the 52-bit words map to 2^-53 and 1 − 2^-53, without rounding."""
    ends = np.array([0, 2**64 - 1], np.uint64)
    assert draws._fractions(ends).tolist() == [2.0**-53, 1 - 2.0**-53]
    found = SEED.uniform(0, 100_000)
    assert abs(found.mean() - 0.5) < 0.005
    assert abs(found.var() - 1 / 12) < 0.002


def test_normal_values_have_a_normal_distribution():
    """Quantiles of a million draws out to ±4σ, within five standard deviations of their counts."""
    found = SEED.normal(0, 1_000_000)
    for edge in (-4, -3, -2, -1, -0.25, 0, 0.5, 1, 2, 3, 4):
        share = 0.5 * math.erfc(-edge / math.sqrt(2))
        spread = math.sqrt(share * (1 - share) * found.size)
        assert abs((found < edge).sum() - share * found.size) < 5 * spread, edge


def test_the_normal_tail_is_the_true_one_to_six_sigma():
    """The radius is √(−2 log u): its tail beyond 6 has exactly the share exp(−18) of the words."""
    share = math.exp(-18)
    edges = np.array([share * (1 - 1e-9), share, share * (1 + 1e-9)])
    radius = np.sqrt(-2.0 * logarithm(edges))
    assert radius[0] > 6 > radius[2]
    assert abs(radius[1] - 6) < 1e-15
    assert np.sqrt(-2.0 * logarithm(np.array([2.0**-53])))[0] > 8.5


def test_student_values_have_their_distribution():
    """With 1 and 2 degrees of freedom the distribution function is known in closed form."""
    closed = {
        1.0: lambda t: 0.5 + math.atan(t) / math.pi,
        2.0: lambda t: 0.5 + t / (2 * math.sqrt(2 + t * t)),
    }
    for freedom, function in closed.items():
        found = SEED.student(freedom, 0, 200_000)
        for edge in (-100, -10, -1, 0, 0.5, 3, 30):
            share = function(edge)
            spread = math.sqrt(share * (1 - share) * found.size)
            assert abs((found < edge).sum() - share * found.size) < 5 * spread, (freedom, edge)
    assert np.isfinite(draws._fractions(np.array([0], np.uint64))).all()
    assert np.isfinite(exponential(logarithm(np.array([2.0**-53])) * (-2.0 / 0.5))).all()


def test_streams_and_seeds_are_independent_and_rows_do_not_depend_on_their_number():
    """Another stream or seed gives other words; more rows keep the first ones."""
    base = SEED.bits(0, 3, 5)
    assert (base == SEED.bits(0, 7, 5)[:3]).all()
    assert (SEED.normal(0, 3, 5) == SEED.normal(0, 7, 5)[:3]).all()
    assert not (base == SEED.bits(1, 3, 5)).any()
    assert not (base == Draws(2025).bits(0, 3, 5)).any()
    assert SEED.bits(0, 0, 5).shape == (0, 5)


def test_whole_numbers_and_signs_cover_their_range():
    """`below` reaches both ends and no further; signs are −1 and 1 in equal shares."""
    found = SEED.below(7, 0, 10_000)
    assert np.bincount(found, minlength=7).min() > 1200
    assert found.max() == 6
    signs = SEED.signs(0, 10_000)
    assert set(signs.tolist()) == {-1.0, 1.0}
    assert abs(signs.sum()) < 500


@pytest.mark.parametrize("width", [1, 2, 3, 5, 8, 100])
def test_the_tree_sum_is_a_sum(width):
    """On integers, which no order rounds, it gives the sum of each row."""
    rows = np.arange(3 * width, dtype=np.float64).reshape(3, width)
    assert tree_sum(rows).tolist() == rows.sum(axis=1).tolist()


def test_the_words_are_those_of_philox():
    """The digest of the first words: a NumPy that changed its stream would change every input."""
    found = hashlib.sha256(SEED.bits(5, 1000).astype("<u8").tobytes()).hexdigest()
    assert found == "a6bd220369fcf354257c70b9015c981efc0cc6207f16bd09a7976aaba4f5ea87"


def test_nothing_is_called_whose_bits_vary():
    """No function of the system's mathematics library, no matrix product, no library sum."""
    allowed = {
        "arange", "array", "argsort", "choose", "clip", "errstate", "floor", "frexp", "full_like",
        "finfo", "isfinite", "ldexp", "ones", "repeat", "sqrt", "where", "zeros",
        "float64", "floating", "int32", "int64", "integer", "newaxis", "random", "uint64",
    }  # fmt: skip
    folder = Path(draws.__file__).parent
    for name in ("draws.py", "synthetic.py", "parameters.py"):
        tree = ast.parse((folder / name).read_text())
        used = {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "np"
        }
        assert used - allowed == set(), name
        methods = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert methods & {"sum", "mean", "std", "var", "dot", "cumsum", "prod"} <= {"prod"}
        assert not any(isinstance(node, ast.MatMult) for node in ast.walk(tree))
