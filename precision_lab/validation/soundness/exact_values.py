# SPDX-License-Identifier: Apache-2.0
"""The exact quantities of a row that the bounds of a sound computation are made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.arithmetic import double_double

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from precision_lab.arithmetic import Floats, Index, Mask
    from precision_lab.norm import Inputs

INTEGERS = 2.0**24
"""Integers up to this are float32 numbers; sums of such, below it, are exact in every order."""

SMALLEST = -149
"""The exponent of float32's smallest number."""

ROUNDED = 2.0**-44
"""More than float64 errs by, relative: sums of up to 2^32 addends by halves, and a few more."""

MEAN_ROUNDED = 2.0**-85
"""More than a double-double mean errs by, beside the mean of magnitudes."""


@dataclass(frozen=True, eq=False)
class Exact:
    """What a norm is made of, group by group, in float64. A row here is a group.

    Parameters
    ----------
    inputs
        The norm's arguments, checked: values of float32 or narrower formats.
    hidden
        Elements of a row, all of which enter the statistic, where some are left out: zeros, of rows
        whose mean is 0.
    columns
        The places of those that are there.
    """

    inputs: Inputs
    hidden: int | None = None
    columns: Index | None = None

    @cached_property
    def x(self) -> Floats:
        """[rows, elements]; what is not finite, or beside such in a statistic, is zero here."""
        return np.where(self.ordinary, self.inputs.x.astype(np.float64), 0.0)

    @cached_property
    def finite(self) -> Mask:
        """[rows, 1]: rows whose statistic no NaN and no infinity enters."""
        with np.errstate(invalid="ignore"):
            entering = self.inputs.statistic_elements.astype(np.float64)
            return np.asarray(np.isfinite(entering).all(-1, keepdims=True))

    @cached_property
    def ordinary(self) -> Mask:
        """[rows, 1] or [rows, elements]: elements of finite rows that are finite themselves."""
        if self.inputs.groups.entering is None:
            return self.finite
        with np.errstate(invalid="ignore"):
            return np.asarray(self.finite & np.isfinite(self.inputs.x.astype(np.float64)))

    def entering(self, values: Floats) -> Floats:
        """[rows, entering]: what enters the statistic, of [rows, elements]."""
        chosen = self.inputs.groups.entering
        return values if chosen is None else values[:, chosen]

    @cached_property
    def statistic(self) -> Floats:
        """[rows, entering]: the part of x that enters the statistic."""
        return self.entering(self.x)

    @property
    def n(self) -> int:
        """Elements that enter a row's statistic."""
        return int(self.statistic.shape[-1]) if self.hidden is None else self.hidden

    @cached_property
    def mean(self) -> Floats:
        """[rows, 1]: the mean, 0 where the norm subtracts none."""
        if not self.inputs.norm.centred:
            return np.zeros((len(self.x), 1))
        return self._mean[0] + self._mean[1]

    @cached_property
    def deviations(self) -> Floats:
        """[rows, elements]: x less the mean; exact where the statistic's elements are all alike."""
        if not self.inputs.norm.centred:
            return self.x
        high, low = self._mean
        first = self.statistic[:, :1]
        constant = (self.statistic == first).all(-1, keepdims=True)
        return np.where(constant, self.x - first, (self.x - high) - low)

    @cached_property
    def _mean(self) -> tuple[Floats, Floats]:
        total, rest = double_double.total((self.statistic, np.zeros_like(self.statistic)))
        high = total / self.n
        product, error = double_double.two_product(high, np.full_like(high, self.n))
        return high, ((total - product) - error + rest) / self.n

    @cached_property
    def size(self) -> Floats:
        """[rows, 1]: the mean of magnitudes."""
        return np.asarray(np.sum(np.abs(self.statistic), -1, keepdims=True) / self.n)

    @cached_property
    def largest(self) -> Floats:
        """[rows, 1]: the largest magnitude in the statistic."""
        return np.asarray(np.abs(self.statistic).max(-1, keepdims=True, initial=0.0))

    @cached_property
    def total(self) -> Floats:
        """[rows, 1]: the sum of squares, of the deviations in a LayerNorm."""
        return np.asarray(np.sum(np.square(self.entering(self.deviations)), -1, keepdims=True))

    @cached_property
    def square(self) -> Floats:
        """[rows, 1]: the mean of squares."""
        return self.total / self.n

    @cached_property
    def radicand(self) -> Floats:
        """[rows, 1]: ms + eps."""
        return self.square + self.inputs.eps

    @cached_property
    def root(self) -> Floats:
        """[rows, 1]: r = 1/√(ms + eps)."""
        with np.errstate(divide="ignore"):
            return 1 / np.sqrt(self.radicand)

    @cached_property
    def gain(self) -> Floats:
        """[rows or 1, elements or 1]: weight and offset, 1 without a weight."""
        weight = self.inputs.weight
        if weight is None:
            return np.ones((1, 1))
        return weight.astype(np.float64) + self.inputs.weight_offset

    @cached_property
    def bias(self) -> Floats | None:
        """[rows or 1, elements or 1], or None."""
        bias = self.inputs.bias
        return None if bias is None else bias.astype(np.float64)

    @cached_property
    def normalised(self) -> tuple[Floats, Floats]:
        """v = (x − m)·r and a bound on what float64 errs by in it, [rows, elements]."""
        with np.errstate(invalid="ignore"):
            value = self.deviations * self.root
            radius = ROUNDED * np.abs(value) + self._lost
        return value, radius

    @cached_property
    def output(self) -> tuple[Floats, Floats]:
        """t = v·g + b and a bound on what float64 errs by in it, [rows, elements]."""
        gain, bias = self.gain, self.bias
        with np.errstate(invalid="ignore"):
            value = self.normalised[0] * gain
            radius = ROUNDED * np.abs(value) + self._lost * np.abs(gain)
        if bias is not None:
            value, radius = value + bias, radius + ROUNDED * np.abs(bias)
        return value, radius

    @cached_property
    def _lost(self) -> Floats | float:
        """[rows, 1]: what of v the mean, a double-double, errs by."""
        if not self.inputs.norm.centred:
            return 0.0
        return np.asarray(MEAN_ROUNDED * self.size * self.root)

    # What no order of summation rounds ------------------------------------------------------------

    @cached_property
    def exact_mean(self) -> Mask:
        """[rows, 1]: rows whose sum and mean are exact in float32, in every order."""
        quantum = _quantum(self.statistic)
        small = self.size * self.n <= np.ldexp(INTEGERS, quantum)
        total = np.sum(self.statistic, -1, keepdims=True)
        mean = (total / self.n).astype(np.float32).astype(np.float64)
        # Both factors have 24 bits and 24 bits: the product is exact.
        return np.asarray(small & (mean * self.n == total))

    @cached_property
    def exact_squares(self) -> Mask:
        """[rows, 1]: rows whose sum of squares is exact in float32, in every order."""
        with np.errstate(under="ignore"):
            quantum = 2 * _quantum(self.entering(self.deviations))
            fits = (self.total <= np.ldexp(INTEGERS, quantum)) & (quantum >= SMALLEST)
        return np.asarray(fits & (self.exact_mean | (not self.inputs.norm.centred)))

    @cached_property
    def span(self) -> Floats:
        """[rows, 1]: elements of the statistic from the first that is not 0 on."""
        first = (self.statistic != 0).argmax(-1)
        if self.columns is not None:
            first = self.columns[first]
        return np.asarray(self.n - first, np.float64)[:, None]

    @cached_property
    def addends(self) -> Floats:
        """[rows, 1]: k, the squares that are summed and may be rounded."""
        return np.where(self.exact_squares, 0.0, self.nonzero)

    @cached_property
    def nonzero(self) -> Floats:
        """[rows, 1]: elements of the statistic whose deviation is not 0."""
        count = np.count_nonzero(self.entering(self.deviations), -1, keepdims=True)
        return np.asarray(count, np.float64)

    @cached_property
    def magnitudes(self) -> Floats:
        """[rows, 1]: how many different magnitudes other than 0 a row's deviations have."""
        ordered = np.sort(np.abs(self.entering(self.deviations)), -1)
        count = np.count_nonzero(np.diff(ordered, axis=-1, prepend=0.0), -1, keepdims=True)
        return np.asarray(count, np.float64)


def _quantum(values: Floats) -> NDArray[np.intc]:
    """[rows, 1]: the exponent of the last bit that any value of a row has; 0 for rows of zeros."""
    significand, exponent = np.frexp(values)
    integer = np.ldexp(significand, 53).astype(np.int64)
    last = np.frexp((integer & -integer).astype(np.float64))[1] - 1
    place = np.where(values == 0, np.iinfo(np.intc).max, exponent - 53 + last)
    least = place.min(-1, keepdims=True, initial=np.iinfo(np.intc).max)
    return np.where(least == np.iinfo(np.intc).max, 0, least).astype(np.intc)
