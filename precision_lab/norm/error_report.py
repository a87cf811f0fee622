# SPDX-License-Identifier: Apache-2.0
"""How far the outputs of a norm lie from the truth, in units of their own format.

The distance in ulp is that of ordinals, extended linearly between neighbours (`Format.distance`):
half an ulp is the most that a correctly rounded value can have, across binades, at zero and among
subnormals alike. NaN, infinity and zero are counted, not measured, and so are outputs whose truth
lies past the largest value of the format: there no value of the format is near.

Sources: the ordinal distance is that of Herbie (Panchekha et al., "Automatically improving accuracy
for floating point expressions", 2015), which rounds it; the quantiles are order statistics.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.exceptions import InputError
from precision_lab.norm.ground_truth import ulp_exponent
from precision_lab.norm.groups import row_blocks
from precision_lab.numbers import Format, format_of, formats

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from precision_lab.arithmetic import Floats, Index, Mask
    from precision_lab.norm.ground_truth import Truth
    from precision_lab.norm.groups import Groups

BLOCK = 1 << 16
"""Elements that are measured at a time, so that intermediate arrays stay small."""
FINE = 2.0**-14
"""Where the truth's float64 may err by more of an ulp than this, the rest of it is asked for."""
NAN = float("nan")
COUNTS = ("out_of_range", "inf", "nan", "zero", "rows_inf", "rows_nan", "rows_zero")


@dataclass(frozen=True, kw_only=True)
class Worst:
    """The element that is farthest from the truth.

    Parameters
    ----------
    index
        Its place in the output.
    actual, expected, exact
        The value found, the correctly rounded one, and the exact one to float64.
    ulp
        The signed distance from the exact value; infinite where NaN or infinity stand for a number
        or a number for them.
    """

    index: tuple[int, ...]
    actual: float
    expected: float
    exact: float
    ulp: float


@dataclass(frozen=True, kw_only=True)
class ErrorReport:
    """Errors of an output against the truth.

    Every share, mean and quantile is NaN where there was nothing to measure.

    Parameters
    ----------
    format
        The name of the format whose ulp is the unit.
    count, rows
        Elements and rows of the output; a row is what has a statistic of its own.
    measured
        Elements whose distance was measured: numbers whose truth is a number within the range.
    out_of_range
        Elements whose truth is finite and, to float64, past the largest value.
    ulp_max
        The largest distance from the truth, in ulp, without its sign.
    ulp_p50
        The distance that half of the elements do not pass.
    ulp_p90
        The distance that 90 % do not pass.
    ulp_p99
        The distance that 99 % do not pass.
    ulp_p999
        The distance that 99.9 % do not pass.
    ulp_mean
        The mean distance, in ulp.
    bias
        The mean of (y − t)/ulp.
    bias_signed
        The mean of sign(t) (y − t)/ulp, in which truncation shows.
    relative_max
        The largest |y − t|/|t|, where t is not 0.
    relative_rms
        The root of the mean square of |y − t|/|t|, where t is not 0.
    absolute_max
        The largest |y − t|.
    correctly_rounded
        The share of elements that are the truth's correct rounding, of those whose truth is a
        number within the range; NaN where there is none, as where the inputs hold NaN or infinity
        once they are stored.
    kappa_max
        The largest distance from the correct rounding, in values of the format.
    inf
        Elements that are infinite where the correct rounding is not.
    nan
        Elements that are NaN where the correct rounding is not.
    zero
        Elements that are zero where the correct rounding is not.
    rows_inf
        Rows that hold an infinity where their correct rounding holds none.
    rows_nan
        Rows that hold a NaN where their correct rounding holds none.
    rows_zero
        Rows that are all zero where their correct rounding is not.
    worst
        The farthest element, None where nothing is off the truth and nothing was measured.
    """

    format: str
    count: int
    rows: int
    measured: int
    out_of_range: int
    ulp_max: float
    ulp_p50: float
    ulp_p90: float
    ulp_p99: float
    ulp_p999: float
    ulp_mean: float
    bias: float
    bias_signed: float
    relative_max: float
    relative_rms: float
    absolute_max: float
    correctly_rounded: float
    kappa_max: int
    inf: int
    nan: int
    zero: int
    rows_inf: int
    rows_nan: int
    rows_zero: int
    worst: Worst | None

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain data; those of `worst` as ``worst_…``, None where there is none."""
        fields = dataclasses.asdict(self)
        worst = fields.pop("worst") or {}
        names = [item.name for item in dataclasses.fields(Worst)]
        return fields | {f"worst_{name}": worst.get(name) for name in names}


def errors(
    actual: NDArray[Any],
    truth: Truth,
    *,
    format: Format | str | None = None,
    rounded: bool = True,
) -> ErrorReport:
    """Measure an output against the truth.

    Parameters
    ----------
    actual
        The output, in the shape of the truth.
    truth
        The exact values, from `truth`.
    format
        The format whose ulp is the unit; by default the one of the output's type. Another one must
        be held by that type (tf32 by float32).
    rounded
        Whether `actual` holds values of `format`. Where it does not, how far it lies off is
        measured as it stands, and what its rounding would be is counted.

    Returns
    -------
    ErrorReport

    Raises
    ------
    InputError
        If the shapes differ, the output's type is no format's, or it holds values that `format`
        does not have.
    """
    actual = np.asarray(actual)
    stored = format_of(actual)
    target = stored if format is None else formats.find(format)
    groups = truth.inputs.groups
    if actual.shape != groups.shape:
        raise InputError(f"the output has shape {actual.shape}, but the truth {groups.shape}")
    actual = groups.unfold(actual)
    if target != stored and rounded:
        _check_values(target, actual)
    # A format without NaN and infinity has no code for what is past its range.
    overflow = "ieee" if target.nan else "saturate"
    correct = truth.round(target, overflow=overflow)
    flat = actual.shape
    parts = [actual, *map(groups.unfold, (correct, truth.value)), _rest(target, truth, flat)]
    radius = groups.unfold(truth.radius)
    distance, relative = np.full((2, *flat), NAN)
    counts = Counter[str]()
    kappa, signed, farthest = 0, 0.0, 0.0
    for rows in row_blocks(flat, BLOCK):
        y, expected, t, rest = (part[rows].astype(np.float64) for part in parts)
        at = y if rounded else target.round(y, overflow=overflow)
        numbers, strange, tally = _census(target, at, expected, t, radius[rows])
        counts.update(tally)
        y, at, expected, t, rest = (part[numbers] for part in (y, at, expected, t, rest))
        unit = ulp_exponent(t)
        ulps = target.distance(at, t, rest, low_exponent=unit)
        if not rounded:
            ulps -= target.distance(at, y)
        distance[rows][numbers] = ulps
        distance[rows][strange] = np.inf
        relative[rows][numbers] = _relative(y, t, rest, unit)
        kappa = max(kappa, _kappa(target, at, expected))
        with np.errstate(over="ignore"):
            away = np.abs(y - t - np.ldexp(rest, unit))
        farthest = max(farthest, float(np.max(away, initial=0.0)))
        signed += float(np.sum(np.sign(np.where(t == 0, rest, t)) * ulps))
    sizes = _sizes(relative[~np.isnan(relative)])
    del relative
    worst = _worst(groups, distance, parts)
    right, within = counts.pop("right", 0), counts.pop("within", 0)
    measured = distance[np.isfinite(distance)]
    bias = _mean(measured)
    return ErrorReport(
        format=target.name,
        count=actual.size,
        rows=len(actual),
        measured=measured.size,
        bias=bias,
        bias_signed=signed / measured.size if measured.size else NAN,
        **_quantiles(np.abs(measured, out=measured)),
        **sizes,
        absolute_max=farthest if measured.size else NAN,
        correctly_rounded=right / within if within else NAN,
        kappa_max=kappa,
        worst=worst,
        **{name: counts[name] for name in COUNTS},
    )


def _check_values(target: Format, actual: NDArray[Any]) -> None:
    """Refuse an output that is not of the format that it is said to be of."""
    if actual.dtype != target.dtype:
        raise InputError(
            f"an output of type {actual.dtype} is not in {target.name}: give {target.dtype}"
        )
    y = actual.astype(np.float64)
    foreign = (target.round(y) != y) & ~np.isnan(y)
    if foreign.any():
        raise InputError(f"the output holds {y[foreign][0]}, which is no value of {target.name}")


def _rest(target: Format, truth: Truth, shape: tuple[int, ...]) -> Floats:
    """What the truth's float64 leaves out where the format sees it, else zeros."""
    unfold = truth.inputs.groups.unfold
    value, radius = unfold(truth.value), unfold(truth.radius)
    with np.errstate(invalid="ignore"):
        visible = any(
            (radius[b] > FINE * target.ulp(value[b])).any() for b in row_blocks(shape, BLOCK)
        )
    return unfold(truth.rest) if visible else np.broadcast_to(np.float64(0.0), shape)


def _census(
    target: Format, y: Floats, expected: Floats, t: Floats, radius: Floats
) -> tuple[Mask, Mask, dict[str, int]]:
    """Which elements can be measured, which put a number for none or none for one, and counts."""
    # A number past float64's own range stands as an infinity that has a radius.
    out = (np.isfinite(t) | (radius > 0)) & (np.abs(t) > target.largest)
    is_number, has_number = np.isfinite(y), np.isfinite(expected)
    numbers = is_number & has_number & np.isfinite(t) & ~out
    # Without a number as truth nothing is right or wrong: what came before it was lost.
    within = np.isfinite(t) & ~out
    counts = {
        "out_of_range": int(out.sum()),
        "within": int(within.sum()),
        "right": int(((y == expected) & within).sum()),
    }
    for name, is_so in (("inf", np.isinf), ("nan", np.isnan)):
        here, there = is_so(y), is_so(expected)
        counts[name] = int((here & ~there).sum())
        counts[f"rows_{name}"] = int((here.any(axis=1) & ~there.any(axis=1)).sum())
    lost = (y == 0) & (expected != 0)
    counts["zero"] = int(lost.sum())
    counts["rows_zero"] = int(((y == 0).all(axis=1) & lost.any(axis=1)).sum())
    return numbers, (is_number != has_number) & ~out, counts


def _relative(y: Floats, t: Floats, rest: Floats, unit: Index) -> Floats:
    """|y − t|/|t|, all in ulp of t, which have no underflow; NaN where the truth is 0."""
    exact = np.ldexp(t, -unit) + rest
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        difference = np.ldexp(y - t, -unit)
        error = np.abs((difference - rest) / exact)
        # y − t leaves the range of float64 where both are huge, and in ulp where y is.
        error = np.where(np.isinf(difference), np.abs(y / t - 1.0), error)
    return np.where(exact == 0, NAN, error)


def _kappa(target: Format, y: Floats, expected: Floats) -> int:
    """The largest distance in ordinals; in float64 it can take all 64 bits, hence unsigned."""
    if not y.size:
        return 0
    a, b = target.ordinal(y), target.ordinal(expected)
    high, low = np.maximum(a, b).view(np.uint64), np.minimum(a, b).view(np.uint64)
    return int((high - low).max())


def _quantiles(size: Floats) -> dict[str, Any]:
    """Order statistics and the mean of the distances' magnitudes."""
    size.sort()
    count = size.size

    def quantile(thousandths: int) -> float:
        """The smallest magnitude that this share of all does not pass."""
        return float(size[(count * thousandths + 999) // 1000 - 1]) if count else NAN

    return {
        "ulp_max": quantile(1000),
        "ulp_p50": quantile(500),
        "ulp_p90": quantile(900),
        "ulp_p99": quantile(990),
        "ulp_p999": quantile(999),
        "ulp_mean": _mean(size),
    }


def _sizes(error: Floats) -> dict[str, Any]:
    """Largest and root mean square relative error."""
    if not error.size:
        return {"relative_max": NAN, "relative_rms": NAN}
    largest = float(error.max())
    # Squares of scaled errors neither overflow nor vanish together.
    scale = largest if 0 < largest < np.inf else 1.0
    error /= scale
    with np.errstate(over="ignore"):
        rms = scale * float(np.sqrt(np.mean(np.square(error, out=error))))
    return {"relative_max": largest, "relative_rms": rms}


def _mean(values: Floats) -> float:
    return float(np.mean(values)) if values.size else NAN


def _worst(groups: Groups, distance: Floats, parts: list[NDArray[Any]]) -> Worst | None:
    """The first of the elements that are farthest off."""
    if np.isnan(distance).all():
        return None
    at = int(np.nanargmax(np.abs(distance)))
    actual, expected, exact, rest = (float(part.flat[at]) for part in parts)
    return Worst(
        index=groups.place(*divmod(at, groups.elements)),
        actual=actual,
        expected=expected,
        exact=exact + rest * math.ulp(exact) if math.isfinite(exact) else exact,
        ulp=float(distance.flat[at]),
    )
