# SPDX-License-Identifier: Apache-2.0
"""A-priori errors of sums: the factor f with abs(computed − exact) <= f · Σ abs(addend).

They hold for addends of the format, additions rounded to nearest and no overflow; additions never
underflow. Sources: Higham, "Accuracy and Stability of Numerical Algorithms" (2002), chapter 4;
Jeannerod and Rump, "Improved error bounds for inner products in floating-point arithmetic" (SIAM J.
Matrix Anal. Appl. 34, 2013).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from precision_lab.numbers import Format

MARGIN = 1.0 + 2.0**-40
"""Covers the roundings of the factors themselves, expm1 and log1p among them."""


def chain_factor(n: int, depth: int, unit: float) -> float:
    """The error factor of a tree of n addends of this depth, for unit roundoff `unit`.

    Rounding to nearest errs by at most u/(1 + u) of the exact value, so an addend that passes
    through d additions carries a factor within (1 ± u/(1 + u))^d; and whatever the tree, the
    error is at most (n − 1)·u·Σ abs(addend) (Jeannerod and Rump 2013). The smaller is taken.
    """
    if n <= 1:
        return 0.0
    # Past e^700 the other bound is the smaller one.
    growth = math.expm1(min(depth * math.log1p(unit / (1.0 + unit)), 700.0)) * MARGIN
    return min(growth, (n - 1) * unit)


def kahan_factor(n: int, target: Format) -> float:
    """The error factor of Kahan's sum, for every n and u; inf where the argument proves nothing.

    With y = fl(x − c), s' = fl(s + y), c' = fl(fl(s' − s) − y), write y = x − c + a and
    s' = s + y + e, abs(a) <= u·abs(x − c), abs(e) <= u·abs(s'). Then c' differs from e by at most
    u(1 + u)·abs(y) + (2u + u²)·abs(e), and the sum is Σx + Σa + e_n + Σ(e_k − c_k). With
    A = Σ abs(x) and M = max abs(s_k): Σ abs(e) <= n·u·M, Σ abs(y) <= (1 + u)(A + Σ abs(c)),
    hence Σ abs(c) <= K(n·u·M + u·A), K = (1 + u)²/(1 − u(1 + u)²), and the error is at most
    α·A + β·M with the α and β below. M <= A + error closes the circle where β < 1.
    No step assumes abs(s) >= abs(y), so the constant is 3u where the literature has 2u.
    """
    if n <= 1:
        return 0.0
    u = target.unit_roundoff
    square = (1.0 + u) ** 2
    room = 1.0 - u * square
    if room <= 0.0:
        return math.inf
    K = square / room
    alpha = u * (1.0 + square) * (1.0 + K * u)
    beta = u * (1.0 + square) * K * n * u + u + (2.0 + u) * n * u * u
    if beta >= 1.0:
        return math.inf
    return (alpha + beta * (1.0 + alpha) / (1.0 - beta)) * MARGIN


def wider_factor(higher: Format, n: int, target: Format) -> float:
    """The error factor of a sum in turn in `higher`, rounded once to `target`."""
    if n <= 1:
        return 0.0
    inner = chain_factor(n, n - 1, higher.unit_roundoff)
    return (inner + target.unit_roundoff * (1.0 + inner)) * MARGIN
