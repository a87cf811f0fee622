# SPDX-License-Identifier: Apache-2.0
"""What eps does to a row by the place where a plan adds it: how it shrinks, and how noise grows."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import mpmath
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

BITS = 400
"""Of precision where roots do not leave a comparison of rationals."""


def denominators(place: str, square: Floats, eps: Floats, count: int) -> Floats:
    """What the values are divided by, in float64.

    Parameters
    ----------
    place
        Where eps is added (`Plan.eps_place`).
    square, eps
        [rows], the mean squares and the eps.
    count
        Elements of a row.
    """
    match place:
        case "inside":
            return np.asarray(np.sqrt(square + eps))
        case "sum":
            return np.asarray(np.sqrt(square + eps / count))
        case "max":
            return np.asarray(np.sqrt(np.maximum(square, eps)))
        case "missing":
            return np.asarray(np.sqrt(square))
        case "outside":
            return np.asarray(np.sqrt(square) + eps)
        case "outside_root":
            return np.asarray(np.sqrt(square) + np.sqrt(eps))
        case _:
            return np.asarray(np.sqrt(square + eps) + eps)


def growth(place: str, eps: float, count: int) -> float | None:
    """By how much a row near zero is multiplied: 1/denominator at a mean square of 0.

    Parameters
    ----------
    place
        Where eps is added (`Plan.eps_place`).
    eps
        What is added.
    count
        Elements of a row.

    Returns
    -------
    float or None
        None where nothing bounds it.
    """
    if place == "missing" or eps <= 0:
        return None
    return 1 / float(denominators(place, np.zeros(1), np.array([eps]), count)[0])


def grows_past(place: str, eps: float, count: int, factor: float) -> bool:
    """Whether `growth` is more than a factor, exactly."""
    e, most = Fraction(eps), Fraction(factor)
    match place:
        case "missing":
            return True
        case "outside":
            return e * most < 1
        case "both":
            # √e + e < 1/factor.
            rest = 1 / most - e
            return rest > 0 and e < rest * rest
        case "sum":
            return e * most * most < count
        case _:
            return e * most * most < 1


def shrinks(place: str, square: Floats, eps: float, count: int) -> Floats:
    """1 − √ms/denominator of each row, in float64 and without cancellation.

    Parameters
    ----------
    place, eps, count
        As for `growth`.
    square
        [rows], mean squares above 0.
    """
    root = np.sqrt(square)
    match place:
        case "missing":
            return np.zeros(square.shape)
        case "outside":
            return np.asarray(eps / (root + eps))
        case "outside_root":
            return np.asarray(np.sqrt(eps) / (root + np.sqrt(eps)))
        case "max":
            return np.asarray(1 - root / np.sqrt(np.maximum(square, eps)))
        case "both":
            whole = np.sqrt(square + eps)
            return np.asarray((eps / (whole + root) + eps) / (whole + eps))
        case "sum":
            return np.asarray(-np.expm1(-0.5 * np.log1p(eps / count / square)))
        case _:
            return np.asarray(-np.expm1(-0.5 * np.log1p(eps / square)))


def shrinks_past(place: str, square: Fraction, eps: float, count: int, share: Fraction) -> bool:
    """Whether a row of a mean square shrinks by more than a share, exactly."""
    e, kept = Fraction(eps), 1 - share
    match place:
        case "missing":
            return False
        case "outside":
            # √ms < kept·(√ms + e).
            return square * share * share < kept * kept * e * e
        case "outside_root":
            return square * share * share < kept * kept * e
        case "max":
            return square < kept * kept * max(square, e)
        case "sum":
            return square < kept * kept * (square + e / count)
        case "both":
            with mpmath.workprec(BITS):
                ms, added = (mpmath.mpf(one.numerator) / one.denominator for one in (square, e))
                edge = mpmath.mpf(kept.numerator) / kept.denominator
                return bool(mpmath.sqrt(ms) < edge * (mpmath.sqrt(ms + added) + added))
        case _:
            return square < kept * kept * (square + e)
