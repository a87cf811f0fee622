# SPDX-License-Identifier: Apache-2.0
"""What an eps does in one norm: its effects counted, its harms, and the eps that have none."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.arithmetic import Emulated
from precision_lab.eps.departures import Departures
from precision_lab.eps.interval import Bound, SafeInterval, safe_interval
from precision_lab.eps.lost_rows import Losses
from precision_lab.eps.representable import effective_eps, eps_grid
from precision_lab.eps.row_sizes import safe_rms
from precision_lab.numbers import formats
from precision_lab.plan import EPS_PLACES, emulate, grows_past, growth, shrinks, shrinks_past

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from precision_lab.arithmetic import Floats
    from precision_lab.eps.evidence import LayerEvidence
    from precision_lab.plan import Plan

(
    DEPARTS, VANISHES, ZERO_ROW, RECIPROCAL, LOSES, AMPLIFIES, SHRINKS, OVERFLOWS, SQUARES, SUMS,
    ROWS,
) = (
    "departs", "vanishes", "zero row NaN", "reciprocal overflows", "rows lost", "amplifies",
    "shrinks", "overflows", "squares overflow", "sums overflow", "rows overflow",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class LayerAdvice:
    """What an eps does in one norm.

    Parameters
    ----------
    rows, hidden
        How many rows were judged (or sizes assumed), and their width.
    emulated
        How many rows were run through the plan, the row of zeros not counted: those recorded, or a
        few of the sizes assumed.
    interval
        The least and the largest eps without harm here, values of the adding format; None where
        there is none.
    lo_breaks, hi_breaks
        What breaks one value beyond each end, or what leaves no eps.
    harm
        Which harm the eps in question does here: names as of `lo_breaks`.
    effective_eps
        What the plan makes of eps; None without an eps.
    representable, vanishes
        Whether eps stays what it is; whether it becomes 0.
    rms
        Least, median and largest root mean square of the rows that are not zero.
    absorbed, dominated
        Rows whose mean square swallows eps in the plan's sum, or is below eps.
    shrink, shrunk
        Quantiles of 1 − 1/√(1 + eps/ms) over the rows (50 %, 90 %, largest); how many rows eps
        shrinks by more than half an ulp of the output format.
    half_ulp
        The least relative half-ulp of the output format, 2^-(p+1).
    departure
        How far the outputs depart from the configured function, in units of what is harm: above 1
        in some row is harm.
    reciprocal_overflows
        Whether 1/√eps is past the range of the plan's format.
    zero_row, constant_row
        What such a row gives: "0", "bias", "NaN", "inf" or "other"; a constant row for layer norms
        only.
    amplification
        By which noise in a row near zero grows: 1/√eps where eps is added inside the root, and by
        its place elsewhere; None where nothing bounds it.
    gradient_scale
        The largest gradient of the output that stays finite on its way into such a row.
    square_overflows, sum_overflows
        Rows whose squares, or whose sum, overflow whatever eps is.
    lost
        Rows lost with the eps in question, the row of zeros included.
    row_overflows, reach
        Rows that the format of x does not hold, and the largest magnitude in them.
    assumed
        Whether the rows are assumed: then `rows` counts sizes, and `emulated` samples.
    safe_rms
        The least and the largest root mean square of rows that bear the eps in question, whatever
        rows were judged, as of `row_sizes.safe_rms`; None without an eps, or where no row does.
    absorbed_rms
        From this root mean square up every row's mean square swallows eps; None where that is not
        known of the place of eps.
    """

    layer: str
    rows: int
    hidden: int
    emulated: int
    interval: tuple[float, float] | None
    lo_breaks: str
    hi_breaks: str
    harm: tuple[str, ...]
    effective_eps: float | None = None
    representable: bool = True
    vanishes: bool = False
    rms: tuple[float, float, float] | None
    absorbed: int = 0
    dominated: int = 0
    shrink: tuple[float, float, float] | None = None
    shrunk: int = 0
    half_ulp: float
    departure: float = 0.0
    reciprocal_overflows: bool = False
    zero_row: str = ""
    constant_row: str = ""
    amplification: float | None = None
    gradient_scale: float | None = None
    square_overflows: int
    sum_overflows: int
    lost: int = 0
    row_overflows: int
    reach: float
    assumed: bool
    safe_rms: tuple[float, float] | None = None
    absorbed_rms: float | None = None


@dataclass(eq=False)
class LayerCase:
    """One norm with its rows, in one plan: every harm as a bound on eps.

    Parameters
    ----------
    eps
        The configured eps; None for a new design without one.
    new
        Whether eps is still free: then it is no departure that does harm.
    amplification
        For a new design: the largest factor by which noise may grow.
    hints
        Where each harm began in the layers before: they often agree.
    """

    evidence: LayerEvidence
    plan: Plan
    eps: float | None
    new: bool
    amplification: float
    hints: dict[str, int] = field(default_factory=dict)
    losses: Losses = field(init=False)
    departures: Departures | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        evidence = self.evidence
        self.settled = self.plan.formats_for(evidence.format, evidence.format)
        self.grid = eps_grid(self.settled)
        self.output = formats[self.settled.output_format]
        self.losses = Losses(evidence, self.plan, reference=None if self.new else self.eps)
        self.square = evidence.squares()
        self.tops = np.max(np.abs(evidence.x.astype(np.float64)), axis=1)
        if not self.new and self.eps is not None:
            self.departures = Departures(evidence, self.settled, eps=self.eps, output=self.output)

    def added_eps(self, eps: float) -> float:
        """What eps is once the plan has rounded it, in the row that leaves least of it."""
        return float(effective_eps(self.settled, eps, self.tops).min())

    def bounds(self) -> tuple[list[Bound], list[Bound]]:
        """The harms of an eps that is too low, and of one that is too high."""
        lows, highs = [], [Bound(OVERFLOWS, self.losses.high)]
        if self.new:
            lows = [
                Bound(VANISHES, lambda e: self.added_eps(e) == 0),
                Bound(AMPLIFIES, self.amplifies),
                Bound(RECIPROCAL, self.reciprocal_overflows),
            ]
            highs.insert(0, Bound(SHRINKS, self.median_shrinks))
        elif self.departures is not None:
            lows = [Bound(DEPARTS, self.departures.low)]
            highs.insert(0, Bound(DEPARTS, self.departures.high))
        lows.append(Bound(LOSES, self.losses.low))
        return lows, highs

    def amplifies(self, eps: float) -> bool:
        """Whether noise in a row near zero grows past the stated factor, exactly."""
        place, count = self.plan.eps_place, self.evidence.hidden
        return grows_past(place, self.added_eps(eps), count, self.amplification)

    def reciprocal_overflows(self, eps: float) -> bool:
        """Whether the plan's format has no number for the reciprocal in a row of zeros."""
        target = formats[self.settled.reciprocal_format]
        e = np.array([self.added_eps(eps)])
        arithmetic = Emulated(target)
        with np.errstate(all="ignore"):
            place = EPS_PLACES[self.plan.eps_place]
            if place.denominator == "eps":
                root = arithmetic.cast(e)
                root = arithmetic.add(arithmetic.sqrt(e), root) if place.radicand else root
            elif self.plan.inverse in ("divide", "reciprocal_sqrt"):
                root = arithmetic.sqrt(e)
            else:
                return not np.isfinite(arithmetic.rsqrt(e))[0]
            return not np.isfinite(arithmetic.divide(np.ones(1), root))[0]

    def median_shrinks(self, eps: float) -> bool:
        """Whether the median row shrinks by more than half an ulp of the output, exactly."""
        square = np.sort(self.square[self.square > 0])
        if not square.size:
            return False
        median = Fraction(float(square[(len(square) - 1) // 2]))
        share = Fraction(1, 2 ** (self.output.precision + 1))
        e = float(effective_eps(self.settled, eps, self.tops).max())
        return shrinks_past(self.plan.eps_place, median, e, self.evidence.hidden, share)

    def overflow_names(self) -> tuple[str, ...]:
        """The names of what overflows whatever eps is."""
        overflows = self.losses.overflows
        rows = (self.evidence.overflowing, overflows.squares.any(), overflows.sums.any())
        return tuple(compress((ROWS, SQUARES, SUMS), rows))

    def interval(self) -> SafeInterval:
        """The eps without harm in this layer."""
        if overflow_names := self.overflow_names():
            return SafeInterval(0, -1, overflow_names[0], overflow_names[0])
        return safe_interval(self.grid, *self.bounds(), hints=self.hints)

    def cause_below(self, eps: float, name: str) -> str:
        """The plain name of what breaks at an eps too low: why rows are lost."""
        if name != LOSES:
            return name
        if self.added_eps(eps) == 0:
            return VANISHES
        if self.reciprocal_overflows(eps):
            return RECIPROCAL
        return ZERO_ROW if self.losses.lost(eps, all_rows=False).low.any() else LOSES

    def advice(self) -> LayerAdvice:
        """Everything about this layer."""
        safe = self.interval()
        ends, lo_breaks = None, safe.lo_breaks
        if safe.empty:
            # The last value that was tried: all others are lost for another reason, or for this.
            lo_breaks = self.cause_below(self.grid.value(max(safe.hi, 0)), lo_breaks)
        else:
            ends = (self.value(safe.lo), self.value(safe.hi))
            if safe.lo:
                lo_breaks = self.cause_below(self.grid.value(safe.lo - 1), lo_breaks)
        evidence, overflows = self.evidence, self.losses.overflows
        rms = np.sqrt(self.square[self.square > 0])
        facts: dict[str, Any] = {
            "layer": evidence.name, "rows": evidence.rows, "hidden": evidence.hidden,
            "emulated": len(evidence.x) - 1 + evidence.overflowing, "interval": ends,
            "lo_breaks": lo_breaks, "hi_breaks": safe.hi_breaks, "harm": self.overflow_names(),
            "rms": tuple(float(f(rms)) for f in (np.min, np.median, np.max)) if rms.size else None,
            "half_ulp": 2.0 ** -(self.output.precision + 1),
            "square_overflows": int(overflows.squares.sum()),
            "sum_overflows": int(overflows.sums.sum()), "row_overflows": evidence.overflowing,
            "reach": evidence.reach, "assumed": evidence.sizes is not None,
        }  # fmt: skip
        return LayerAdvice(**(facts if self.eps is None else facts | self._effects(self.eps)))

    def value(self, place: int) -> float:
        """The eps at a place of the grid, as every rounding leaves it."""
        return float(self.grid.round(self.grid.value(place)))

    def harms(self, eps: float) -> tuple[str, ...]:
        """The names of what an eps breaks here, whatever its kind."""
        lows, highs = self.bounds()
        broken = [self.cause_below(eps, bound.name) for bound in lows if bound.broken(eps)]
        broken += [bound.name for bound in highs if bound.broken(eps)]
        return tuple(dict.fromkeys([*broken, *self.overflow_names()]))

    def _effects(self, eps: float) -> dict[str, Any]:
        """What the eps in question does, by fields of `LayerAdvice`."""
        evidence, square, e = self.evidence, self.square[self.square > 0], self.added_eps(eps)
        place, count = self.plan.eps_place, evidence.hidden
        with np.errstate(all="ignore"):
            absorbed = self._absorbs(square, e)
            shrink = shrinks(place, square, e, count)
        lost = self.losses.lost(eps)
        amplification = growth(place, e, count)
        top = evidence.largest_gain * (amplification or 0.0)
        departures = () if self.departures is None else self.departures.shares(eps)
        return {
            "harm": self.harms(eps), "effective_eps": e, "representable": self.grid.contains(eps),
            "vanishes": e == 0 and eps > 0, "absorbed": int(absorbed.sum()),
            "dominated": int((e > square).sum()), "shrink": _quantiles(shrink),
            "shrunk": int((shrink > 2.0 ** -(self.output.precision + 1)).sum()),
            "departure": float(np.max(departures, initial=0.0)),
            "reciprocal_overflows": self.reciprocal_overflows(eps),
            "zero_row": self._output_of(0.0, eps), "amplification": amplification,
            "gradient_scale": evidence.format.largest / top if top else None,
            "constant_row": self._output_of(float(self.tops.max()), eps)
            if evidence.norm.centred else "",
            "lost": int((lost.low | lost.high | self.losses.overflows.any).sum())
            + evidence.overflowing,
            "safe_rms": safe_rms(
                evidence.norm, count, evidence.format, self.plan, eps=eps,
                function=None if self.new else eps,
            ),
            "absorbed_rms": self._absorbed_rms(e),
        }  # fmt: skip

    def _absorbs(self, square: Floats, e: float) -> NDArray[np.bool_]:
        """[rows], where what eps is added to stays as it is."""
        place, steps = EPS_PLACES[self.plan.eps_place], self.settled.step_formats()
        summed, rooted = Emulated(steps["sum"]), Emulated(steps["reciprocal"])
        added = np.array([e])
        mean = summed.cast(square)
        if place.in_sum:
            total = summed.cast(square * self.evidence.hidden)
            return np.asarray(summed.add(total, added) == total)
        if place.radicand == "maximum":
            return np.asarray(mean >= e)
        if place.radicand:
            return np.asarray(summed.add(mean, added) == mean)
        if not place.denominator:
            return np.ones(square.shape, np.bool_)
        root = rooted.sqrt(mean)
        more = rooted.cast(added) if place.denominator == "eps" else rooted.sqrt(added)
        return np.asarray(rooted.add(root, more) == root)

    def _absorbed_rms(self, e: float) -> float | None:
        """The root mean square from which on half an ulp of what eps is added to is more than e."""
        place, summed = EPS_PLACES[self.plan.eps_place], formats[self.settled.sum_format]
        if place.denominator or not (place.in_sum or place.radicand == "add") or e <= 0:
            return None
        # From 2^k on half an ulp is at least 2^(k - p).
        k = max(math.frexp(e)[1] + summed.precision, summed.emin)
        return math.sqrt(math.ldexp(1.0, k) / (self.evidence.hidden if place.in_sum else 1))

    def _output_of(self, value: float, eps: float) -> str:
        """What a row of this value gives, in a word."""
        evidence = self.evidence
        x = np.full((1, evidence.hidden), value, evidence.x.dtype)
        if not self.output.nan:
            return ""
        y = emulate(
            x, evidence.weight, evidence.bias, eps=eps, plan=self.plan, norm=evidence.norm
        ).astype(np.float64)
        if np.isnan(y).any():
            return "NaN"
        if np.isinf(y).any():
            return "inf"
        bias = 0.0 if evidence.bias is None else evidence.bias.astype(np.float64)
        if (y == bias).all():
            return "0" if evidence.bias is None else "bias"
        return "other"


def _quantiles(values: Floats) -> tuple[float, ...] | None:
    """50 %, 90 % and largest."""
    return tuple(map(float, np.quantile(values, [0.5, 0.9, 1.0]))) if values.size else None
