# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from precision_lab.exceptions import InputError
from precision_lab.norm.arguments import check, check_eps
from precision_lab.norm.norm import affine, layer, norms, rms


class Rationals:
    """Arithmetic whose root is only taken of squares: enough to follow the formulas by hand."""

    def square(self, x):
        """x^2."""
        return [v * v for v in x]

    def mean(self, x):
        """The mean."""
        return sum(x) / Fraction(len(x))

    def _pairs(self, x, y):
        return zip(x, y if isinstance(y, list) else [y] * len(x), strict=True)

    def add(self, x, y):
        """x + y."""
        return x + y if not isinstance(x, list) else [a + b for a, b in self._pairs(x, y)]

    def subtract(self, x, y):
        """x - y."""
        return [a - b for a, b in self._pairs(x, y)]

    def multiply(self, x, y):
        """x y."""
        return [a * b for a, b in self._pairs(x, y)]

    def rsqrt(self, x):
        """1 / sqrt(x), of squares."""
        root = Fraction(int(x.numerator**0.5), int(x.denominator**0.5))
        assert root * root == x
        return 1 / root


def test_rms_by_hand():
    """mean(1, 49) = 25, so [1, 7] over 5."""
    x = [Fraction(1), Fraction(7)]
    assert rms(Rationals(), x, x, Fraction(0)) == [Fraction(1, 5), Fraction(7, 5)]


def test_layer_by_hand_with_eps_inside_the_root():
    """[2, 8] deviates by 3 from its mean; 9 + 16 under the root gives 3/5."""
    x = [Fraction(2), Fraction(8)]
    assert layer(Rationals(), x, x, Fraction(16)) == [Fraction(-3, 5), Fraction(3, 5)]


def test_a_statistic_of_some_elements_by_hand():
    """The first two give the root, and the mean; the third is divided by the same."""
    part, rest = [Fraction(1), Fraction(7)], [Fraction(10)]
    assert rms(Rationals(), part + rest, part, Fraction(0))[2] == 2
    assert layer(Rationals(), part + rest, part, Fraction(16)) == [
        Fraction(-3, 5), Fraction(3, 5), Fraction(6, 5),
    ]  # fmt: skip


def test_affine_applies_what_is_there():
    """Gain, then bias, each where it is given."""
    v, a = [Fraction(1), Fraction(2)], Rationals()
    assert affine(a, v, None, None) == v
    assert affine(a, v, [Fraction(3), Fraction(4)], None) == [3, 8]
    assert affine(a, v, [Fraction(3), Fraction(4)], [Fraction(1), Fraction(1)]) == [4, 9]


def test_rows_say_whether_the_mean_goes():
    """RMSNorm keeps the mean, LayerNorm takes it out."""
    assert {name: row.centred for name, row in norms.items()} == {"rms": False, "layer": True}


def test_check_flattens_and_remembers_the_shape():
    """Leading axes become rows; no rows stay no rows; lists are float64."""
    found = check("rms", np.zeros((2, 3, 5), np.float32), eps=0)
    assert (found.x.shape, found.groups.shape) == ((6, 5), (2, 3, 5))
    assert check("layer", np.zeros((0, 5), ml_dtypes.bfloat16), eps=1e-5).x.shape == (0, 5)
    assert check("rms", [1, 2, 3], eps=1e-5).x.dtype == np.float64


@pytest.mark.parametrize(
    ("x", "weight", "eps", "words"),
    [
        (np.zeros((2, 0)), None, 1e-6, "hidden must be 1 or more"),
        (np.float64(3.0), None, 1e-6, "single number"),
        ([[1.0], [1.0, 2.0]], None, 1e-6, "ragged"),
        (["a"], None, 1e-6, "x: unknown array type"),
        (np.zeros(3, complex), None, 1e-6, "complex128"),
        (np.zeros((2, 3)), np.zeros(2), 1e-6, r"\(2,\).*\(3,\)"),
        (np.zeros((2, 3)), np.zeros((1, 3)), 1e-6, r"weight has shape \(1, 3\)"),
        (np.zeros(3), None, -1e-6, "-1e-06"),
        (np.zeros(3), None, float("nan"), "nan"),
        (np.zeros(3), None, float("inf"), "inf"),
        (np.zeros(3), None, "1e-6", "'1e-6'"),
        (np.zeros(3), None, None, "None"),
        (np.zeros(3), None, True, "True"),
        ([2**60 + 1], None, 1e-6, "int64"),
    ],
)
def test_bad_arguments_are_named(x, weight, eps, words):
    """Each is refused in one sentence that says what was given."""
    with pytest.raises(InputError, match=words) as caught:
        check("rms", x, weight, eps=eps)
    assert "\n" not in str(caught.value)


def test_unknown_norms_and_offsets_are_named():
    """The nearest norm is told; an offset must be a number."""
    with pytest.raises(InputError, match="'lay': the nearest is layer"):
        check("lay", [1.0], eps=0)
    with pytest.raises(InputError, match="weight_offset is nan"):
        check("rms", [1.0], eps=0, weight_offset=float("nan"))


def test_eps_of_any_real_kind():
    """NumPy scalars and integers are their real values."""
    assert check_eps(np.float32(1e-5)) == float(np.float32(1e-5))
    assert check_eps(0) == 0.0
