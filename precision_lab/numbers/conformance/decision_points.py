# SPDX-License-Identifier: Apache-2.0
"""Decision points: the inputs at which rounding to a format can go wrong, and what is right there.

A rounding function decides between two neighbouring values a < b. It is constant between a and
the midpoint and between the midpoint and b, so it is right everywhere if it is right at a, just
after a, just below the midpoint, at it, just above it, and just before b. "Just" is the next
number of the source, float32 or float64; beside midpoints float64 has float32's neighbours too,
at which a way through a narrower type shows.

The points are built from the facts of a format's row, by integers: each knows the a and b that it
was built between, so the right answer in every mode follows from its place alone. Nothing here
rounds, and no code is shared with `precision_lab.numbers.rounding`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.exceptions import unknown
from precision_lab.numbers.table import formats

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from precision_lab.numbers.format import Format

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]

SOURCES = ("float32", "float64")
KINDS = (
    "value", "after a value", "below a midpoint", "midpoint", "above a midpoint", "before a value",
    "past the largest", "near zero", "infinity", "NaN",
)  # fmt: skip
"""What a point is; zero is a value, half the smallest and the overflow edge are midpoints."""

LISTED_BITS = 16
"""Formats of at most so many bits are taken whole, of the others a sample."""
FEW_BITS = 8
"""Formats of at most so many bits have points for each format through which they are rounded."""
SAMPLE = 64
SEED = 754


@dataclass(frozen=True)
class Points:
    """Decision points of a format, with the neighbours that each lies between.

    Parameters
    ----------
    format, source
        What is rounded to, and from: ``"float32"`` or ``"float64"``.
    values
        The points, of the source's type, both signs.
    lower, upper
        Magnitudes of the neighbours, lower <= abs(value) < upper. Past the largest value they stay
        at the largest and what would follow it.
    rest
        (abs(value) - lower) / (upper - lower), exact: below 1 but past the largest.
    odd
        Whether the significand of `lower` is odd.
    kind
        Index into `KINDS`.
    """

    format: Format
    source: str
    values: NDArray[Any]
    lower: Floats
    upper: Floats
    rest: Floats
    odd: Mask
    kind: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.values)


@lru_cache(maxsize=4)
def points(format: str, source: str) -> Points:
    """The decision points of a format, by name, from a source, float32 or float64.

    Formats of 16 bits and fewer are taken whole; of each binade of the others the ends and 64
    significands drawn with a fixed seed. Where the source is narrower than the format, its own
    values are the points, and rounding must leave them alone.

    Raises
    ------
    InputError
        For an unknown format or source.
    """
    if source not in SOURCES:
        raise unknown("source", source, SOURCES)
    target = formats[format]
    row = target if target.precision <= formats[source].precision else formats[source]
    scalar = np.dtype(source).type
    with np.errstate(all="ignore"):
        significand, quantum = _significands(row)
        lower = np.ldexp(significand.astype(np.float64), quantum)
        upper = np.ldexp((significand + 1).astype(np.float64), quantum)
        # One that float64 cannot hold is no point, and is dropped below.
        middle = np.ldexp((2 * significand + 1).astype(np.float64), quantum - 1)
        odd = significand % 2 == 1
        a, m, b = (ends.astype(scalar) for ends in (lower, middle, upper))
        zero, inf = scalar(0), scalar(np.inf)
        inside = {
            "value": [a],
            "after a value": [np.nextafter(a, inf)],
            "below a midpoint": [np.nextafter(m, zero)],
            "midpoint": [m],
            "above a midpoint": [np.nextafter(m, inf)],
            "before a value": [np.nextafter(b, zero)],
        }
        if scalar is np.float64:
            # float32's neighbours tell a way through float32 from one through a narrower type.
            single = m.astype(np.float32)
            inside["below a midpoint"] += [np.nextafter(single, np.float32(0)).astype(scalar)]
            inside["above a midpoint"] += [np.nextafter(single, np.float32(np.inf)).astype(scalar)]
        if target.bits <= FEW_BITS:
            # Through bfloat16, float16 or float32: the neighbours that these formats have tell.
            for precision in (11, 24):
                sides = {
                    "after a value": (lower, 1), "below a midpoint": (middle, -1),
                    "above a midpoint": (middle, 1), "before a value": (upper, -1),
                }  # fmt: skip
                for kind_, (ends, side) in sides.items():
                    inside[kind_] += [_neighbour(ends, side, precision).astype(scalar)]
        outside = {
            "past the largest": (_beyond_largest(target, scalar), np.argmax(lower)),
            "near zero": (_near_zero(target, scalar), 0),
            "infinity": (np.array([inf]), np.argmax(lower)),
            "NaN": (np.array([np.nan], scalar), 0),
        }
        members = [
            (kind, x[keep], np.flatnonzero(keep))
            for kind, candidates in inside.items()
            for x in candidates
            for keep in [_exists(kind, x.astype(np.float64), lower, middle, upper)]
        ]
        members += [(kind, x, np.full(len(x), around)) for kind, (x, around) in outside.items()]
        magnitude = np.concatenate([x for _, x, _ in members])
        at = np.concatenate([index for *_, index in members])
        kind = np.concatenate(
            [np.full(len(x), KINDS.index(name), np.int8) for name, x, _ in members]
        )
        rest = (magnitude.astype(np.float64) - lower[at]) / (upper - lower)[at]
    return Points(
        target,
        source,
        np.concatenate([magnitude, -magnitude]),
        *(np.tile(x, 2) for x in (lower[at], upper[at], rest, odd[at], kind)),
    )


def _neighbour(values: Floats, side: int, precision: int) -> Floats:
    """The next number of so many bits above (side 1) or below (-1) each; zero has none."""
    fraction, exponent = np.frexp(values)
    steps = np.ldexp(fraction, precision) + side * np.where((side < 0) & (fraction == 0.5), 0.5, 1)
    return np.where(values == 0, np.nan, np.ldexp(steps, exponent - precision))


def _exists(kind: str, x: Floats, lower: Floats, middle: Floats, upper: Floats) -> Mask:
    """Where the source has such a point: what it could not hold has become something else."""
    if kind == "value":
        return np.asarray(x == lower)
    inside = (lower < x) & (x < upper)
    match kind:
        case "midpoint":
            inside &= x == middle
        case "below a midpoint":
            inside &= x < middle
        case "above a midpoint":
            inside &= x > middle
        case _:
            pass
    return inside


def _significands(row: Format) -> tuple[NDArray[np.int64], NDArray[np.intc]]:
    """Significands m and exponents q of values m * 2^q from zero up, the largest one last."""
    hidden = 1 << (row.precision - 1)
    binades = np.arange(row.emin, row.emax + 1)
    if row.bits <= LISTED_BITS:
        below = np.arange(hidden)
        normal = np.tile(hidden + below, (len(binades), 1))
    else:
        random = np.random.default_rng(SEED).integers(0, hidden, (len(binades) + 1, SAMPLE))
        ends = np.array([0, 1, hidden // 2, hidden - 2, hidden - 1])
        below = np.unique([*ends, *(1 << np.arange(row.precision - 1)), *random[-1]])
        normal = hidden + np.hstack([np.tile(ends, (len(binades), 1)), random[:-1]])
    top = 2 * hidden - 1 - row.missing_at_top
    normal[-1] = np.minimum(normal[-1], top)
    quantum = np.broadcast_to(binades[:, None], normal.shape)
    significand = np.concatenate([below, normal.ravel()])
    exponent = np.concatenate([np.full(len(below), row.emin), quantum.ravel()]) - row.precision + 1
    pairs = np.unique(np.stack([exponent, significand]), axis=1)
    return pairs[1], pairs[0].astype(np.intc)


def _beyond_largest(target: Format, scalar: type[np.floating[Any]]) -> NDArray[Any]:
    """What the source holds past the overflow edge's binade: what follows it, and up to its end."""
    following = np.ldexp(
        float(2**target.precision - target.missing_at_top), target.emax - target.precision + 1
    )
    doublings = following * 2.0 ** np.arange(8)
    ladder = np.ldexp(1.0, np.arange(target.emax + 2, 1024, 16))
    huge = np.array([*doublings, *ladder, np.finfo(scalar).max], np.float64)
    found = np.unique(huge[huge <= float(np.finfo(scalar).max)].astype(scalar))
    found = found[found >= following]
    after = np.nextafter(found, scalar(np.inf))
    return np.unique(np.concatenate([found, after[np.isfinite(after)]]))


def _near_zero(target: Format, scalar: type[np.floating[Any]]) -> NDArray[Any]:
    """Powers of two that the source holds below half the smallest value."""
    half = target.emin - target.precision
    ladder = np.ldexp(1.0, np.arange(-1074, half, 16)).astype(scalar)
    smallest = np.finfo(scalar).smallest_subnormal
    return np.unique([x for x in (smallest, *ladder) if 0 < x < np.ldexp(1.0, half)]).astype(scalar)


def expected(
    where: Points,
    *,
    mode: str = "nearest_even",
    overflow: str = "ieee",
    fraction: Floats | float = 0.0,
) -> Floats:
    """What rounding must give at decision points, from their places between neighbours.

    Parameters
    ----------
    mode
        A mode of `Format.round`, or ``"nearest_zero"`` or ``"nearest_odd"``: ties toward zero, or
        to the odd neighbour, which no format asks for and some functions do.
    overflow
        A policy of `Format.round`.
    fraction
        For ``"stochastic"``: the random bits as fractions of an ulp.
    """
    row, x, rest, odd = where.format, where.values.astype(np.float64), where.rest, where.odd
    negative = np.signbit(x)
    with np.errstate(invalid="ignore"):
        away = _AWAY[mode](rest, odd, negative, np.asarray(fraction)) | (rest >= 1)
    magnitude = np.where(away, where.upper, where.lower)
    past = (magnitude > row.largest) & np.isfinite(x)
    # Past the largest these modes go no farther than it.
    stays = past & (
        (mode in ("toward_zero", "to_odd"))
        | ((mode == "up") & negative)
        | ((mode == "down") & ~negative)
    )
    beyond = np.inf if row.infinities else np.nan
    beyond = row.largest if overflow == "saturate" else beyond
    magnitude = np.where((past & ~stays) | np.isinf(x), beyond, magnitude)
    magnitude = np.where(stays, row.largest, magnitude)
    if not row.zero:
        # Below the smallest value there is none to go down to.
        down = mode in ("toward_zero", "down") and overflow == "ieee"
        lowest = np.where(rest >= 1, row.smallest, np.nan if down else row.smallest)
        magnitude = np.where(where.lower == 0, lowest, magnitude)
        magnitude = np.where(x == 0, np.nan, magnitude)
    magnitude = np.where(np.isnan(x), np.nan, magnitude)
    result = np.where(negative, -magnitude, magnitude)
    if not row.signed:
        result = np.where(negative & (x != 0), np.nan, result)
    # Adding zero takes the sign from a zero and nothing else.
    return result if row.negative_zero else result + 0.0


_AWAY: dict[str, Any] = {
    "nearest_even": lambda rest, odd, _n, _f: (rest > 0.5) | ((rest == 0.5) & odd),
    "nearest_away": lambda rest, _o, _n, _f: rest >= 0.5,
    "nearest_zero": lambda rest, _o, _n, _f: rest > 0.5,
    "nearest_odd": lambda rest, odd, _n, _f: (rest > 0.5) | ((rest == 0.5) & ~odd),
    "toward_zero": lambda rest, _o, _n, _f: np.zeros(rest.shape, bool),
    "up": lambda rest, _o, negative, _f: (rest > 0) & ~negative,
    "down": lambda rest, _o, negative, _f: (rest > 0) & negative,
    "to_odd": lambda rest, odd, _n, _f: (rest > 0) & ~odd,
    "stochastic": lambda rest, _o, _n, fraction: rest >= 1 - fraction,
}
"""Whether a magnitude goes to its upper neighbour, by mode; at precision 1 all are odd."""


def same_values(left: Floats, right: Floats) -> Mask:
    """Where two arrays hold the same value: the sign of zero counts, that of a NaN does not."""
    equal = (left == right) & (np.signbit(left) == np.signbit(right))
    return np.asarray(equal | (np.isnan(left) & np.isnan(right)))
