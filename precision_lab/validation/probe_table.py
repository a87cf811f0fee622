# SPDX-License-Identifier: Apache-2.0
"""Probes: inputs that show faults, one row each.

A probe is a rule that makes rows of x for a shape, and the gains that go with them. Values are
float64 here, before they are rounded to the input's format; the same probe gives the same bits on
every machine.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.inputs import Draws, make_inputs
from precision_lab.table import Table
from precision_lab.validation.hidden_sizes import EVERY, LONG

if TYPE_CHECKING:
    from collections.abc import Callable

    from precision_lab.arithmetic import Floats
    from precision_lab.numbers import Format


# Streams that no family uses.
NUMBERS, SIGNS, PLACES = range(32, 35)

BLOCK = 128
"""Blocks of this many elements, whose edges and contents are probed one by one."""

COVERED = 2**17
"""Elements of a call with rows of every kind at most, or one row."""

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
    everywhere
        Whether it is tried at `every_size` too, with every eps at the widths of models.
    briefly
        Whether it is tried there with one eps at every size.
    mixes
        Whether its rows are among those of every kind.
    centred
        For norms that subtract a mean only.
    eps
        The values that it is tried with where none are asked for; () for the usual ones.
    """

    name: str
    exposes: str
    make: Callable[[ProbeRequest], Floats]
    hidden: tuple[int, ...] = (8, 33, 769)
    rows: int = 4
    gains: tuple[str, ...] = ("random", "wide")
    each: bool = False
    everywhere: bool = False
    briefly: bool = False
    mixes: bool = True
    centred: bool = False
    eps: tuple[float, ...] = ()


def _kinds(request: ProbeRequest) -> Floats:
    """Rows of every kind, one after another, and again up to as many as are asked for.

    Of long rows there are fewer: those of some kinds, other ones for another seed.
    """
    kinds = [
        probe for probe in probes.values()
        if probe.mixes and (request.centred or not probe.centred)
    ]  # fmt: skip
    first = request.seed % len(kinds)
    fitting = max(1, min(len(kinds), COVERED // request.hidden))
    kinds = (kinds[first:] + kinds[:first])[:fitting]
    times = max(1, -(-request.rows // len(kinds)))
    # Of each kind the same number of rows, taken from all that it makes.
    made = [probe.make(dataclasses.replace(request, rows=times)) for probe in kinds]
    few = [rows[(request.seed + np.arange(times)) % len(rows)] for rows in made if len(rows)]
    return np.stack(few, axis=1).reshape(-1, request.hidden)


def _specials(request: ProbeRequest) -> Floats:
    """Ordinary rows among which single ones hold a NaN, or an infinity where there is one."""
    x = request.family("normal")
    values = [math.nan, math.inf, -math.inf] if request.format.infinities else [math.nan]
    for turn, row in enumerate(range(request.seed % 3, len(x), 13)):
        x[row, (turn * 7919) % request.hidden] = values[turn % len(values)]
    return x


def _one_special(request: ProbeRequest) -> Floats:
    """Ordinary rows, of which one holds a NaN and another an infinity, where there is one."""
    x = request.family("normal")
    column = (request.seed * 7919) % request.hidden
    x[request.seed % len(x), column] = math.nan
    if request.format.infinities and len(x) > 1:
        x[(request.seed + 2) % len(x), column] = math.inf
    return x


def _sparse(request: ProbeRequest) -> Floats:
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


def _blocks(request: ProbeRequest) -> Floats:
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


def _exact(request: ProbeRequest) -> Floats:
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


def _tail(request: ProbeRequest) -> Floats:
    """Zeros but for the last 16 places, which sum to 0: a running mean stays 0 until there."""
    n = request.hidden
    size = min(16, n - n % 2)
    rows = min(request.rows, max(4, LARGEST_CALL // 4 // n))
    x = np.zeros((rows, n))
    values = request.numbers(15, rows, size // 2)
    x[:, n - size :: 2], x[:, n - size + 1 :: 2] = values, -values
    return x


def _large(request: ProbeRequest) -> Floats:
    """As large as the format allows while float32 holds the sum of squares."""
    top = min(request.format.largest, 2.0**62 / request.hidden) / 8
    return top * request.family("uniform")


def _mixed(request: ProbeRequest) -> Floats:
    """Zero, constant, ordinary and outlier rows side by side, of many magnitudes."""
    x = request.family("normal")
    x[0::4] = 0.0
    x[1::4] = request.family("constant")[1::4]
    x[2::4] *= 2.0**-6
    x[3::4] = request.family("one-outlier", magnitude=200.0)[3::4]
    return x


def _steps(request: ProbeRequest) -> Floats:
    """A constant row but for a few elements that are one ulp more."""
    base = 2.0 ** (request.format.precision - 1)
    if request.format.largest <= 2 * base:
        base = request.format.largest / 4
    more = request.draws.below(5, PLACES, request.rows, request.hidden) == 0
    more[:, -1] = True
    return np.asarray(np.where(more, base + request.format.ulp(base), base))


def _near_constant(request: ProbeRequest) -> Floats:
    """Constants of a full significand, but for one element that is one ulp more."""
    bits = 2.0 ** (request.format.precision - 1)
    scale = min(1.0, request.format.largest / (4 * bits))
    base = bits + 2.0 * request.draws.below(int(bits) // 2, PLACES, request.rows)[:, None] + 1.0
    x = np.repeat(base, request.hidden, axis=1)
    x[:, -1] += 1.0
    return np.asarray(x * scale)


def _special(value: float) -> Callable[[ProbeRequest], Floats]:
    """Ordinary rows, the second and the last with one special value, the last one's at its end."""

    def make(request: ProbeRequest) -> Floats:
        x = request.family("normal")
        x[1:2, request.hidden // 2] = value
        x[-1:, -1] = value
        return x

    return make


def _constants(request: ProbeRequest) -> Floats:
    """Constants of many sizes, with 8 bits or as many as the format has."""
    top = math.log2(request.format.largest)
    powers = np.linspace(-4, min(top - 1, 15.5), request.rows)
    return np.repeat(np.exp2(powers)[:, None], request.hidden, axis=1)


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
            _sparse, hidden=(*EVERY, LONG), gains=("powers-of-two", "random"), mixes=False,
        ),
        Probe(
            "block", "elements left out or counted twice, anywhere",
            _blocks, hidden=(127, 577, 769, 1024, 2048, 4096, 5120, LONG), gains=("random",),
            mixes=False,
        ),
        Probe(
            "tail", "elements left out at the end, where a running mean hides them",
            _tail, hidden=(*EVERY[1:], LONG), rows=48, gains=("random", "wide"), centred=True,
            mixes=False,
        ),
        Probe(
            "gain", "gain ignored, multiplied too early or in a narrow format",
            lambda a: a.family("normal"), hidden=(3, 64, 769, 4096), each=True, mixes=False,
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
        Probe(
            "large-eps", "an eps that is held below another, rounded, or not the one that is given",
            lambda a: a.family("near-zero", ratio=1.0), hidden=(3, 64, 769),
            gains=("random", "none"), mixes=False, eps=(1e-3, 0.1),
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
        Probe("mixed", "rows that touch each other", _mixed, rows=12, mixes=False),
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
        Probe("near-constant", "a one-pass variance: it is negative", _near_constant, rows=8,
              hidden=(8, 64, 769, 4096)),
        Probe("nan", "a NaN that is lost, or spreads to other rows", _special(math.nan),
              mixes=False),
        Probe("infinity", "an infinity that spreads to other rows", _special(math.inf),
              mixes=False),
        Probe("minus-infinity", "an infinity that spreads to other rows", _special(-math.inf),
              hidden=(7,), mixes=False),
        *(
            Probe(
                f"rows-{rows}", "another path for few or many rows, or for none",
                lambda a: a.family("normal"), hidden=(hidden,), rows=rows, mixes=False,
            )
            for rows, hidden in (
                (0, 64), (1, 64), (3, 64), (40, 64), (257, 64), (2049, 16), (4097, 8), (65537, 2),
            )
        ),
        Probe(
            "overflow", "outputs past the format's largest value, held there or at another's",
            lambda a: a.family("normal"), hidden=(3, 64, 769, 1024, 4096), gains=("huge",),
            mixes=False,
        ),
        Probe(
            "every-kind", "any fault of some sizes, eps or gains alone",
            _kinds, hidden=(), rows=1, gains=("mixed", "none", "random"), everywhere=True,
            mixes=False,
        ),
        Probe(
            "many-rows", "any fault of some rows alone, or of many",
            _kinds, hidden=(16, 65, 128, 300), rows=1100, gains=("mixed", "none"), mixes=False,
        ),
        Probe(
            "special-rows", "a NaN or an infinity that is lost, or spreads, at some sizes or rows",
            _specials, hidden=(64, 256, 512, 1024, 4096, 8192), rows=64, gains=("random", "none"),
            mixes=False,
        ),
        Probe(
            "special-widths", "a NaN or an infinity that is lost at some sizes alone",
            _one_special, hidden=(), rows=4, gains=("random", "none"), everywhere=True,
            briefly=True, mixes=False,
        ),
        Probe(
            "many-special-rows", "a NaN or an infinity that is lost, or spreads, among many rows",
            _specials, hidden=(16, 33, 64), rows=1100, gains=("random", "none"), mixes=False,
        ),
    ],
)  # fmt: skip
