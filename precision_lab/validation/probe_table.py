# SPDX-License-Identifier: Apache-2.0
"""Probes: what a kernel is asked to compute, one row each.

A probe is a rule that makes rows of x for a shape, and the gains that go with them. Values are
float64 here, before they are rounded to the input's format; the same probe gives the same bits on
every machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.inputs import Draws, make_inputs
from precision_lab.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from precision_lab.numbers import Format

    Array = NDArray[np.float64]

# Streams that no family uses.
NUMBERS, SIGNS, PLACES = range(32, 35)

SMALL, MIDDLE, WIDE = (2, 7, 64), (8, 33, 769), (127, 577, 2048)
EVERY = (1, 2, 3, 7, 8, 33, 64, 127, 577, 769, 1024, 2048, 5120)
"""Rows of these sizes by default."""

LONG = 16385
"""And once a long row, one past a power of two."""

BLOCK = 128
"""Blocks of this many elements, whose edges and contents are probed one by one."""

MOST = 2**22
"""Elements of a call at most; ordinary rows may have more."""

EDGES = 16
"""Block edges at most, evenly spread, at which sparse rows are tried."""


@dataclass(frozen=True)
class Ask:
    """What a probe is asked for.

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

    def family(self, name: str, **parameters: float) -> Array:
        """Rows of an input family."""
        return make_inputs(
            name, rows=self.rows, hidden=self.hidden, seed=self.seed,
            format=self.format, eps=self.eps, **parameters,
        )  # fmt: skip

    @property
    def draws(self) -> Draws:
        """The source of randomness."""
        return Draws(self.seed)

    def numbers(self, most: int, rows: int, hidden: int) -> Array:
        """Integers from −most to most, none of them 0."""
        size = 1.0 + self.draws.below(most, NUMBERS, rows, hidden)
        return size * self.draws.signs(SIGNS, rows, hidden)


@dataclass(frozen=True)
class Probe:
    """One probe.

    Parameters
    ----------
    name
        The name that finds it.
    exposes
        Which faults it is there for.
    make
        The rule: [rows, hidden] float64, NaN and infinities where they are meant.
    hidden
        The sizes that it is tried at by default.
    rows
        How many rows, where the rule leaves it open.
    gains
        Rows of `inputs.gains`, used in turn from size to size.
    each
        Whether every gain is tried at every size.
    centred
        For norms that subtract a mean only.
    """

    name: str
    exposes: str
    make: Callable[[Ask], Array]
    hidden: tuple[int, ...] = MIDDLE
    rows: int = 4
    gains: tuple[str, ...] = ("random", "wide")
    each: bool = False
    centred: bool = False


def _sparse(ask: Ask) -> Array:
    """One or two values a row: at both ends, and on both sides of block edges."""
    n = ask.hidden
    edges = range(BLOCK, n, BLOCK)
    step = max(1, math.ceil(len(edges) / EDGES))
    pairs = [(0, 0), (n - 1, n - 1), (0, n - 1), *((e - 1, e) for e in edges[::step])]
    x = np.zeros((len(pairs), n))
    values = 1.0 + ask.draws.uniform(NUMBERS, len(pairs))
    for row, (first, second) in enumerate(pairs):
        x[row, first] = values[row]
        x[row, second] = -values[row]
    return x


def _blocks(ask: Ask) -> Array:
    """Zeros but for one block of 128, the blocks together covering every place.

    In a LayerNorm each block sums to 0. Of very long rows the blocks are longer.
    """
    n = ask.hidden
    block = max(BLOCK, -(-n * n // MOST))
    count = -(-n // block)
    x = np.zeros((count, n))
    values = ask.numbers(8, count, block)
    values += 8.0 * np.sign(values)
    if ask.centred:
        values[:, 1::2] = -values[:, ::2]
    for row in range(count):
        # The last one reaches back, so that it is no shorter.
        start = max(0, min(row * block, n - block))
        part = slice(start, min(n, start + block))
        x[row, part] = values[row, : part.stop - start]
    return x


def _exact(ask: Ask) -> Array:
    """Integers that no order of summation rounds; in a LayerNorm they sum to 0."""
    n, p = ask.hidden, ask.format.precision
    most = int(min(2.0**p - 1, math.sqrt(2.6 * 2.0**24 / n), ask.format.largest))
    x = ask.numbers(most, max(ask.rows, 8), n)
    if ask.centred:
        half = n // 2
        x[:, half : 2 * half] = -x[:, :half]
        x[:, 2 * half :] = 0.0
    # Uniform integers square to a third of most² on average, and a little more by chance.
    kept: Array = x[np.sum(x * x, -1) < 2.0**24]
    return kept


def _tail(ask: Ask) -> Array:
    """Zeros but for the last 16 places, which sum to 0: a running mean stays 0 until there."""
    n = ask.hidden
    size = min(16, n - n % 2)
    rows = min(ask.rows, max(4, MOST // 4 // n))
    x = np.zeros((rows, n))
    values = ask.numbers(15, rows, size // 2)
    x[:, n - size :: 2], x[:, n - size + 1 :: 2] = values, -values
    return x


def _large(ask: Ask) -> Array:
    """As large as the format allows while float32 holds the sum of squares."""
    top = min(ask.format.largest, 2.0**62 / ask.hidden) / 8
    return top * ask.family("uniform")


def _mixed(ask: Ask) -> Array:
    """Zero, constant, ordinary and outlier rows side by side, of many magnitudes."""
    x = ask.family("normal")
    x[0::4] = 0.0
    x[1::4] = ask.family("constant")[1::4]
    x[2::4] *= 2.0**-6
    x[3::4] = ask.family("one-outlier", magnitude=200.0)[3::4]
    return x


def _steps(ask: Ask) -> Array:
    """A constant row but for a few elements that are one ulp more."""
    base = 2.0 ** (ask.format.precision - 1)
    if ask.format.largest <= 2 * base:
        base = ask.format.largest / 4
    more = ask.draws.below(5, PLACES, ask.rows, ask.hidden) == 0
    more[:, -1] = True
    return np.asarray(np.where(more, base + ask.format.ulp(base), base))


def _special(value: float) -> Callable[[Ask], Array]:
    """Ordinary rows, the second and the last with one special value, the last one's at its end."""

    def make(ask: Ask) -> Array:
        x = ask.family("normal")
        x[1:2, ask.hidden // 2] = value
        x[-1:, -1] = value
        return x

    return make


def _constants(ask: Ask) -> Array:
    """Constants of many sizes, with 8 bits or as many as the format has."""
    top = math.log2(ask.format.largest)
    powers = np.linspace(-4, min(top - 1, 15.5), ask.rows)
    return np.repeat(np.exp2(powers)[:, None], ask.hidden, axis=1)


probes: Table[Probe] = Table(
    "probe",
    [
        Probe(
            "normal", "any fault; the cast order, from one rounding of the gain or two",
            lambda a: a.family("normal"), hidden=(5, *EVERY),
        ),
        Probe(
            "exact", "every rounding but the last: no order of summation rounds these",
            _exact, hidden=(*EVERY, LONG), rows=12, gains=("random", "none"),
        ),
        Probe(
            "sparse", "elements left out at the ends and at the edges of blocks",
            _sparse, hidden=(*EVERY, LONG), gains=("powers-of-two", "random"),
        ),
        Probe(
            "block", "elements left out or counted twice, anywhere",
            _blocks, hidden=(127, 577, 769, 1024, 2048, 5120, LONG), gains=("random",),
        ),
        Probe(
            "tail", "elements left out at the end, where a running mean hides them",
            _tail, hidden=(*EVERY[1:], LONG), rows=48, gains=("random", "wide"), centred=True,
        ),
        Probe(
            "gain", "gain ignored, multiplied too early or in a narrow format",
            lambda a: a.family("normal"), hidden=(3, 64, 769), each=True,
            gains=(
                "none", "ones", "random", "wide", "negative", "tiny", "powers-of-two",
                "many-sizes", "zero",
            ),
        ),
        *(
            Probe(
                f"near-eps-{ratio:g}", "eps missing, misplaced, rounded or of another size",
                lambda a, ratio=ratio: a.family("near-zero", ratio=ratio),  # type: ignore[misc]
                hidden=(3, 64, 769), gains=("random", "none"),
            )
            for ratio in (0.01, 0.1, 1.0, 10.0)
        ),
        Probe("large", "squares or sums that overflow in a narrow format", _large),
        Probe(
            "near-largest", "squares, sums or outputs that overflow",
            lambda a: a.family("near-largest"), gains=("ones", "random"),
        ),
        Probe(
            "subnormal", "inputs flushed to zero", lambda a: a.family("subnormal"),
            gains=("ones", "wide"),
        ),
        Probe(
            "outlier", "a statistic that one large value spoils",
            lambda a: a.family("one-outlier", magnitude=min(1000.0, a.format.largest / 2)),
        ),
        Probe("constant", "a variance that cancels, or is negative", _constants, rows=8),
        Probe("zero", "a division by zero, an eps that is missing", lambda a: a.family("zero")),
        Probe("mixed", "rows that touch each other", _mixed, rows=12),
        *(
            Probe(
                f"offset-{offset:g}", "a mean subtracted or not, a variance that cancels",
                lambda a, offset=offset: a.family(  # type: ignore[misc]
                    "mean-offset", offset=min(offset, a.format.largest / 4)
                ),
                hidden=(3, 64, 769),
            )
            for offset in (3.0, 30.0, 1000.0)
        ),
        Probe("steps", "a one-pass variance: the mean is far larger than the spread", _steps,
              hidden=(3, 8, 64, 769)),
        Probe("nan", "a NaN that is lost, or spreads to other rows", _special(math.nan)),
        Probe("infinity", "an infinity that spreads to other rows", _special(math.inf)),
        Probe("minus-infinity", "an infinity that spreads to other rows", _special(-math.inf),
              hidden=(7,)),
        *(
            Probe(
                f"rows-{rows}", "another path for few or many rows, or for none",
                lambda a: a.family("normal"), hidden=(64,), rows=rows,
            )
            for rows in (0, 1, 3, 40, 257)
        ),
        Probe(
            "overflow", "outputs past the format's largest value, held there or at another's",
            lambda a: a.family("normal"), hidden=(3, 64, 769), gains=("huge",),
        ),
    ],
)  # fmt: skip
