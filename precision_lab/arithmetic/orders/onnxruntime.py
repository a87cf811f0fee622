# SPDX-License-Identifier: Apache-2.0
"""How onnxruntime's kernel sums on a CPU with AVX2: lanes, and squares fused into their sum.

Source: onnxruntime 1.32, ``onnxruntime/core/mlas/lib/layernorm_kernel_avx2.cpp``; what the compiler
made of the elements past the last vector is read off the outputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from precision_lab.arithmetic.orders.trees import first, halved, in_turn
from precision_lab.numbers import formats

if TYPE_CHECKING:
    from precision_lab.arithmetic.protocol import Adder, Fusing, Values
    from precision_lab.numbers import Format

ORT_LANES = 8
"""float32 numbers in a vector."""

DOUBLES = 4
"""float64 numbers in a vector, in which the mean is summed."""

APART = 4
"""Elements past the last vector whose squares are rounded on their own in float32 rows, if there
are as many."""


def laned(lanes: int, values: Values, arithmetic: Adder) -> Values:
    """Sum [rows, n]: lanes in turn, their halves onto each other, then what is left in turn."""
    parts = first(values)
    full = len(parts) - len(parts) % lanes
    if full == 0:
        return in_turn(parts, arithmetic)
    total = in_turn(parts[:full].reshape(full // lanes, lanes, len(values)), arithmetic)
    return in_turn([halved(total, arithmetic), *parts[full:]], arithmetic)


def laned_depth(lanes: int, n: int) -> int:
    """The most additions that one of n addends passes through."""
    vectors, left = divmod(n, lanes)
    return vectors - 1 + (lanes - 1).bit_length() + left if vectors else max(n - 1, 0)


def fused_mean_square(x: Values, arithmetic: Fusing, source: Format) -> tuple[Values, Values]:
    """A mean of 0 and the sum of squares, [rows] each."""
    return np.zeros(len(x), x.dtype), _fused_squares(x, arithmetic, source)


def fused_two_pass(x: Values, arithmetic: Fusing, source: Format) -> tuple[Values, Values]:
    """The mean, summed and divided in float64, and the sum of squared deviations, [rows] each."""
    double = arithmetic.widened(formats["float64"])
    # The accumulators start at +0, so that no mean is −0.
    total = laned(DOUBLES, double.cast(x), double) + 0.0
    mean = arithmetic.cast(double.divided(total, x.shape[-1]))
    return mean, _fused_squares(arithmetic.subtract(x, mean[:, None]), arithmetic, source)


def _fused_squares(x: Values, arithmetic: Fusing, source: Format) -> Values:
    """Σx² in 8 lanes, the square not rounded on its own, but for `APART` of the last.

    The code for 16-bit rows, which are brought to float32 first, fuses these too.
    """
    parts = first(x)
    full = len(parts) - len(parts) % ORT_LANES
    total = np.zeros((ORT_LANES, len(x)), x.dtype)
    for vector in parts[:full].reshape(full // ORT_LANES, ORT_LANES, len(x)):
        total = arithmetic.fma(vector, vector, total)
    total = halved(total, arithmetic)
    left = parts[full:]
    apart = APART if source.bits > 16 and len(left) >= APART else 0
    for element in left[:apart]:
        total = arithmetic.add(total, arithmetic.multiply(element, element))
    for element in left[apart:]:
        total = arithmetic.fma(element, element, total)
    return total
