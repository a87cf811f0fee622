# SPDX-License-Identifier: Apache-2.0
"""Errors by their definition: element by element, from rational numbers and lists of values."""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
from slow_rounding import float32_round, grid

from precision_lab.norm.groups import Groups
from precision_lab.numbers.table import formats

NAN, INF = math.nan, math.inf
LARGEST = Fraction(np.finfo(np.float64).max)

SLOW = [name for name in formats if name != "tf32"]


def magnitudes(name):
    """The magnitudes of a format of 16 bits or fewer from 0 up, from ml_dtypes' codes."""
    values = grid(name).values
    return values if values[0] == 0 else [0.0, *values]


def slow_place(name, exact):
    """Where a rational number lies among the values of a format, 0 at zero."""
    sign, size = (-1 if exact < 0 else 1), abs(exact)
    if name in ("float32", "float64"):
        kind, bits = (np.float32, np.uint32) if name == "float32" else (np.float64, np.uint64)
        below = kind(float32_round(size) if name == "float32" else float(size))
        if Fraction(float(below)) > size:
            below = np.nextafter(below, kind(0))
        index, low = int(below.view(bits)), Fraction(float(below))
        with np.errstate(over="ignore"):
            above = np.nextafter(below, kind(INF))
        if np.isfinite(above):
            gap = Fraction(float(above)) - low
        else:
            gap = low - Fraction(float(np.nextafter(below, kind(0))))
    else:
        values = magnitudes(name)
        index = min(bisect_right(values, size) - 1, len(values) - 2)
        low = Fraction(values[index])
        gap = Fraction(values[index + 1]) - low
    return sign * (index + (size - low) / gap)


def slow_round(name, exact):
    """The correct rounding of a rational number, or what stands for NaN and infinity."""
    policy = "ieee" if formats[name].nan else "saturate"
    if not isinstance(exact, Fraction):
        return exact if formats[name].infinities else NAN
    if not formats[name].signed and exact <= 0:
        return NAN
    if name == "float64":
        return float(exact)
    return (
        float32_round(exact)
        if name == "float32"
        else grid(name).round(exact, "nearest_even", policy)
    )


class SlowTruth:
    """A truth with these exact values, rational or special, in one row."""

    def __init__(self, exact):
        self.exact = exact
        self.inputs = SimpleNamespace(groups=Groups.of_rows((1, len(exact))))
        high = [float(t) for t in exact]
        rest = [float((t - Fraction(h)) / Fraction(math.ulp(h))) if math.isfinite(h) else 0.0
                for t, h in zip(exact, high, strict=True)]  # fmt: skip
        self.value, self.rest = np.array([high]), np.array([rest])
        # Without a bound worth the name, the rest must be used.
        self.radius = np.where(self.rest == 0, 0.0, INF)

    def round(self, format, overflow):
        """The slow rounding of each."""
        assert ("ieee" if format.nan else "saturate") == overflow
        values = [slow_round(format.name, t) for t in self.exact]
        if format.name == "float64":
            return np.array([values])
        with np.errstate(invalid="ignore"):
            return np.array([values], np.float32).astype(format.dtype)


def slow_errors(name, actual, exact):
    """The report's fields by definition; floats still to be compared with a tolerance."""
    largest = Fraction(formats[name].largest)
    ulps, signed, relative, absolute, kappa = [], [], [], [], [0]
    out = right = inf = nan = zero = 0
    expected = [slow_round(name, t) for t in exact]
    worst = []
    for y, e, t in zip(actual, expected, exact, strict=True):
        number = isinstance(t, Fraction)
        inf += math.isinf(y) and not math.isinf(e)
        nan += math.isnan(y) and not math.isnan(e)
        zero += y == 0 and e != 0
        # Told from float64: a truth within its rounding of the largest value is not past it.
        if number and abs(float(t)) > largest:
            out += 1
            continue
        right += number and y == e
        if number and math.isfinite(e) and math.isfinite(y):
            distance = slow_place(name, Fraction(y)) - slow_place(name, t)
            ulps.append(abs(distance))
            signed.append(distance * ((t > 0) - (t < 0)))
            worst.append(abs(distance))
            away = abs(Fraction(y) - t)
            absolute.append(float(away) if away <= LARGEST else INF)
            kappa.append(abs(slow_place(name, Fraction(y)) - slow_place(name, Fraction(e))))
            if t != 0:
                # Past float64 it is infinite there.
                error = abs((Fraction(y) - t) / t)
                relative.append(error if error < Fraction(2) ** 1023 else INF)
        elif math.isfinite(y) != math.isfinite(e):
            worst.append(INF)
    ulps.sort()
    count, within = len(ulps), sum(isinstance(t, Fraction) for t in exact) - out
    quantiles = {
        f"ulp_{name}": ulps[math.ceil(count * share) - 1] if count else NAN
        for name, share in {
            "p50": Fraction(1, 2), "p90": Fraction(9, 10), "p99": Fraction(99, 100),
            "p999": Fraction(999, 1000), "max": Fraction(1),
        }.items()
    }  # fmt: skip
    return {
        "count": len(exact), "rows": 1, "measured": count, "out_of_range": out,
        "inf": inf, "nan": nan, "zero": zero, "kappa_max": max(kappa),
        "rows_inf": any(map(math.isinf, actual)) and not any(map(math.isinf, expected)),
        "rows_nan": any(map(math.isnan, actual)) and not any(map(math.isnan, expected)),
        "rows_zero": not any(actual) and any(expected),
        "correctly_rounded": right / within if within else NAN,
        "ulp_mean": sum(ulps) / count if count else NAN,
        "bias_signed": sum(signed) / count if count else NAN,
        "relative_max": max(relative, default=NAN),
        "absolute_max": max(absolute, default=NAN),
        "relative_rms": math.sqrt(sum(r * r for r in relative) / len(relative))
        if relative and max(relative) < 2**500 else None,
        "worst": max(worst, default=None),
        **quantiles,
    }  # fmt: skip


def differences(report, slow, scale):
    """Names of the fields in which the report and the slow one differ."""
    found = {**report.to_dict(), "worst": None if report.worst is None else abs(report.worst.ulp)}
    return [
        name
        for name, value in slow.items()
        if not (
            (value is None and (name == "relative_rms" or found[name] is None))
            or found[name] == value
            or (math.isnan(value) and math.isnan(found[name]))
            or math.isclose(value, found[name], rel_tol=1e-9, abs_tol=scale)
        )
    ]
