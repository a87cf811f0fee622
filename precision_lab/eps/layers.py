# SPDX-License-Identifier: Apache-2.0
"""What an eps does in one norm: its effects counted, its harms, and the eps that have none."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.arithmetic import Emulated
from precision_lab.eps.departures import Departures
from precision_lab.eps.interval import Bound, Interval, interval
from precision_lab.eps.lost_rows import Losses
from precision_lab.eps.representable import effective, grid_of
from precision_lab.numbers import formats
from precision_lab.plan import emulate, grows_past, growth, shrinks, shrinks_past

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from precision_lab.eps.evidence import LayerEvidence
    from precision_lab.plan import Plan

    Floats = NDArray[np.float64]

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
    layer
        The norm's name.
    rows, hidden
        How many rows were judged (or sizes assumed), and their width.
    emulated
        How many rows were run through the plan, the row of zeros not counted: those seen, or a few
        of the sizes assumed.
    interval
        The least and the largest eps without harm here, values of the adding format; None where
        there is none.
    lo_breaks, hi_breaks
        What breaks one value beyond each end, or what leaves no eps.
    harm
        Whether the eps in question does harm here, and which: names as of `lo_breaks`.
    effective_eps
        What the plan makes of eps; None without an eps.
    representable, vanishes
        Whether eps stays what it is; whether it becomes 0.
    rms
        Least, median and largest root mean square of the rows that are not zero.
    absorbed
        Rows whose mean square swallows eps in the plan's sum.
    dominated
        Rows whose mean square is below eps.
    shrink
        Quantiles of 1 − 1/√(1 + eps/ms) over the rows: 50 %, 90 %, largest.
    shrunk
        Rows that eps shrinks by more than half an ulp of the output format.
    half_ulp
        The least relative half-ulp of the output format, 2^-(p+1).
    departure
        How far the outputs depart from the configured function, in units of what is harm: above 1
        in some row is harm.
    reciprocal_overflows
        Whether 1/√eps is past the range of the plan's format.
    zero_row, constant_row
        What such a row gives: "0", "bias", "NaN", "inf" or "other"; a constant row is told for
        layer norms only.
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
    """

    layer: str
    rows: int
    hidden: int
    emulated: int
    interval: tuple[float, float] | None
    lo_breaks: str
    hi_breaks: str
    harm: tuple[str, ...]
    effective_eps: float | None
    representable: bool
    vanishes: bool
    rms: tuple[float, float, float] | None
    absorbed: int
    dominated: int
    shrink: tuple[float, float, float] | None
    shrunk: int
    half_ulp: float
    departure: float
    reciprocal_overflows: bool
    zero_row: str
    constant_row: str
    amplification: float | None
    gradient_scale: float | None
    square_overflows: int
    sum_overflows: int
    lost: int
    row_overflows: int
    reach: float
    assumed: bool


@dataclass(eq=False)
class LayerCase:
    """One norm with its rows, in one plan: every harm as a bound on eps.

    Parameters
    ----------
    evidence
        Its rows.
    plan
        The plan as it runs.
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
        own = self.evidence.format
        self.settled = self.plan.formats_for(own, own)
        self.grid = grid_of(self.settled)
        self.output = formats[self.settled.output_format]
        self.losses = Losses(self.evidence, self.plan, reference=None if self.new else self.eps)
        self.square = self.evidence.squares()
        x = self.evidence.x.astype(np.float64)
        self.tops = np.max(np.abs(x), axis=1)
        if not self.new and self.eps is not None:
            self.departures = Departures(
                self.evidence, self.settled, eps=self.eps, output=self.output
            )

    def becomes(self, eps: float) -> float:
        """What eps is once the plan has rounded it, in the row that leaves least of it."""
        return float(effective(self.settled, eps, self.tops).min())

    def bounds(self) -> tuple[list[Bound], list[Bound]]:
        """The harms of an eps that is too low, and of one that is too high."""
        lows, highs = [], [Bound(OVERFLOWS, self.losses.high)]
        if self.new:
            lows = [
                Bound(VANISHES, lambda e: self.becomes(e) == 0),
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
        return grows_past(place, self.becomes(eps), count, self.amplification)

    def reciprocal_overflows(self, eps: float) -> bool:
        """Whether the plan's format has no number for the reciprocal in a row of zeros."""
        target = formats[self.settled.reciprocal_format]
        e = np.array([self.becomes(eps)])
        arithmetic = Emulated(target)
        with np.errstate(all="ignore"):
            if self.plan.eps_place in ("outside", "both"):
                root = arithmetic.cast(e)
                if self.plan.eps_place == "both":
                    root = arithmetic.add(arithmetic.sqrt(e), root)
                return not np.isfinite(arithmetic.divide(np.ones(1), root))[0]
            if self.plan.inverse in ("divide", "reciprocal_sqrt"):
                return not np.isfinite(arithmetic.divide(np.ones(1), arithmetic.sqrt(e)))[0]
            return not np.isfinite(arithmetic.rsqrt(e))[0]

    def median_shrinks(self, eps: float) -> bool:
        """Whether the median row shrinks by more than half an ulp of the output, exactly."""
        square = np.sort(self.square[self.square > 0])
        if not square.size:
            return False
        median = Fraction(float(square[(len(square) - 1) // 2]))
        share = Fraction(1, 2 ** (self.output.precision + 1))
        e = float(effective(self.settled, eps, self.tops).max())
        return shrinks_past(self.plan.eps_place, median, e, self.evidence.hidden, share)

    def hopeless(self) -> tuple[str, ...]:
        """The names of what overflows whatever eps is."""
        overflows = self.losses.overflows
        names = [ROWS] if self.evidence.overflowing else []
        names += [SQUARES] if overflows.squares.any() else []
        names += [SUMS] if overflows.sums.any() else []
        return tuple(names)

    def interval(self) -> Interval:
        """The eps without harm in this layer."""
        if hopeless := self.hopeless():
            return Interval(0, -1, hopeless[0], hopeless[0])
        return interval(self.grid, *self.bounds(), hints=self.hints)

    def below(self, eps: float, name: str) -> str:
        """The plain name of what breaks at an eps too low: why rows are lost."""
        if name != LOSES:
            return name
        if self.becomes(eps) == 0:
            return VANISHES
        if self.reciprocal_overflows(eps):
            return RECIPROCAL
        return ZERO_ROW if self.losses.lost(eps, whole=False).low.any() else LOSES

    def advice(self) -> LayerAdvice:
        """Everything about this layer."""
        found = self.interval()
        ends = None
        lo_breaks, hi_breaks = found.lo_breaks, found.hi_breaks
        if found.empty:
            # The last value that was asked: all others are lost for another reason, or for this.
            lo_breaks = self.below(self.grid.value(max(found.hi, 0)), lo_breaks)
        else:
            ends = (self.value(found.lo), self.value(found.hi))
            if found.lo:
                lo_breaks = self.below(self.grid.value(found.lo - 1), lo_breaks)
        return LayerAdvice(
            layer=self.evidence.name, rows=self.evidence.rows, hidden=self.evidence.hidden,
            emulated=len(self.evidence.x) - 1 + self.evidence.overflowing,
            interval=ends, lo_breaks=lo_breaks, hi_breaks=hi_breaks, **self._effects(),
        )  # fmt: skip

    def value(self, place: int) -> float:
        """The eps at a place of the grid, as every rounding leaves it."""
        return float(self.grid.becomes(self.grid.value(place)))

    def harms(self, eps: float) -> tuple[str, ...]:
        """The names of what an eps breaks here, whatever its kind."""
        lows, highs = self.bounds()
        broken = [self.below(eps, bound.name) for bound in lows if bound.broken(eps)]
        broken += [bound.name for bound in highs if bound.broken(eps)]
        return tuple(dict.fromkeys([*broken, *self.hopeless()]))

    def _effects(self) -> dict[str, Any]:
        eps, square = self.eps, self.square[self.square > 0]
        overflows = self.losses.overflows
        least = 2.0 ** -(self.output.precision + 1)
        known: dict[str, Any] = {
            "harm": self.hopeless(), "effective_eps": None, "representable": True,
            "vanishes": False, "rms": _three(np.sqrt(square)),
            "absorbed": 0, "dominated": 0, "shrink": None,
            "shrunk": 0, "half_ulp": least, "departure": 0.0, "reciprocal_overflows": False,
            "zero_row": "", "constant_row": "", "amplification": None, "gradient_scale": None,
            "square_overflows": int(overflows.squares.sum()),
            "sum_overflows": int(overflows.sums.sum()), "lost": 0,
            "row_overflows": self.evidence.overflowing, "reach": self.evidence.reach,
            "assumed": self.evidence.sizes is not None,
        }  # fmt: skip
        if eps is None:
            return known
        e = self.becomes(eps)
        place, count = self.plan.eps_place, self.evidence.hidden
        with np.errstate(all="ignore"):
            swallowed = self._swallows(square, e)
            shrink = shrinks(place, square, e, count)
        lost = self.losses.lost(eps)
        amplification = growth(place, e, count)
        if amplification is not None:
            top = self.evidence.largest_gain * amplification
            known["gradient_scale"] = self.evidence.format.largest / top if top else None
        return known | {
            "harm": self.harms(eps), "effective_eps": e, "representable": self.grid.holds(eps),
            "vanishes": e == 0 and eps > 0, "absorbed": int(swallowed.sum()),
            "dominated": int((e > square).sum()), "shrink": _quantiles(shrink),
            "shrunk": int((shrink > least).sum()),
            "departure": self._departure(eps),
            "reciprocal_overflows": self.reciprocal_overflows(eps),
            "zero_row": self._gives(0.0, eps), "amplification": amplification,
            "constant_row": self._gives(float(self.tops.max()), eps)
            if self.evidence.norm.centred else "",
            "lost": int((lost.low | lost.high | overflows.any).sum())
            + self.evidence.overflowing,
        }  # fmt: skip

    def _swallows(self, square: Floats, e: float) -> NDArray[np.bool_]:
        """[rows], where what eps is added to stays as it is."""
        place, steps = self.plan.eps_place, self.settled.step_formats()
        summed, rooted = Emulated(steps["sum"]), Emulated(steps["reciprocal"])
        added = np.array([e])
        held = summed.cast(square)
        match place:
            case "missing":
                return np.ones(square.shape, np.bool_)
            case "max":
                return np.asarray(held >= e)
            case "sum":
                total = summed.cast(square * self.evidence.hidden)
                return np.asarray(summed.add(total, added) == total)
            case "outside" | "outside_root":
                root = rooted.sqrt(held)
                more = rooted.sqrt(added) if place == "outside_root" else rooted.cast(added)
                return np.asarray(rooted.add(root, more) == root)
            case _:
                return np.asarray(summed.add(held, added) == held)

    def _departure(self, eps: float) -> float:
        """In units of what is harm, over the rows."""
        if self.departures is None:
            return 0.0
        return float(np.max(self.departures.shares(eps), initial=0.0))

    def _gives(self, value: float, eps: float) -> str:
        """What a row of one value gives."""
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


def _three(values: Floats) -> tuple[float, float, float] | None:
    """Least, median and largest."""
    if not values.size:
        return None
    return float(values.min()), float(np.median(values)), float(values.max())


def _quantiles(values: Floats) -> tuple[float, float, float] | None:
    """50 %, 90 % and largest."""
    if not values.size:
        return None
    middle, most = np.quantile(values, [0.5, 0.9])
    return float(middle), float(most), float(values.max())
