# SPDX-License-Identifier: Apache-2.0
"""Looks for an input on which two plans disagree: the fewest elements, the simplest values.

Rows of one to four simple values are tried first, then random rows of 8 and 17, then short ones of
values from the ends of the range, then random ones of up to 1024 elements; what is found is made
smaller. The same plans always give the same input.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, product
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.inputs import make_bias, make_gain, make_inputs
from precision_lab.plan import emulate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from precision_lab.arithmetic import Floats
    from precision_lab.norm import Norm
    from precision_lab.numbers import Format
    from precision_lab.plan import Plan

SHORT = {1: 1200, 2: 40, 3: 12, 4: 6}
"""Of how many simple values the rows of so many elements are made."""
LONG = (8, 17, 64, 300, 1024)
MOST_ROWS, OUTPUTS = 8192, 2**17
"""How many long rows and outputs are looked at for each length, each gain and bias, each offset."""
OFFSETS = (0.0, 64.0)
MOST_STEPS, MOST_SIMPLER = 300, 64
"""How often a long row may be tried smaller, and up to what length its values simpler."""
SEED = 0


@dataclass(frozen=True, eq=False)
class RowInputs:
    """Rows with their gain and bias, values of one format.

    Parameters
    ----------
    x
        [rows, n].
    weight, bias
        [n] or None.
    eps
        Given to both plans.
    """

    x: Floats
    weight: Floats | None
    bias: Floats | None
    eps: float

    def take_row(self, row: int) -> RowInputs:
        """One row alone."""
        return replace(self, x=self.x[row : row + 1])

    def drop_elements(self, start: int, stop: int) -> RowInputs:
        """Fewer elements."""
        parts = (
            None if part is None else np.delete(part, slice(start, stop), axis=-1)
            for part in (self.x, self.weight, self.bias)
        )
        x, weight, bias = parts
        assert x is not None  # noqa: S101 - a row is always given
        return RowInputs(x, weight, bias, self.eps)

    def cast(self, format: Format) -> tuple[NDArray[Any], NDArray[Any] | None, NDArray[Any] | None]:
        """x, weight and bias in the format's type."""
        weight, bias = (
            None if part is None else format.cast(part) for part in (self.weight, self.bias)
        )
        return format.cast(self.x), weight, bias


def bits_differ(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    """Where two arrays hold other numbers; zeros have signs, and every NaN is the same."""
    a, b = one.astype(np.float64), other.astype(np.float64)
    same = (a == b) & (np.signbit(a) == np.signbit(b)) | np.isnan(a) & np.isnan(b)
    return np.asarray(~same)


class CounterexampleSearch:
    """The search for a row on which two plans disagree, and how many rows were tried.

    Parameters
    ----------
    one, other, norm
        The plans, and the norm that both compute.
    format
        Holds x, gain and bias.
    biased
        Whether a bias is tried.
    """

    def __init__(
        self, one: Plan, other: Plan, norm: Norm, format: Format, *, biased: bool = True
    ) -> None:
        # tf32 is held in arrays of float32, whose type does not say it.
        self.plans = one.formats_for(format, format), other.formats_for(format, format)
        self.norm = norm
        self.format = format
        self.biased = biased
        self.tried = 0

    def outputs(self, given: RowInputs) -> tuple[NDArray[Any], NDArray[Any]]:
        """What each plan makes of the rows."""
        arrays = given.cast(self.format)
        self.tried += len(given.x)
        one, other = (
            emulate(*arrays, eps=given.eps, plan=plan, norm=self.norm) for plan in self.plans
        )
        return one, other

    def differ(self, given: RowInputs) -> NDArray[np.bool_]:
        """[rows, n]: where the outputs have other bits."""
        return bits_differ(*self.outputs(given))

    def find(self) -> RowInputs | None:
        """The first row on which the plans disagree, made small; None if there is none here."""
        for given in chain(
            self._short(), self._long(LONG[:2]), self._short(ends=True), self._long(LONG[2:])
        ):
            rows = self.differ(given).any(axis=1)
            if rows.any():
                return self.shrink(given.take_row(int(np.argmax(rows))))
        return None

    # What is tried ------------------------------------------------------------------------------

    def _short(self, *, ends: bool = False) -> Iterator[RowInputs]:
        """Rows of one to four simple values, with gains and biases of one value."""
        affine = [(None, None), *self._affine()]
        for n, count in SHORT.items():
            x = _rows(simplest(self.format, count, ends=ends), n)
            for weight, bias in affine:
                gain, shift = (
                    None if part is None else self.round_vector(np.full(n, part))
                    for part in (weight, bias)
                )
                yield from (RowInputs(x, gain, shift, eps) for eps in self._eps())

    def _affine(self) -> Iterable[tuple[float | None, float | None]]:
        """Gains and biases, the simple ones first."""
        gains: list[float | None] = [3.0, 1.5, 1.0 + self.format.epsilon, 0.1]
        biases: list[float | None] = [1.0, 0.1] if self.biased else []
        pairs = [*((gain, None) for gain in gains), *((None, bias) for bias in biases)]
        yield from [*pairs, *product(gains[::3], biases)]

    def round_vector(self, values: Floats | None) -> Floats | None:
        """Values rounded to the format; None stays None."""
        return None if values is None else self.format.round(values)

    def _eps(self) -> list[float]:
        """The plans' defaults first, then others that show where eps goes."""
        # In a format without NaN 0/0 has no output.
        more = [1e-8, 0.0, 2.0**-6] if self.format.nan else [2.0**-6]
        return list(dict.fromkeys([*(plan.default_eps(self.format) for plan in self.plans), *more]))

    def _long(self, lengths: Iterable[int]) -> Iterator[RowInputs]:
        """Random rows with and without gain and bias, as they are and far from 0."""
        for n in lengths:
            x = make_inputs("normal", rows=min(OUTPUTS // n, MOST_ROWS), hidden=n, seed=SEED)
            gain = self.round_vector(make_gain("random", hidden=n, seed=SEED))
            affine: list[tuple[Floats | None, Floats | None]] = [(None, None), (gain, None)]
            if self.biased:
                affine.append((gain, self.round_vector(make_bias("random", hidden=n, seed=SEED))))
            for offset in OFFSETS:
                rows = self.format.round(x + offset)
                for weight, shift in affine:
                    yield RowInputs(rows, weight, shift, self._eps()[0])

    # Making it smaller --------------------------------------------------------------------------

    def shrink(self, given: RowInputs) -> RowInputs:
        """A row with fewer elements and simpler ones that still shows the difference."""
        last = self.tried + MOST_STEPS
        size = given.x.shape[1] // 2
        while size and self.tried < last:
            start = 0
            while start < given.x.shape[1] > size and self.tried < last:
                less = given.drop_elements(start, start + size)
                if self.differ(less).any():
                    given = less
                else:
                    start += size
            size //= 2
        for vector in ("bias", "weight"):
            less = replace(given, **{vector: None})  # type: ignore[arg-type]
            given = less if self.differ(less).any() else given
        return self._simplify(given)

    def _simplify(self, given: RowInputs) -> RowInputs:
        """Each value of x by as few bits as will do."""
        if given.x.shape[1] > MOST_SIMPLER:
            return given
        for place in range(given.x.shape[1]):
            value = given.x[0, place]
            choices = self.format.round(_simplifications(value, self.format.precision))
            choices = choices[np.isfinite(choices)]
            rows = np.repeat(given.x, len(choices), axis=0)
            rows[:, place] = choices
            kept = self.differ(replace(given, x=rows)).any(axis=1)
            if kept.any():
                given = replace(given, x=rows[np.argmax(kept)][None])
        return given


def simplest(format: Format, count: int, *, ends: bool = False) -> Floats:
    """So many values of a format at most: those of few significant bits near 1 first.

    Zero first; each positive value is followed by its negative; then, with `ends`, the largest
    value, the smallest ones and −0.
    """
    low, high = np.log2(format.smallest), np.log2(format.largest)
    odd, exponents = np.arange(1, 16, 2), np.arange(np.floor(low), np.ceil(high) + 1)
    with np.errstate(over="ignore"):
        values = np.ldexp(*np.broadcast_arrays(odd[:, None].astype(float), exponents.astype(int)))
    bits = np.broadcast_to(np.ceil(np.log2(odd + 0.5))[:, None], values.shape)
    exact = (format.round(values) == values) & (values <= format.largest)
    values, bits = values[exact], bits[exact]
    ranked = values[np.lexsort((-values, bits + np.abs(np.log2(values)) / 4))][: (count - 1) // 2]
    last = [format.largest, format.tiny, format.smallest, -0.0] if ends else []
    signed = [sign * value for value in ranked for sign in (1, -1)]
    chosen = [0.0, *signed[: count - 1 - len(last)], *last]
    # Zeros of both signs are equal, but not the same value here.
    distinct = {(value, np.signbit(value)): value for value in chosen}
    found = np.array(list(distinct.values()), np.float64)
    return np.asarray(found[format.round(found) == found])


def _rows(values: Floats, n: int) -> Floats:
    """Every row of n values, those of the simplest first."""
    places = np.array(list(product(range(len(values)), repeat=n)))
    return np.asarray(values[places[np.argsort(places.sum(axis=1), kind="stable")]])


def _simplifications(value: float, precision: int) -> Floats:
    """Simpler values than this one, the simplest first: 0, ±1, and it with fewer bits."""
    significand, exponent = np.frexp(value)
    scales = 2.0 ** np.arange(1, precision)
    shorter = np.ldexp(np.round(significand * scales) / scales, exponent)
    return np.array([0.0, np.copysign(1.0, value), *shorter], np.float64)
