# SPDX-License-Identifier: Apache-2.0
"""How arrays are rounded to a format: the two ways behind `Format.round`.

Nearest-even within the range is done by adding and subtracting 1.5 * 2^k, where k makes the sum's
last place the format's: the addition itself then rounds, once, to nearest-even (after Dekker 1971).
Every other case is decided on the value scaled to an integer and a rest, which is exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from precision_lab.numbers.format import Format

    Floats = NDArray[np.float64]
    Values = NDArray[np.floating[Any]]

BLOCK = 1 << 14
"""Values a block: its few buffers stay in the second-level cache."""


class Word(NamedTuple):
    """A binary interchange format in which the addition is done."""

    floats: type[np.floating[Any]]
    integers: type[np.signedinteger[Any]]
    precision: int
    bias: int

    def field(self, exponent: int) -> int:
        """The exponent as it stands in the stored bits."""
        return (exponent + self.bias) << (self.precision - 1)


SINGLE = Word(np.float32, np.int32, 24, 127)
DOUBLE = Word(np.float64, np.int64, 53, 1023)
LIBRARY_CASTS = ("float16", "bfloat16")
"""Formats to which the library's cast from float32 is right for all 2^32 inputs, and fast."""


def round_to(
    target: Format, values: Values, mode: str, overflow: str, fraction: Floats | None
) -> Floats:
    """Round float32 or float64 values to a format, as `Format.round` says."""
    with np.errstate(all="ignore"):
        if target.precision == DOUBLE.precision or (
            target.name == "float32" and target.bounded and values.dtype == np.float32
        ):
            # Every value is one of the format's already.
            exact = values.astype(np.float64)
            if overflow == "saturate" and target.bounded:
                exact = _saturate(target, exact)
            return exact if target.subnormals else _fit_range(target, exact, exact, mode, overflow)
        if mode != "nearest_even" or not target.bounded or not target.subnormals:
            return _round_by_integers(target, values.astype(np.float64), mode, overflow, fraction)
        if values.dtype == np.float32 and target.name in LIBRARY_CASTS:
            cast = values.astype(target.dtype).astype(np.float64)
            return _saturate(target, cast) if overflow == "saturate" else cast
        return _round_by_addition(target, values, overflow)


def _saturate(target: Format, rounded: Floats) -> Floats:
    return np.clip(rounded, -target.largest, target.largest)


def _round_by_addition(target: Format, values: Values, overflow: str) -> Floats:
    """Nearest-even by addition, block by block."""
    # The constant must not overflow in the word, and must dwarf the value.
    room = target.emax + 1 + SINGLE.precision - target.precision <= SINGLE.bias
    word = SINGLE if values.dtype == np.float32 and room else DOUBLE
    source = np.ascontiguousarray(values, word.floats).reshape(-1)
    result = np.empty(source.shape, np.float64)
    size = min(BLOCK, source.size)
    total, constant = np.empty(size, word.floats), np.empty(size, word.integers)
    fields = word.integers(word.field(word.bias + 1))
    lowest = word.integers(word.field(target.emin))
    last = word.integers(word.field(target.emax))
    beyond = word.integers(word.field(target.emax + 1))
    # To 2^(e + lift) and half as much again, e being the value's exponent in the format.
    lift = word.integers(
        ((word.precision - target.precision) << (word.precision - 1)) + (1 << (word.precision - 2))
    )
    for start in range(0, source.size, BLOCK):
        x, out = source[start : start + BLOCK], result[start : start + BLOCK]
        r, k = total[: x.size], constant[: x.size]
        np.bitwise_and(x.view(word.integers), fields, out=k)
        np.maximum(k, lowest, out=k)
        np.minimum(k, beyond, out=k)
        may_leave = x.size > 0 and np.max(k) >= last
        np.add(k, lift, out=k)
        addend = k.view(word.floats)
        np.add(x, addend, out=r)
        np.subtract(r, addend, out=r)
        if target.negative_zero:
            np.copysign(r, x, out=r)
        out[...] = r
        if may_leave or not target.zero:
            out[...] = _fit_range(target, out, x, "nearest_even", overflow)
    return result.reshape(values.shape)


def _round_by_integers(
    target: Format, values: Floats, mode: str, overflow: str, fraction: Floats | None
) -> Floats:
    """Any mode, by an exact integer and rest."""
    exponent = np.frexp(values)[1] - 1
    if target.bounded and target.subnormals:
        exponent = np.maximum(exponent, target.emin)
    quantum = exponent - (target.precision - 1)
    steps = np.where(np.isfinite(values), np.ldexp(values, -quantum), 0.0)
    integers = np.trunc(steps)
    rest = np.abs(steps - integers)
    odd = np.remainder(integers, 2.0) != 0
    match mode:
        case "nearest_even":
            away = (rest > 0.5) | ((rest == 0.5) & odd)
        case "nearest_away":
            away = rest >= 0.5
        case "toward_zero":
            away = np.zeros(values.shape, bool)
        case "up":
            away = (rest > 0) & (values > 0)
        case "down":
            away = (rest > 0) & (values < 0)
        case "to_odd":
            away = (rest > 0) & ~odd
        case _:
            # 1 - fraction is exact; rest + fraction would not be.
            away = rest >= 1.0 - (0.0 if fraction is None else fraction)
    rounded = np.ldexp(integers + np.copysign(away, values), quantum)
    rounded = np.where(np.isfinite(values), np.copysign(rounded, values), values)
    return _fit_range(target, rounded, values, mode, overflow)


def _fit_range(target: Format, rounded: Floats, values: Floats, mode: str, overflow: str) -> Floats:
    """Bring rounded values into the format's range: overflow, flushing, zeros and signs."""
    if target.bounded:
        over = np.abs(rounded) > target.largest
        if over.any():
            past = _past_largest(target, rounded, values, mode, overflow)
            rounded = np.where(over, past, rounded)
    if target.bounded and not target.subnormals:
        rounded = np.where(np.abs(rounded) < target.tiny, np.copysign(0.0, rounded), rounded)
    if not target.zero:
        if target.bounded:
            # Nothing lies below the smallest value: toward zero there is no answer.
            stuck = mode in ("toward_zero", "down") and overflow == "ieee"
            below = (values > 0) & (rounded < target.tiny)
            rounded = np.where(below, np.nan if stuck else target.tiny, rounded)
        rounded = np.where(values == 0, np.nan, rounded)
    if not target.signed:
        rounded = np.where(values < 0, np.nan, rounded)
    if not target.negative_zero:
        rounded = rounded + 0.0
    return rounded


def _past_largest(
    target: Format, rounded: Floats, values: Floats, mode: str, overflow: str
) -> Floats:
    """What stands for a value past the largest."""
    largest = np.copysign(target.largest, rounded)
    if overflow == "saturate":
        return largest
    beyond = np.copysign(np.inf if target.infinities else np.nan, rounded)
    match mode:
        case "toward_zero" | "to_odd":
            stays = np.ones(rounded.shape, bool)
        case "up":
            stays = rounded < 0
        case "down":
            stays = rounded > 0
        case _:
            stays = np.zeros(rounded.shape, bool)
    return np.where(stays & np.isfinite(values), largest, beyond)
