# SPDX-License-Identifier: Apache-2.0
"""The bounds of sound computations once more, from their definitions, in rationals and mpmath."""

from __future__ import annotations

from fractions import Fraction

import mpmath

UNIT = mpmath.mpf(2) ** -24


def gamma(m):
    """γ(m)."""
    return m * UNIT / (1 - m * UNIT)


def exact_in_float32(values, quantum_least=-149):
    """Whether a sum of these fractions is exact in float32 in every order."""
    values = [v for v in values if v]
    if not values:
        return True
    if any(v.denominator & (v.denominator - 1) for v in values):
        return False
    quantum = 0
    while any((v / Fraction(2) ** quantum).denominator != 1 for v in values):
        quantum -= 1
    while all((v / Fraction(2) ** (quantum + 1)).denominator == 1 for v in values):
        quantum += 1
    total = sum(abs(v) for v in values)
    return total <= Fraction(2) ** (24 + quantum) and quantum >= quantum_least


def float32(value):
    """Whether a fraction is a float32."""
    if not value:
        return True
    denominator = value.denominator
    odd = abs(value.numerator)
    exponent = 0
    while odd % 2 == 0:
        odd //= 2
        exponent += 1
    if denominator & (denominator - 1):
        return False
    exponent -= denominator.bit_length() - 1
    return odd.bit_length() <= 24 and exponent >= -149


def rounded(statistic, x, deviations, exact_squares):
    """k."""
    n, nonzero = len(x), sum(d != 0 for d in deviations)
    if statistic == "scaled":
        return nonzero
    if statistic == "running":
        return max(3 * n, nonzero + 4 * len({abs(d) for d in deviations if d}))
    direct = 0 if exact_squares else nonzero
    if statistic in {"welford", "shifted"}:
        after = n - next((i for i, v in enumerate(x) if v), 0)
        return max(direct, min(n, 4 * (after + 16)))
    return direct


def allowance(row, gain, bias, eps, *, centred, statistic, tiny):
    """v, t, A_n and A of each element of a row, as mpmath numbers.

    Parameters
    ----------
    row, gain, bias
        Floats; bias may be None.
    """
    mpmath.mp.prec = 300
    x = [Fraction(v) for v in row]
    n = len(x)
    mean = sum(x, Fraction(0)) / n if centred else Fraction(0)
    deviations = [v - mean for v in x]
    if centred != (statistic in {"welford", "shifted"}):
        statistic = "direct"
    welford, shifted = statistic in {"welford", "shifted"}, statistic == "shifted"
    addends = statistic in {"scaled", "running"}
    exact_mean = exact_in_float32(x) and float32(mean)
    squares = [d * d for d in deviations]
    exact_squares = exact_in_float32(squares) and (exact_mean or not centred)
    k = rounded(statistic, x, deviations, exact_squares)
    ms = to_mp(sum(squares, Fraction(0)) / n)
    radicand = ms + mpmath.mpf(eps)
    r = 1 / mpmath.sqrt(radicand)
    tiny = mpmath.mpf(tiny)
    size = to_mp(sum(map(abs, x), Fraction(0)) / n)
    top = to_mp(max(map(abs, x)))
    e = mpmath.mpf(0)
    if centred and (welford or not exact_mean):
        e = gamma(n + 3) * (size + (top if shifted else 0))
    if welford:
        # Addends divided by n first.
        e += n * tiny
    if centred and tiny == mpmath.mpf(2) ** -126:
        # Flushed: x, partial sums, the mean and x in x − m.
        e += 4 * tiny
    own = 12 if statistic == "direct" else 18
    delta = gamma(mpmath.mpf(k) / 2 + own) + tiny / radicand + e**2 / (2 * radicand)
    if welford:
        delta += n * UNIT * abs(to_mp(mean)) * mpmath.sqrt(ms) / (2 * radicand)
    if shifted:
        delta += 2 * UNIT * top * mpmath.sqrt(ms) / radicand
    if addends:
        delta += 2 * n * (1 + size) * tiny / radicand
    lost = (1 + r + (mpmath.sqrt(n) if addends else 0)) * tiny
    found = []
    for i, d in enumerate(deviations):
        v = to_mp(d) * r
        g, b = mpmath.mpf(gain[i]), mpmath.mpf(0 if bias is None else bias[i])
        normalised = abs(v) * delta + e * r + lost
        output = abs(g) * normalised + 2 * UNIT * (abs(v * g) + abs(b)) + (abs(g) + 1) * tiny
        if 0 < abs(r * g) < mpmath.mpf(2) ** -126 * (1 + mpmath.mpf(2) ** -16):
            # A gain folded into r is a subnormal number, and is multiplied by x and by m.
            output += (abs(to_mp(x[i])) + abs(to_mp(mean))) * tiny
        found.append((v, v * g + b, normalised, output))
    return found


def to_mp(value):
    """A fraction as an mpmath number."""
    return mpmath.mpf(value.numerator) / value.denominator
