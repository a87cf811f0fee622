# SPDX-License-Identifier: Apache-2.0
"""The rows of probes: what is asked of one, and the rules that make them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.inputs import Draws, make_inputs

if TYPE_CHECKING:
    from collections.abc import Callable

    from precision_lab.arithmetic import Floats
    from precision_lab.numbers import Format


# Streams that no family uses.
NUMBERS, SIGNS, PLACES = range(32, 35)

BLOCK = 128
"""Blocks of this many elements, whose edges and contents are probed one by one."""

MANY, FEWER = 1100, 2**18
"""A probe of more rows than so many has fewer where they are longer: so many elements."""

LARGEST_CALL = 2**22
"""Elements of a call at most; ordinary rows may have more."""

EDGES = 16
"""Block edges at most, evenly spread, at which sparse rows are tried."""


@dataclass(frozen=True)
class ProbeRequest:
    """The shape and the numbers that a probe makes rows for.

    Parameters
    ----------
    rows, hidden
        The shape. Probes with a shape of their own take `rows` for what is left to them.
    format
        The input's.
    eps
        The norm's.
    seed
        Of the draws.
    centred
        Whether the norm subtracts the mean.
    """

    rows: int
    hidden: int
    format: Format
    eps: float
    seed: int
    centred: bool

    def family(self, name: str, **parameters: float) -> Floats:
        """Rows of an input family."""
        return make_inputs(
            name, rows=self.rows, hidden=self.hidden, seed=self.seed,
            format=self.format, eps=self.eps, **parameters,
        )  # fmt: skip

    @property
    def draws(self) -> Draws:
        """The source of randomness."""
        return Draws(self.seed)

    def numbers(self, most: int, rows: int, hidden: int) -> Floats:
        """Integers from −most to most, none of them 0."""
        size = 1.0 + self.draws.below(most, NUMBERS, rows, hidden)
        return size * self.draws.signs(SIGNS, rows, hidden)


def specials(request: ProbeRequest) -> Floats:
    """Ordinary rows among which single ones hold a NaN, or an infinity where there is one."""
    x = request.family("normal")
    values = [math.nan, math.inf, -math.inf] if request.format.infinities else [math.nan]
    for turn, row in enumerate(range(request.seed % 3, len(x), 13)):
        x[row, (turn * 7919) % request.hidden] = values[turn % len(values)]
    return x


def one_special(request: ProbeRequest) -> Floats:
    """Ordinary rows, of which one holds a NaN and another an infinity, where there is one."""
    x = request.family("normal")
    if not len(x):
        return x
    column = (request.seed * 7919) % request.hidden
    x[request.seed % len(x), column] = math.nan
    if request.format.infinities and len(x) > 1:
        x[(request.seed + 2) % len(x), column] = math.inf
    return x


def sparse(request: ProbeRequest) -> Floats:
    """One or two values a row: at both ends, and on both sides of block edges."""
    n = request.hidden
    edges = range(BLOCK, n, BLOCK)
    step = max(1, math.ceil(len(edges) / EDGES))
    pairs = [(0, 0), (n - 1, n - 1), (0, n - 1), *((e - 1, e) for e in edges[::step])]
    x = np.zeros((len(pairs), n))
    values = 1.0 + request.draws.uniform(NUMBERS, len(pairs))
    for row, (first, second) in enumerate(pairs):
        x[row, first] = values[row]
        x[row, second] = -values[row]
    return x


def blocks(request: ProbeRequest) -> Floats:
    """Zeros but for one block of 128, the blocks together covering every place.

    In a LayerNorm each block sums to 0. Of very long rows the blocks are longer.
    """
    n = request.hidden
    block = max(BLOCK, -(-n * n // LARGEST_CALL))
    count = -(-n // block)
    x = np.zeros((count, n))
    values = request.numbers(8, count, block)
    values += 8.0 * np.sign(values)
    if request.centred:
        values[:, 1::2] = -values[:, ::2]
    for row in range(count):
        # The last one reaches back, so that it is no shorter.
        start = max(0, min(row * block, n - block))
        part = slice(start, min(n, start + block))
        x[row, part] = values[row, : part.stop - start]
    return x


def exact(request: ProbeRequest) -> Floats:
    """Integers that no order of summation rounds; in a LayerNorm they sum to 0."""
    n, p = request.hidden, request.format.precision
    most = int(min(2.0**p - 1, math.sqrt(2.6 * 2.0**24 / n), request.format.largest))
    x = request.numbers(most, max(request.rows, 8), n)
    if request.centred:
        half = n // 2
        x[:, half : 2 * half] = -x[:, :half]
        x[:, 2 * half :] = 0.0
    # Uniform integers square to a third of most² on average, and a little more by chance.
    exact: Floats = x[np.sum(x * x, -1) < 2.0**24]
    return exact


def tail(request: ProbeRequest) -> Floats:
    """Zeros but for the last 16 places, which sum to 0: a running mean stays 0 until there."""
    n = request.hidden
    size = min(16, n - n % 2)
    rows = min(request.rows, max(4, LARGEST_CALL // 4 // n))
    x = np.zeros((rows, n))
    values = request.numbers(15, rows, size // 2)
    x[:, n - size :: 2], x[:, n - size + 1 :: 2] = values, -values
    return x


def large(request: ProbeRequest) -> Floats:
    """As large as the format allows while float32 holds the sum of squares."""
    top = min(request.format.largest, 2.0**62 / request.hidden) / 8
    return top * request.family("uniform")


def mixed(request: ProbeRequest) -> Floats:
    """Zero, constant, ordinary and outlier rows side by side, of many magnitudes."""
    x = request.family("normal")
    x[0::4] = 0.0
    x[1::4] = request.family("constant")[1::4]
    x[2::4] *= 2.0**-6
    x[3::4] = request.family("one-outlier", magnitude=200.0)[3::4]
    return x


def steps(request: ProbeRequest) -> Floats:
    """A constant row but for a few elements that are one ulp more."""
    base = 2.0 ** (request.format.precision - 1)
    if request.format.largest <= 2 * base:
        base = request.format.largest / 4
    more = request.draws.below(5, PLACES, request.rows, request.hidden) == 0
    more[:, -1] = True
    return np.asarray(np.where(more, base + request.format.ulp(base), base))


def near_constant(request: ProbeRequest) -> Floats:
    """Constants of a full significand, but for one element that is one ulp more."""
    bits = 2.0 ** (request.format.precision - 1)
    scale = min(1.0, request.format.largest / (4 * bits))
    base = bits + 2.0 * request.draws.below(int(bits) // 2, PLACES, request.rows)[:, None] + 1.0
    x = np.repeat(base, request.hidden, axis=1)
    x[:, -1] += 1.0
    return np.asarray(x * scale)


def special(value: float) -> Callable[[ProbeRequest], Floats]:
    """Ordinary rows, the second and the last with one special value, the last one's at its end."""

    def make(request: ProbeRequest) -> Floats:
        x = request.family("normal")
        x[1:2, request.hidden // 2] = value
        x[-1:, -1] = value
        return x

    return make


def constants(request: ProbeRequest) -> Floats:
    """Constants of many sizes, with 8 bits or as many as the format has."""
    top = math.log2(request.format.largest)
    powers = np.linspace(-4, min(top - 1, 15.5), request.rows)
    return np.repeat(np.exp2(powers)[:, None], request.hidden, axis=1)
