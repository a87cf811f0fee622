# SPDX-License-Identifier: Apache-2.0
"""Random numbers with the same bits on every machine.

The bits come from Philox, a counter-based generator whose stream NumPy guarantees. Everything built
on them uses only what IEEE 754 rounds correctly (+, −, ×, ÷, √, scaling by powers of two), element
by element: the logarithms, exponentials and cosines of a system's library differ from machine to
machine, and so do sums whose order is left open.

Sources: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011; Box and
Muller, "A note on the generation of random normal deviates", 1958; Bailey, "Polar generation of
random variates with the t-distribution", 1994.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from precision_lab.arithmetic import Floats


LN2_HIGH = float.fromhex("0x1.62e42fefa38p-1")
"""log 2 to 42 bits, so that its product with an exponent is exact."""
LN2_LOW = float.fromhex("0x1.ef35793c7673p-45")
"""What LN2_HIGH leaves out."""
INVERSE_LN2 = float.fromhex("0x1.71547652b82fep+0")
EXPONENT_LIMIT = 700.0
"""Arguments of `exponential` are held within ±700, where its value is a normal float64."""

# Taylor coefficients, each rounded once; the last term kept is below 2^-56 of the first.
ATANH = [1.0 / (2 * k + 1) for k in range(12)]
EXP = [1.0 / math.factorial(k) for k in range(15)]
COS = [(-1.0) ** k / math.factorial(2 * k) for k in range(10)]
SIN = [(-1.0) ** k / math.factorial(2 * k + 1) for k in range(10)]


@dataclass(frozen=True)
class Draws:
    """Random arrays that depend on a seed, a stream and nothing else.

    Row i of an array is the same however many rows are drawn.

    Parameters
    ----------
    seed
        From 0 to 2^64 − 1.
    """

    seed: int

    def bits(self, stream: int, *shape: int) -> NDArray[np.uint64]:
        """Independent 64-bit words, a different array for each stream."""
        generator = np.random.Philox(key=np.array([self.seed, stream], np.uint64))
        words: NDArray[np.uint64] = generator.random_raw(math.prod(shape))
        return words.reshape(shape)

    def uniform(self, stream: int, *shape: int) -> Floats:
        """Uniform on (0, 1): odd multiples of 2^-53, so that neither end is met."""
        return _fractions(self.bits(stream, *shape))

    def signs(self, stream: int, *shape: int) -> Floats:
        """−1 or 1, equally likely."""
        return 1.0 - 2.0 * (self.bits(stream, *shape) >> np.uint64(63)).astype(np.float64)

    def below(self, limit: int, stream: int, *shape: int) -> NDArray[np.int64]:
        """Whole numbers from 0 to `limit` − 1 (at most 2^32), equally likely to 2^-32."""
        high = self.bits(stream, *shape) >> np.uint64(32)
        return ((high * np.uint64(limit)) >> np.uint64(32)).astype(np.int64)

    def normal(self, stream: int, *shape: int) -> Floats:
        """Standard normal values, right in the tails: to ±8.5."""
        words = self.bits(stream, *shape, 2)
        radius = np.sqrt(-2.0 * logarithm(_fractions(words[..., 0])))
        return radius * cosine_of_turns(_fractions(words[..., 1]))

    def student(self, freedom: float, stream: int, *shape: int) -> Floats:
        """Values of Student's t-distribution with so many degrees of freedom, 0.5 or more."""
        words = self.bits(stream, *shape, 2)
        power = exponential(logarithm(_fractions(words[..., 0])) * (-2.0 / freedom))
        return np.sqrt(freedom * (power - 1.0)) * cosine_of_turns(_fractions(words[..., 1]))


def _fractions(words: NDArray[np.uint64]) -> Floats:
    """The first 52 bits of each word and a half: exact in float64."""
    return np.ldexp((words >> np.uint64(12)).astype(np.float64) + 0.5, -52)


def _polynomial(coefficients: list[float], x: Floats) -> Floats:
    """Horner's rule, each operation rounded on its own."""
    value = np.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = value * x + coefficient
    return value


def logarithm(x: Floats) -> Floats:
    """log x for x > 0, as 2 atanh((m − 1)/(m + 1)) + e log 2 with x = m 2^e."""
    significand, exponent = np.frexp(x)
    low = significand < math.sqrt(0.5)
    m = np.where(low, 2.0 * significand, significand)
    e = (exponent - low).astype(np.float64)
    s = (m - 1.0) / (m + 1.0)
    return e * LN2_HIGH + (2.0 * s * _polynomial(ATANH, s * s) + e * LN2_LOW)


def exponential(x: Floats) -> Floats:
    """exp x, as 2^k exp r with |r| at most log 2 / 2; x is held within ±700."""
    x = np.clip(x, -EXPONENT_LIMIT, EXPONENT_LIMIT)
    k = np.floor(x * INVERSE_LN2 + 0.5)
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    return np.ldexp(_polynomial(EXP, r), k.astype(np.int32))


def cosine_of_turns(x: Floats) -> Floats:
    """cos 2πx for x in [0, 1], from an eighth of a turn on either side of each quarter."""
    quarter = np.floor(4.0 * x + 0.5)
    angle = (x - 0.25 * quarter) * math.tau
    squared = angle * angle
    cosine = _polynomial(COS, squared)
    sine = angle * _polynomial(SIN, squared)
    which = quarter.astype(np.int64) % 4
    choices: Any = [cosine, -sine, -cosine, sine]
    return np.choose(which, choices)


def tree_sum(x: Floats) -> Floats:
    """Sums along the last axis, halves added to each other: an order that no library changes."""
    width = 1 << max(x.shape[-1] - 1, 0).bit_length()
    total = np.zeros((*x.shape[:-1], width))
    total[..., : x.shape[-1]] = x
    while width > 1:
        width //= 2
        total = total[..., :width] + total[..., width:]
    return total[..., 0]
