# SPDX-License-Identifier: Apache-2.0
"""Number formats, one row each, and rounding to them.

A row states independent facts; the largest value, the ulp, the ordinals and the codes follow from
them. Rounding is exact: one rounding from float32 or float64, in every mode, under either overflow
policy.

Sources: IEEE 754-2019 (binary16, binary32, binary64, the rounding attributes); the OCP 8-bit
Floating Point Specification 1.0 (E4M3 and E5M2) and the OCP Microscaling Formats Specification 1.0
(E8M0, E2M3, E3M2, E2M1); the documentation of ml_dtypes for the others.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

import ml_dtypes
import numpy as np

from precision_lab.exceptions import InputError, unknown
from precision_lab.numbers import rounding

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

Mode = Literal["nearest_even", "nearest_away", "toward_zero", "up", "down", "to_odd", "stochastic"]
Overflow = Literal["ieee", "saturate"]
MODES: tuple[str, ...] = get_args(Mode)
OVERFLOW_POLICIES: tuple[str, ...] = get_args(Overflow)

Float64 = np.dtype(np.float64)
WIDEST_INTEGER = 2**53


@dataclass(frozen=True, kw_only=True)
class Format:
    """A number format: the values that it has, and what happens past the largest.

    Parameters
    ----------
    name
        The name that ml_dtypes and NumPy give it.
    aliases
        Shorter names.
    bits
        Width of a stored value.
    precision
        p, the bits of the significand, the hidden one counted.
    emin, emax
        Exponents e of the smallest normal and the largest value: 2^e <= abs(value) < 2^(e+1).
    missing_at_top
        Significands at the end of the last binade that stand for no number (1 in E4M3FN: its NaN).
    infinities, nan, signed, zero, negative_zero
        Whether the format has them.
    dtype_name
        The array type that holds it, where it has not the format's own name.
    subnormals
        False flushes to zero what is below the smallest normal after rounding to p bits.
    bounded
        False ignores the range: precision p at every exponent that float64 reaches.
    """

    name: str
    aliases: tuple[str, ...] = ()
    bits: int
    precision: int
    emin: int
    emax: int
    missing_at_top: int = 0
    infinities: bool = True
    nan: bool = True
    signed: bool = True
    zero: bool = True
    negative_zero: bool = True
    dtype_name: str = ""
    subnormals: bool = True
    bounded: bool = True

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy type that holds the format's values."""
        name = self.dtype_name or self.name
        scalar: type[Any] = getattr(ml_dtypes, name, None) or getattr(np, name)
        return np.dtype(scalar)

    @property
    def largest(self) -> float:
        """The largest finite value."""
        top = 2**self.precision - 1 - self.missing_at_top
        return float(np.ldexp(float(top), self.emax - self.precision + 1))

    @property
    def tiny(self) -> float:
        """The smallest normal value, 2^emin."""
        return float(np.ldexp(1.0, self.emin))

    @property
    def smallest(self) -> float:
        """The smallest value above zero: subnormal where the format has subnormals."""
        return float(np.ldexp(1.0, self.quantum_exponent)) if self.subnormals else self.tiny

    @property
    def quantum_exponent(self) -> int:
        """log2 of the spacing around zero."""
        return self.emin - self.precision + 1

    @property
    def unit_roundoff(self) -> float:
        """u = 2^-p, the largest relative error of rounding to nearest in the normal range."""
        return 2.0**-self.precision

    @property
    def epsilon(self) -> float:
        """2^(1-p), the spacing just above 1."""
        return 2.0 ** (1 - self.precision)

    @property
    def overflow_edge(self) -> float:
        """The largest value and half an ulp more: there rounding to nearest leaves the range."""
        return self.largest + float(np.ldexp(1.0, self.emax - self.precision))

    @property
    def flushed(self) -> Format:
        """This format without subnormals."""
        return dataclasses.replace(self, subnormals=False)

    @property
    def unbounded(self) -> Format:
        """This format's precision without its range."""
        return dataclasses.replace(self, bounded=False)

    def round(
        self,
        values: ArrayLike,
        *,
        mode: str = "nearest_even",
        overflow: str = "ieee",
        random_bits: NDArray[np.unsignedinteger[Any]] | None = None,
    ) -> NDArray[np.float64]:
        """Round to this format, once.

        Parameters
        ----------
        values
            Any shape; float32, float64, or an array of a narrower format's type.
        mode
            One of `MODES`. ``to_odd`` keeps what is exact and takes the odd neighbour of the rest
            (the last binade's end counts as even: it never leaves the range). ``stochastic`` adds
            `random_bits` below the last place and truncates.
        overflow
            ``"ieee"``: the infinity of the format, or its NaN where it has none. ``"saturate"``:
            the largest value, for infinities too.
        random_bits
            For ``stochastic``: unsigned integers of 8, 16 or 32 bits that broadcast with `values`,
            so that one value may be rounded many times.

        Returns
        -------
        ndarray of float64
            Values of the format; NaN where it has none for a value (an overflow without an
            infinity, a negative or a zero in an unsigned or zeroless format).

        Raises
        ------
        InputError
            For an unknown mode or policy, values of another kind, missing random bits.

        Notes
        -----
        At precision 1 no neighbour is even; a tie then goes to the larger magnitude
        (IEEE 754-2019, 4.3.1).

        Examples
        --------
        >>> from precision_lab import formats
        >>> formats["bfloat16"].round(1 + 2**-8 + 2**-40).item()
        1.0078125
        """
        if mode not in MODES:
            raise unknown("rounding mode", mode, MODES)
        if overflow not in OVERFLOW_POLICIES:
            raise unknown("overflow policy", overflow, OVERFLOW_POLICIES)
        array = _floats(values)
        fraction = None
        if mode == "stochastic":
            array, fraction = _fractions(random_bits, array)
        elif random_bits is not None:
            raise InputError(f"random bits belong to mode 'stochastic', not to {mode!r}")
        return rounding.round_to(self, array, mode, overflow, fraction)

    def cast(
        self,
        values: ArrayLike,
        *,
        mode: str = "nearest_even",
        overflow: str = "ieee",
        random_bits: NDArray[np.unsignedinteger[Any]] | None = None,
    ) -> NDArray[Any]:
        """Round to this format, as an array of its type.

        Parameters and errors are those of `round`; and an `InputError` where a value came out NaN
        in a format that has no code for it.
        """
        rounded = self.round(values, mode=mode, overflow=overflow, random_bits=random_bits)
        if not self.nan and (lost := np.isnan(rounded)).any():
            value = np.broadcast_to(np.asarray(values, np.float64), rounded.shape)[lost].flat[0]
            raise InputError(
                f"{self.name} has neither NaN nor infinity to hold {value:g}:"
                " overflow='saturate' gives its largest value"
            )
        return self.encode(rounded)

    def encode(self, values: NDArray[np.float64]) -> NDArray[Any]:
        """Values of this format as an array of its type, nothing rounded.

        Raises
        ------
        InputError
            For a format without bounds, which no type holds.
        """
        if not self.bounded:
            raise InputError(f"no array type holds {self.name} without its bounds: use round")
        # Exact for the format's own values, which is why ml_dtypes may go through float32.
        with np.errstate(all="ignore"):
            narrow = values if self.bits == Float64.itemsize * 8 else values.astype(np.float32)
            return narrow.astype(self.dtype)

    def ulp(self, values: ArrayLike) -> NDArray[np.float64]:
        """The spacing at each value: 2^(max(e, emin) - p + 1), NaN at infinity and NaN."""
        magnitude = np.abs(np.asarray(values, np.float64))
        with np.errstate(invalid="ignore"):
            exponent = np.frexp(magnitude)[1] - 1
            if self.bounded:
                exponent = np.where(magnitude < self.tiny, self.emin, exponent)
            spacing = np.ldexp(1.0, exponent - self.precision + 1)
        return np.where(np.isfinite(magnitude), spacing, np.nan)

    def ordinal(self, values: ArrayLike) -> NDArray[np.int64]:
        """The place of each value among the format's values: 0 at zero, and -v at minus that of v.

        Parameters
        ----------
        values
            Finite values of the format.
        """
        return np.asarray(self._place(np.asarray(values, np.float64), np.float64(0.0))[0])

    def from_ordinal(self, ordinals: ArrayLike) -> NDArray[np.float64]:
        """The values at these places: the inverse of `ordinal`."""
        place = np.asarray(ordinals, np.int64)
        magnitude = np.abs(place)
        binade = np.maximum((magnitude >> (self.precision - 1)) - 1, 0)
        significand = magnitude - (binade << (self.precision - 1))
        exponent = (binade + self.quantum_exponent).astype(np.intc)
        value = np.ldexp(significand.astype(np.float64), exponent)
        return np.asarray(np.copysign(value, place), np.float64)

    def values(self) -> NDArray[np.float64]:
        """All finite values in order, with a single zero (formats of at most 16 bits)."""
        if self.bits > 16:
            raise InputError(
                f"{self.name} has too many values to list: formats of 16 bits or fewer do"
            )
        top = int(self.ordinal(self.largest))
        first = -top if self.signed else (0 if self.zero else 1)
        values = self.from_ordinal(np.arange(first, top + 1))
        if self.subnormals:
            return values
        return np.asarray(values[(np.abs(values) >= self.tiny) | (values == 0)])

    def decode(self, codes: ArrayLike) -> NDArray[np.float64]:
        """The values of stored codes (unsigned integers), from the facts of the row alone."""
        code = np.asarray(codes, np.uint64).astype(np.int64)
        if self.bits == 64:
            return np.asarray(codes, np.uint64).view(np.float64)
        sign_bit = 1 << (self.bits - 1) if self.signed else 0
        negative = (code & sign_bit) != 0
        magnitude = code & ((sign_bit or 1 << self.bits) - 1)
        # A format held in a wider one leaves the last bits of the wider significand empty.
        unused = np.finfo(self.dtype).nmant + 1 - self.precision if self.dtype_name else 0
        place = (magnitude >> unused) + (0 if self.zero else 1)
        top = int(self.ordinal(self.largest))
        value = np.where(place > top, np.nan, self.from_ordinal(np.minimum(place, top)))
        if self.infinities:
            value = np.where(magnitude == (top + 1) << unused, np.inf, value)
        value = np.where(negative, -value, value)
        if not self.negative_zero and self.signed:
            value = np.where(code == sign_bit, np.nan, value)
        return value

    def distance(
        self,
        actual: ArrayLike,
        exact: ArrayLike,
        exact_low: ArrayLike = 0.0,
        *,
        low_exponent: ArrayLike = 0,
    ) -> NDArray[np.float64]:
        """How far `actual` lies from `exact`, signed, in ulp of this format.

        The distance is that of ordinals, extended linearly between neighbours, so that it is
        continuous, symmetric and right across binades.

        Parameters
        ----------
        actual
            Finite values of the format.
        exact
            Real numbers, as float64; they may lie past the range, where the ulp goes on doubling.
        exact_low, low_exponent
            What `exact` leaves out: exact_low 2^low_exponent, to be added to it. The power lets it
            lie below the smallest float64.
        """
        place, _ = self._place(np.asarray(actual, np.float64), np.float64(0.0))
        floor, fraction = self._place(
            np.asarray(exact, np.float64), np.asarray(exact_low), np.asarray(low_exponent)
        )
        # Across zero the ordinals of float64 are up to 2^64 apart: subtract those as float64.
        across = (place < 0) != (floor < 0)
        near = place - np.where(across, 0, floor)
        return np.asarray(near.astype(np.float64) - np.where(across, floor, 0) - fraction)

    def _place(
        self,
        values: NDArray[np.float64],
        low: NDArray[np.float64] | np.float64,
        low_exponent: NDArray[Any] | int = 0,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Ordinal of the grid point toward zero, and the signed rest in ulp."""
        significand, exponent = np.frexp(values)
        exponent = np.where(values == 0, self.emin, np.maximum(exponent - 1, self.emin))
        scale = -(exponent - self.precision + 1)
        steps = np.ldexp(values, scale)
        integers = np.trunc(steps)
        binade = (exponent - self.emin).astype(np.int64) << (self.precision - 1)
        ordinal = integers.astype(np.int64) + np.where(values < 0, -binade, binade)
        # What is left out below a power of two lies in the binade of half the ulp.
        under = (np.abs(significand) == 0.5) & (exponent > self.emin) & (low * significand < 0)
        return ordinal, (steps - integers) + np.ldexp(low, scale + low_exponent + under)


def _floats(values: ArrayLike) -> NDArray[np.floating[Any]]:
    """The values as float32 or float64, nothing rounded."""
    array = np.asarray(values)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype in (np.float32, np.float64):
        return array
    if array.dtype.kind in "iub" and array.dtype.itemsize < 8:
        return array.astype(np.float64)
    if array.dtype.kind in "iu":
        if ((array > WIDEST_INTEGER) | (array < -WIDEST_INTEGER)).any():
            raise InputError(
                f"integers past 2^53 would be rounded twice: give float64, not {array.dtype}"
            )
        return array.astype(np.float64)
    short = array.dtype.name.startswith(("float", "bfloat"))
    if short and np.can_cast(array.dtype, np.float32):
        return array.astype(np.float32)
    raise InputError(f"values of type {array.dtype} cannot be rounded: give float32 or float64")


def _fractions(
    random_bits: NDArray[np.unsignedinteger[Any]] | None, values: NDArray[np.floating[Any]]
) -> tuple[NDArray[np.floating[Any]], NDArray[np.float64]]:
    """Values and random bits of one shape, the bits as fractions of an ulp in [0, 1), exact."""
    if random_bits is None:
        raise InputError(
            "mode 'stochastic' needs random_bits: unsigned integers of 8, 16 or 32 bits"
        )
    bits = np.asarray(random_bits)
    if bits.dtype.newbyteorder("=") not in (np.uint8, np.uint16, np.uint32):
        raise InputError(f"random_bits of type {bits.dtype}: give uint8, uint16 or uint32")
    fraction = np.ldexp(bits.astype(np.float64), -8 * bits.dtype.itemsize)
    try:
        array, fraction = np.broadcast_arrays(values, fraction)
    except ValueError:
        raise InputError(
            f"random_bits of shape {bits.shape} do not fit values of shape {values.shape}"
        ) from None
    return array, fraction
