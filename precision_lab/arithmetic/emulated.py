# SPDX-License-Identifier: Apache-2.0
"""Arithmetic in a stated format: every operation rounded once from its exact result.

The exact result is brought to odd in float64 first, so that the one rounding that follows is right
in every mode, for operands of any format, wider than the target too (`odd` has the argument). Where
the hardware computes the same thing it does the work: float32 with float32 operands, and float64.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.arithmetic import odd
from precision_lab.exceptions import InputError, unknown
from precision_lab.numbers import MODES, OVERFLOW_POLICIES, Format, formats

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from precision_lab.arithmetic.orders.order import Order
    from precision_lab.arithmetic.protocol import Floats, Values

SINGLE = np.dtype(np.float32)
DOUBLE = np.dtype(np.float64)


@dataclass(frozen=True)
class Emulated:
    """The arithmetic of a number format.

    Arrays go in and arrays come out, float32 where the format is float32 and float64 otherwise,
    holding values of the format. NaN, infinities, signed zeros and subnormals follow IEEE 754;
    nothing warns.

    Parameters
    ----------
    format
        The format, or its name.
    mode, overflow
        A rounding mode and an overflow policy of `Format.round`. float64 rounds to nearest-even
        with IEEE overflow only, in its own range.
    generator
        For mode ``"stochastic"``: where the random bits come from, 16 an operation.

    Raises
    ------
    InputError
        For an unknown mode or policy, a mode that float64 lacks, a missing generator. From the
        operations of an unbounded format of precision p: for results in whose binade float64 has
        not p + 2 bits, or that are past float64's range.
    """

    format: Format
    mode: str = "nearest_even"
    overflow: str = "ieee"
    generator: np.random.Generator | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "format", formats.find(self.format))
        if self.mode not in MODES:
            raise unknown("rounding mode", self.mode, MODES)
        if self.overflow not in OVERFLOW_POLICIES:
            raise unknown("overflow policy", self.overflow, OVERFLOW_POLICIES)
        if self.double and self.format != formats["float64"]:
            raise InputError("float64 is emulated with its own range and subnormals only")
        if self.double and (self.mode, self.overflow) != ("nearest_even", "ieee"):
            raise InputError(
                f"float64 is emulated in mode 'nearest_even' with overflow 'ieee' only,"
                f" not in {self.mode!r} with {self.overflow!r}"
            )
        if (self.mode == "stochastic") != (self.generator is not None):
            raise InputError("mode 'stochastic' and a generator of random bits go together")

    @cached_property
    def double(self) -> bool:
        """Whether float64's own operations are the format's."""
        return self.format.precision == 53

    @cached_property
    def single(self) -> bool:
        """Whether float32's own operations are the format's, for float32 operands."""
        usual = (self.mode, self.overflow) == ("nearest_even", "ieee")
        return usual and self.format == formats["float32"]

    @cached_property
    def _has_singles(self) -> bool:
        """Whether they are, but for results that may be subnormal."""
        usual = (self.mode, self.overflow) == ("nearest_even", "ieee")
        return usual and self.format in (formats["float32"], formats["float32"].flushed)

    @cached_property
    def container(self) -> np.dtype[Any]:
        """The type of the arrays that come out."""
        within = self.format.precision == 24 and self.format.bounded
        return SINGLE if within else DOUBLE

    def holds(self, other: Format) -> bool:
        """Whether every value of the other format is one of this format's."""
        format = self.format
        return (
            format.precision >= other.precision
            and format.emax >= other.emax
            and format.smallest <= other.smallest
        )

    def widened(self, target: Format) -> Emulated:
        """This arithmetic in a format that holds all of this one's values.

        Raises
        ------
        InputError
            If it does not hold them.
        """
        widened = dataclasses.replace(self, format=target)
        if not widened.holds(self.format):
            raise InputError(
                f"{target.name} is no wider than {self.format.name}: float32 and float64 are"
            )
        return widened

    def in_format(self, target: Format) -> Emulated:
        """This arithmetic in another format."""
        return dataclasses.replace(self, format=target)

    def cast(self, values: ArrayLike) -> Values:
        """The values rounded to the format."""
        array = np.asarray(values)
        if self.single and array.dtype == SINGLE:
            return array
        if array.dtype != SINGLE:
            array = array.astype(DOUBLE, copy=False)
        return self._rounded(array)

    def operand(self, values: Values) -> Values:
        """Values as hardware takes them that flushes: a format without subnormals has none."""
        if self.format.subnormals:
            return values
        small = np.abs(values) < self.format.tiny
        return np.where(small, np.copysign(values.dtype.type(0), values), values)

    def add(self, a: Values, b: Values) -> Values:
        """a + b."""
        return self._once(np.add, self._sum, a, b)

    def subtract(self, a: Values, b: Values) -> Values:
        """a − b."""
        return self._once(np.add, self._sum, a, np.negative(b))

    def multiply(self, a: Values, b: Values) -> Values:
        """a · b."""
        return self._once(np.multiply, odd.product_to_odd, a, b)

    def square(self, a: Values) -> Values:
        """a · a."""
        return self.multiply(a, a)

    def divide(self, a: Values, b: Values) -> Values:
        """a / b."""
        return self._once(np.divide, odd.quotient_to_odd, a, b)

    def sqrt(self, a: Values) -> Values:
        """√a."""
        return self._once(np.sqrt, odd.root_to_odd, a)

    def rsqrt(self, a: Values) -> Values:
        """1/√a as one operation, rounded once: not the reciprocal of a rounded root."""
        exact = odd.nearest_reciprocal_root if self.double else odd.reciprocal_root
        return self._once(None, exact, a)

    def fma(self, a: Values, b: Values, c: Values) -> Values:
        """a · b + c, fused: rounded once."""
        return self._once(None, odd.nearest_fma if self.double else self._fma, a, b, c)

    def sum(self, values: ArrayLike, order: Order) -> Values:
        """Σ over the last axis, in this order; the addends are rounded to the format first."""
        return order.sum(self.cast(values), self)

    def mean(self, values: ArrayLike, order: Order) -> Values:
        """The sum over the last axis, divided by the exact count."""
        return self.divided(self.sum(values, order), np.shape(values)[-1])

    def divided(self, a: Values, count: int) -> Values:
        """a / count, rounded once: the count itself is not rounded to the format."""
        is_single = self.single and abs(count) <= 2**24
        return self.divide(a, np.asarray(count, SINGLE if is_single else DOUBLE))

    def _once(
        self,
        hardware: Callable[..., Values] | None,
        exact: Callable[..., Floats],
        *operands: Values,
    ) -> Values:
        """One operation: the hardware's where it is this arithmetic's, else exact and rounded."""
        with np.errstate(all="ignore"):
            if hardware and self._has_singles and all(each.dtype == SINGLE for each in operands):
                result = np.asarray(hardware(*operands))
                if self.single or not (np.abs(result) <= self.format.tiny).any():
                    return result
            doubles = [np.asarray(each, DOUBLE) for each in operands]
            if hardware and self.double:
                return np.asarray(hardware(*doubles))
            to_odd = exact(*doubles)
            rounded = self._rounded(to_odd)
            if not self.format.bounded:
                self._refuse_unreached(to_odd, rounded)
            return rounded

    def _refuse_unreached(self, to_odd: Floats, rounded: Values) -> None:
        """An unbounded format goes as far as float64 holds its values and tells them apart."""
        lowest = self.format.precision + 1 - 1074
        below = (to_odd != 0) & (np.abs(to_odd) < 2.0**lowest)
        if (below | (np.isinf(rounded) & np.isfinite(to_odd))).any():
            raise InputError(
                f"{self.format.name} without its range is emulated from 2^{lowest} to 2^1024:"
                " a result lies outside"
            )

    def _sum(self, a: Floats, b: Floats) -> Floats:
        return self._signed(odd.sum_to_odd(a, b), a, b)

    def _fma(self, a: Floats, b: Floats, c: Floats) -> Floats:
        return self._signed(odd.fma_to_odd(a, b, c), a * b, c)

    def _signed(self, total: Floats, a: Floats, b: Floats) -> Floats:
        """The sum with the sign of an exact zero: minus in mode down (IEEE 754-2019, 6.3)."""
        if self.mode != "down":
            return total
        return np.where((total == 0) & (np.signbit(a) | np.signbit(b)), -0.0, total)

    def _rounded(self, exact: Values) -> Values:
        if self.single:
            with np.errstate(all="ignore"):
                return np.asarray(exact, SINGLE)
        bits = None
        if self.generator is not None:
            bits = self.generator.integers(0, 2**16, np.shape(exact), np.uint16)
        rounded = self.format.round(exact, mode=self.mode, overflow=self.overflow, random_bits=bits)
        return rounded if self.container == DOUBLE else rounded.astype(SINGLE)
