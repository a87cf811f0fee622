# SPDX-License-Identifier: Apache-2.0
"""Where a plan adds eps, one row a place: what is computed, and what eps does to a row there.

Three facts say what a place computes: whether eps enters the sum, how it meets the mean square, and
what is added to the root. The program of a plan, the denominator and the formats that eps passes
through all follow from them. How a row shrinks and how far noise grows has a formula of its own for
each place, one without cancellation and one that is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from precision_lab.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from precision_lab.arithmetic import Floats
    from precision_lab.numbers import Format


class EpsRule(NamedTuple):
    """An eps by default that depends on the format of x: what it is in words, and as a number."""

    meaning: str
    of: Callable[[Format], float]


EPS_RULES: dict[str, EpsRule] = {
    "input_epsilon": EpsRule(
        "the machine epsilon of x's format, 2^-7 in bfloat16 and 2^-10 in float16",
        lambda x: x.epsilon,
    )
}
"""By name, as a plan's `eps_default` has them."""

BITS = 400
"""Of precision where roots do not leave a comparison of rationals."""


@dataclass(frozen=True, kw_only=True)
class EpsPlace:
    """A place of eps.

    Parameters
    ----------
    name
        The value of the switch ``eps_place``.
    meaning
        The denominator, in the paper's letters.
    fault
        What is wrong with a kernel that adds eps there; "" where nothing is.
    in_sum
        Whether eps is added to the sum, before it is divided.
    radicand
        What eps does to the mean square: ``"add"``, ``"maximum"`` or ``""``.
    denominator
        What is added to the root: ``"eps"``, ``"root"`` (of eps) or ``""``.
    shrink
        From √ms, ms, eps and the count: 1 − √ms/denominator, in float64 without cancellation.
    shrinks_past
        From ms, eps, the count and a share, exactly: whether a row shrinks by more than the share.
    grows_past
        From eps, the count and a factor, exactly: whether 1/denominator at ms = 0 is more than it.
    """

    name: str
    meaning: str
    fault: str = ""
    in_sum: bool = False
    radicand: Literal["", "add", "maximum"] = ""
    denominator: Literal["", "eps", "root"] = ""
    shrink: Callable[[Floats, Floats, float, int], Floats]
    shrinks_past: Callable[[Fraction, Fraction, int, Fraction], bool]
    grows_past: Callable[[Fraction, int, Fraction], bool]

    def radicand_of(
        self, square: Any, eps: Any, count: int, *, maximum: Callable[[Any, Any], Any] = max
    ) -> Any:
        """What the root is taken of, in the numbers that are given."""
        if self.in_sum:
            return square + eps / count
        if self.radicand == "maximum":
            return maximum(square, eps)
        return square + eps if self.radicand else square

    def denominator_of(
        self,
        square: Any,
        eps: Any,
        count: int,
        *,
        sqrt: Callable[[Any], Any],
        maximum: Callable[[Any, Any], Any] = max,
    ) -> Any:
        """What values are divided by, in the numbers that are given.

        Parameters
        ----------
        square, eps
            The mean square and eps.
        count
            Elements of a row.
        sqrt, maximum
            Of these numbers.
        """
        root = sqrt(self.radicand_of(square, eps, count, maximum=maximum))
        if not self.denominator:
            return root
        return root + (eps if self.denominator == "eps" else sqrt(eps))

    def denominators(self, square: Floats, eps: Floats, count: int) -> Floats:
        """The same in float64: [rows]."""
        divisor = self.denominator_of(square, eps, count, sqrt=np.sqrt, maximum=np.maximum)
        return np.asarray(divisor)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of format that eps itself is rounded to on its way, in order."""
        summed = ("sum",) if self.in_sum or self.radicand else ()
        return "eps", *summed, *(("reciprocal",) if self.denominator == "eps" else ())


def _both_shrink_past(square: Fraction, eps: Fraction, _count: int, share: Fraction) -> bool:
    """√ms < (1 − share)·(√(ms + eps) + eps)."""
    import mpmath

    with mpmath.workprec(BITS):
        ms, e, kept = (
            mpmath.mpf(one.numerator) / one.denominator for one in (square, eps, 1 - share)
        )
        return bool(mpmath.sqrt(ms) < kept * (mpmath.sqrt(ms + e) + e))


def _both_grow_past(eps: Fraction, _count: int, factor: Fraction) -> bool:
    """√eps + eps < 1/factor."""
    rest = 1 / factor - eps
    return rest > 0 and eps < rest * rest


def _both_shrink(root: Floats, square: Floats, eps: float, _count: int) -> Floats:
    root_of_sum = np.sqrt(square + eps)
    return np.asarray((eps / (root_of_sum + root) + eps) / (root_of_sum + eps))


EPS_PLACES: Table[EpsPlace] = Table(
    "eps place",
    [
        EpsPlace(
            name="inside", meaning="√(ms + eps)", radicand="add",
            shrink=lambda _, ms, e, _n: np.asarray(-np.expm1(-0.5 * np.log1p(e / ms))),
            shrinks_past=lambda ms, e, _, share: ms < (1 - share) ** 2 * (ms + e),
            grows_past=lambda e, _, most: e * most * most < 1,
        ),
        EpsPlace(
            name="outside", meaning="√ms + eps", denominator="eps",
            fault="eps is added outside the root: √ms + eps",
            shrink=lambda root, _, e, _n: np.asarray(e / (root + e)),
            shrinks_past=lambda ms, e, _, share: ms * share**2 < (1 - share) ** 2 * e * e,
            grows_past=lambda e, _, most: e * most < 1,
        ),
        EpsPlace(
            name="outside_root", meaning="√ms + √eps", denominator="root",
            fault="√eps is added to the root: √ms + √eps",
            shrink=lambda root, _, e, _n: np.asarray(np.sqrt(e) / (root + np.sqrt(e))),
            shrinks_past=lambda ms, e, _, share: ms * share**2 < (1 - share) ** 2 * e,
            grows_past=lambda e, _, most: e * most * most < 1,
        ),
        EpsPlace(
            name="both", meaning="√(ms + eps) + eps", radicand="add", denominator="eps",
            fault="eps is added inside the root and outside it",
            shrink=_both_shrink,
            shrinks_past=_both_shrink_past,
            grows_past=_both_grow_past,
        ),
        EpsPlace(
            name="max", meaning="√max(ms, eps)", radicand="maximum",
            fault="the larger of ms and eps is taken, not their sum",
            shrink=lambda root, ms, e, _n: np.asarray(1 - root / np.sqrt(np.maximum(ms, e))),
            shrinks_past=lambda ms, e, _, share: ms < (1 - share) ** 2 * max(ms, e),
            grows_past=lambda e, _, most: e * most * most < 1,
        ),
        EpsPlace(
            name="sum", meaning="√((Σ + eps)/n)", in_sum=True,
            fault="eps is added to the sum, not to the mean: (Σ + eps)/n",
            shrink=lambda _, ms, e, n: np.asarray(-np.expm1(-0.5 * np.log1p(e / n / ms))),
            shrinks_past=lambda ms, e, n, share: ms < (1 - share) ** 2 * (ms + e / n),
            grows_past=lambda e, n, most: e * most * most < n,
        ),
        EpsPlace(
            name="missing", meaning="√ms, no eps", fault="eps is missing",
            shrink=lambda root, _, _e, _n: np.zeros(root.shape),
            shrinks_past=lambda _ms, _e, _n, _share: False,
            grows_past=lambda _e, _n, _most: True,
        ),
    ],
)  # fmt: skip


def growth(place: str, eps: float, count: int) -> float | None:
    """By how much a row near zero is multiplied: 1/denominator at a mean square of 0.

    Parameters
    ----------
    place
        The name of a place.
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
    divisor = EPS_PLACES[place].denominators(np.zeros(1), np.array([eps]), count)
    return 1 / float(divisor[0])


def grows_past(place: str, eps: float, count: int, factor: float) -> bool:
    """Whether `growth` is more than a factor, exactly."""
    return EPS_PLACES[place].grows_past(Fraction(eps), count, Fraction(factor))


def shrinks(place: str, square: Floats, eps: float, count: int) -> Floats:
    """1 − √ms/denominator of each row, in float64 and without cancellation.

    Parameters
    ----------
    place, eps, count
        As for `growth`.
    square
        [rows], mean squares above 0.
    """
    return EPS_PLACES[place].shrink(np.sqrt(square), square, eps, count)


def shrinks_past(place: str, square: Fraction, eps: float, count: int, share: Fraction) -> bool:
    """Whether a row of a mean square shrinks by more than a share, exactly."""
    return EPS_PLACES[place].shrinks_past(square, Fraction(eps), count, share)
