# SPDX-License-Identifier: Apache-2.0
"""At which root mean square of a row an eps begins to do harm: where a verdict turns.

How far another eps moves an output depends on the row through its mean square alone, and most where
the output lies just below a power of two. So a size below which some row departs, and from which up
none does, is found exactly, by bisection over the values of float32 with the predicate that judges
assumed rows. Where the plan itself loses rows (squares that overflow or vanish, rows past the
format) a normal row of each size is run through it, bisected likewise.
"""

from __future__ import annotations

import decimal
import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.eps.evidence import normal_rows, recorded_evidence
from precision_lab.eps.exact_rows import ExactRow
from precision_lab.eps.lost_rows import Losses
from precision_lab.eps.representable import effective_eps
from precision_lab.numbers import formats
from precision_lab.plan import EPS_PLACES, shrinks_past

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from precision_lab.arithmetic import Floats
    from precision_lab.norm import Norm
    from precision_lab.numbers import Format
    from precision_lab.plan import Plan

GRID = formats["float32"]
"""The sizes that are told apart."""
LEAST, TOP = int(GRID.ordinal(GRID.smallest)), int(GRID.ordinal(GRID.largest))
"""The first and the last place among them."""
MIDDLE = [2.0**k for k in (0, -3, 3, -6, 6, -9, 9, -12, -15, -18, -24)]
"""Sizes at which a plan that loses the smallest or the largest rows is most likely to lose none."""
BAND = 2.0**-46
"""Beside half an ulp, so much is left to the exact comparison: float64 errs by less."""
TOGETHER = 1 << 15
"""Elements that are run through a plan at once, of 15 to 255 sizes."""
MONOTONE = ("inside", "sum", "missing")
"""Places of eps where a larger row departs less."""
TOP_OVER_RMS = 4.0
"""The largest magnitude of a row over its root mean square, where a plan scales by it."""


SHOWN = 1e6
"""A row of a root mean square above this is not spoken of."""


def describe_safe_rms(safe: tuple[float, float], *, new: bool = False) -> str:
    """The root mean squares of rows that bear an eps, in words; ends rounded to the safe side.

    `new` says that it is the median row alone which must not shrink.
    """
    low, high = safe
    if new:
        limit = f", and normal rows none above {_shorten(high)}" if high < SHOWN else ""
        return f"no harm where the median row has an RMS above {_shorten(low, up=True)}{limit}"
    if high < SHOWN:
        least = f"from {_shorten(low, up=True)} " if low else ""
        return f"no harm for normal rows of RMS {least}{'' if low else 'up '}to {_shorten(high)}"
    return f"no harm for rows of {f'RMS above {_shorten(low, up=True)}' if low else 'any RMS'}"


def _shorten(value: float, *, up: bool = False) -> str:
    """Three digits, rounded up or down."""
    rounding = decimal.ROUND_CEILING if up else decimal.ROUND_FLOOR
    return f"{float(decimal.Context(prec=3, rounding=rounding).create_decimal(value)):.3g}"


@lru_cache(1 << 10)
def safe_rms(
    norm: Norm, hidden: int, target: Format, plan: Plan, *, eps: float, function: float | None
) -> tuple[float, float] | None:
    """The least and the largest root mean square of rows that bear an eps in a plan.

    Parameters
    ----------
    norm, hidden, target
        What is normed, and the format that rows are in.
    plan
        With the formats that it leaves open.
    eps
        What the plan runs with.
    function
        The eps of the function, which outputs must not leave by more than half an ulp; None for a
        new design, whose rows eps must not shrink by more than that.

    Returns
    -------
    (float, float) or None
        Values of float32; 0 where no row is too small. One value below the least some row departs
        or shrinks, or a normal one is lost; one above the largest a normal row is lost. About the
        mean for layer norms. None where normal rows of all sizes are lost.
    """

    def loses(places: Sequence[int]) -> list[bool]:
        sizes = np.array([_size(place) for place in places])
        return _loses(norm, hidden, target, plan, eps=eps, sizes=sizes)

    tried = [_place(rms) for rms in MIDDLE] + [LEAST, TOP]
    lost = dict(zip(tried, loses(tried), strict=True))
    middle = next((place for place in tried if not lost[place]), None)
    low = harmless_from(hidden, target, plan, eps=eps, function=function)
    if middle is None or low is None:
        return None
    count = min(max(TOGETHER // hidden, 15), 255)
    high = _edge(loses, TOP, middle, count=count) if lost[TOP] else TOP
    if lost[LEAST]:
        low = max(low, _edge(loses, LEAST, middle, count=count))
    if low > high:
        return None
    return (0.0 if low == LEAST else _size(low)), _size(high)


def harmless_from(
    hidden: int, target: Format, plan: Plan, *, eps: float, function: float | None
) -> int | None:
    """The first place of the grid from which up no output departs; None where one does at the top.

    Where eps is added to the mean square, a larger row departs less: bisection finds the only size
    at which that ends. Elsewhere the binades are searched from above for the last one that departs.
    """
    settled = plan.formats_for(target, target)
    harms = _harm(settled, hidden, eps=eps, function=function)
    if harms(TOP):
        return None
    harmed, harmless = LEAST, TOP
    if settled.prescale != "none" or (function is not None and settled.eps_place not in MONOTONE):
        binades = [TOP, *(_place(2.0**k) for k in range(GRID.emax, GRID.emin - 1, -1)), LEAST]
        harmed = next((place for place in binades if harms(place)), LEAST)
        harmless = binades[max(binades.index(harmed) - 1, 0)]
    if not harms(harmed):
        return harmed
    return _edge(lambda places: [harms(place) for place in places], harmed, harmless, count=1)


def _harm(
    settled: Plan, hidden: int, *, eps: float, function: float | None
) -> Callable[[int], bool]:
    """Whether some row of the size at a place departs; without a function, shrinks too far.

    An output departs by more than half an ulp where r moves by more than 2^-(p+1) of itself, in an
    output that lies just below a power of two.
    """
    share = Fraction(1, 2 ** (formats[settled.output_format].precision + 1))
    place = settled.eps_place

    def harms(at: int) -> bool:
        rms = _size(at)
        square = Fraction(rms) ** 2
        added = float(effective_eps(settled, eps, np.array([TOP_OVER_RMS * rms]))[0])
        if not math.isfinite(added):
            return True
        if function is None:
            return shrinks_past(place, square, added, hidden, share)
        ms = rms * rms
        divisor = EPS_PLACES[place].denominators(np.array([ms]), np.array([added]), hidden)
        moved = math.inf
        if divisor[0]:
            moved = abs(math.sqrt(ms + function) / float(divisor[0]) - 1)
        if abs(moved - float(share)) > BAND * (1 + moved):
            return moved > share
        row = ExactRow(square, square + Fraction(function), hidden, share=share)
        return any(row.departs(place, added, low=low) for low in (True, False))

    return harms


def _loses(
    norm: Norm, hidden: int, target: Format, plan: Plan, *, eps: float, sizes: Floats
) -> list[bool]:
    """Whether a normal row of each size is lost, in the plan or on its way into the format."""
    rows = normal_rows(hidden, norm.centred)[:1] * sizes[:, None]
    lost = np.asarray(~np.isfinite(target.round(rows)).all(axis=1))
    if not lost.all():
        evidence = recorded_evidence("", norm, rows[~lost], None, None, format=target)
        losses = Losses(evidence, plan, reference=eps)
        found = losses.lost(eps)
        lost[~lost] = (found.low | found.high | losses.overflows.any)[:-1]
    return [bool(one) for one in lost]


def _place(rms: float) -> int:
    return int(GRID.ordinal(rms))


def _size(ordinal: int) -> float:
    return float(GRID.from_ordinal(ordinal))


def _edge(broken: Callable[[Sequence[int]], list[bool]], bad: int, good: int, *, count: int) -> int:
    """The place next to a broken one on the way from `bad` to `good`; `count` are tried at once."""
    while abs(good - bad) > 1:
        step = max(abs(good - bad) // (count + 1), 1)
        step = step if good > bad else -step
        places = [*range(bad + step, good, step)][:count]
        kept = [place for place, out in zip(places, broken(places), strict=True) if not out]
        good = kept[0] if kept else good
        bad = max((place for place in [bad, *places] if (place - good) * step < 0),
                  key=lambda place: place * step)  # fmt: skip
    return good
