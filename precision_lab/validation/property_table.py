# SPDX-License-Identifier: Apache-2.0
"""Properties of kernels, one row each: measured on demand, and faults only where required."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.inputs import make_gain, make_inputs
from precision_lab.norm import Inputs, check
from precision_lab.table import Table
from precision_lab.validation.soundness import Exact
from precision_lab.validation.verdict import Property

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from precision_lab.arithmetic import Floats
    from precision_lab.kernels.running import Claim, Outcome
    from precision_lab.validation.calls import Call

REPEATED = 24
"""Calls that are made again at most."""

BATCHES = (
    1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 383,
    384, 511, 512, 513, 767, 768, 1023, 1024, 1025, 2048, 2049, 4096,
)  # fmt: skip
"""Numbers of rows at which kernels change to another path, and their neighbours."""

COMPARED = 64
"""Rows that are compared at least: of small batches there are several."""

BATCH_WIDTHS = (256, 1024)
"""Rows of about these sizes are tried in batches."""

DEVIATES = 1.96
"""Standard errors on either side that hold a mean with 95 %."""


@dataclass(frozen=True, eq=False)
class Bench:
    """What properties are measured on: a kernel's claim, how it is called, and its run."""

    claim: Claim
    execute: Callable[[Inputs], Outcome]
    calls: Sequence[Call]
    outcomes: Sequence[Outcome]
    errors: Floats
    """Signed errors in ulp of ordinary rows."""
    signs: Floats
    """Of the exact values there."""
    flushes: bool | None
    """Whether float32 subnormals are flushed; None where a plan was the standard."""

    def answers(self, *, least_rows: int = 1) -> list[tuple[Call, NDArray[Any]]]:
        """Calls that were answered, and their bits: no more than `REPEATED`, of all sizes."""
        answers = [
            (call, outcome.bits)
            for call, outcome in zip(self.calls, self.outcomes, strict=True)
            if outcome.bits is not None and call.rows >= least_rows and call.inputs.x.size < 2**18
        ]
        return answers[:: math.ceil(len(answers) / REPEATED) or 1]

    def bits(self, inputs: Inputs) -> bytes:
        """The outputs of a call, bit for bit; b"" where there are none."""
        bits = self.execute(inputs).bits
        return b"" if bits is None else bits.tobytes()


@dataclass(frozen=True)
class PropertyRule:
    """A property, and how it is measured."""

    name: str
    description: str
    measure: Callable[[Bench], Property]
    free: bool
    """Measured without being required: it takes no calls, or one or two small ones."""


def _deterministic(bench: Bench) -> Property:
    answers = bench.answers()
    for call, bits in answers:
        if bench.bits(call.inputs) != bits.tobytes():
            return Property(False, f"the same call gives other bits ({call})")
    return Property(True, f"{len(answers)} calls made again give the same bits")


def _batch_invariant(bench: Bench) -> Property:
    answers = bench.answers(least_rows=2)
    for call, bits in answers:
        for row in {0, call.rows // 2, call.rows - 1}:
            if bench.bits(call.inputs.take([row])) != bits[row : row + 1].tobytes():
                return Property(
                    False, f"row {row} alone gives other bits than among {call.rows} rows ({call})"
                )
    tried = {
        call.hidden for call, outcome in zip(bench.calls, bench.outcomes, strict=True)
        if outcome.bits is not None and call.rows
    }  # fmt: skip
    widths = {min(tried, key=lambda n: abs(n - width)) for width in BATCH_WIDTHS} if tried else ()
    for hidden in sorted(widths):
        if (sentence := _switch(bench, hidden)) is not None:
            return Property(False, sentence)
    return Property(
        True,
        f"rows of {len(answers)} calls, alone, keep their bits, and so do rows of"
        f" hidden {' and '.join(map(str, sorted(widths)))} in batches of 1 to {BATCHES[-1]}",
    )


def _switch(bench: Bench, hidden: int) -> str | None:
    """For which number of rows a kernel gives other bits than for many; None where for none."""
    claim = bench.claim
    x = make_inputs("normal", rows=BATCHES[-1], hidden=hidden, seed=claim.seed, format=claim.format)
    gain = make_gain("random", hidden=hidden, seed=claim.seed)
    weight = None if gain is None else claim.weight_format.cast(gain - claim.weight_offset)
    offset, eps = claim.weight_offset, claim.eps[0]
    inputs = check(claim.norm, claim.format.cast(x), weight, eps=eps, weight_offset=offset)
    if bench.execute(inputs.take([0])).refused:
        inputs = dataclasses.replace(inputs, weight=None)
    whole = bench.execute(inputs).bits
    for count in BATCHES[:-1]:
        starts = range(0, max(COMPARED, count), count)
        for start in starts if whole is not None else ():
            rows = slice(start, start + count)
            bits = bench.execute(inputs.take(rows)).bits
            if bits is not None and whole is not None and bits.tobytes() != whole[rows].tobytes():
                return (
                    f"rows of hidden {hidden} have other bits among {count} rows than among"
                    f" {BATCHES[-1]}"
                )
    return None


def _permutation(bench: Bench) -> Property:
    answers = bench.answers(least_rows=2)
    for call, bits in answers:
        if bench.bits(call.inputs.take(slice(None, None, -1))) != bits[::-1].tobytes():
            return Property(False, f"rows in reverse give other bits ({call})")
    return Property(True, f"rows of {len(answers)} calls, in reverse, keep their bits")


def _ftz(bench: Bench) -> Property:
    if bench.flushes is None:
        return Property(None, "not judged against a plan")
    if bench.flushes:
        return Property(False, "it flushes float32 subnormals to zero")
    return Property(True, "float32 subnormals are kept")


TIES = 16
"""Elements of the row, twice of a LayerNorm's, whose outputs are halfway."""

SHIFT = 8
"""Where no eps of 0 is taken, that row is larger by this power of two, and eps is lost in it."""

NEGLIGIBLE = 2.0 ** (2 + 2 * SHIFT - 25)
"""An eps up to this changes no mean of squares of that row in float32."""


def _ties(bench: Bench) -> Property:
    """Products of 1.5 and odd significands: exact, and halfway between two outputs."""
    claim = bench.claim
    target, wide = claim.output_format, claim.weight_format
    if target.precision >= 24 or wide.precision < target.precision:
        return Property(None, "no exact product lies halfway between two outputs")
    # The mean of squares is 4, in every order: r is 1/2, and x·r is 3/2 or 1/2.
    row = np.zeros(TIES)
    row[:8] = 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 1.0
    if claim.norm.centred:
        # And the mean is 0.
        row = np.concatenate([row, -row])
    low = 2.0 ** (target.precision - 1)
    gain = (low + 2.0 * (np.arange(len(row)) % TIES) + 1.0) / low
    weight = wide.cast(gain - claim.weight_offset)

    def tied_inputs(eps: float, shift: int) -> Inputs:
        x = claim.format.cast(np.ldexp(row, shift)[None])
        return check(claim.norm, x, weight, eps=eps, weight_offset=claim.weight_offset)

    inputs = tied_inputs(0.0, 0)
    exact = Exact(inputs).output[0]
    right = target.round(exact)
    halfway = np.abs(target.distance(right, exact)) == 0.5
    count = int(np.count_nonzero(halfway))
    if not count:
        return Property(None, "no product lies halfway")
    y, eps = bench.execute(inputs).y, claim.eps[0]
    if y is None and 0 < eps <= NEGLIGIBLE and claim.format.largest >= 3 * 2.0**SHIFT:
        inputs = tied_inputs(eps, SHIFT)
        y = bench.execute(inputs).y
        # In a wider arithmetic than float32 they are no ties, but just beside.
        if y is not None:
            right = np.where(y == target.round(Exact(inputs).output[0]), y, right)
    if y is None:
        return Property(None, f"it takes no row of {len(row)} with a weight and an eps so small")
    with np.errstate(all="ignore"):
        near = np.abs(target.distance(np.where(np.isfinite(y), y, 0.0), exact)) <= 0.5
    if not near[..., halfway].all():
        return Property(None, "its outputs are not the neighbours of ties")
    wrong = int(np.count_nonzero((y != right) & halfway))
    if wrong:
        return Property(False, f"{wrong} of {count} ties do not go to the even neighbour")
    return Property(True, f"all of {count} ties go to the even neighbour")


def _range(bench: Bench) -> Property:
    """Ordinary rows times powers of two: between which sizes outputs are right within an ulp."""
    claim = bench.claim
    source, target = claim.format, claim.output_format
    base = np.array([1.0, -1.25, 1.5, -0.75, 0.5, 1.75, -1.0, 0.25])
    good = []
    powers = range(source.emin, source.emax)
    for power in powers:
        with np.errstate(all="ignore"):
            x = source.cast(np.ldexp(base, power)[None])
            inputs = check(claim.norm, x, eps=claim.eps[0])
            outcome = bench.execute(inputs)
            t = Exact(inputs).output[0]
            far = np.inf if outcome.y is None else np.abs(target.distance(outcome.y, t)).max()
        if far <= 1.0:
            good.append(power)
    if not good:
        return Property(False, "no size of ordinary rows gives right outputs")
    low, high = good[0], good[-1]
    gaps = "" if high - low + 1 == len(good) else ", with gaps"
    sentence = f"ordinary rows are right from 2^{low} to 2^{high}{gaps}"
    return Property(len(good) == len(powers), sentence, {"low": 2.0**low, "high": 2.0**high})


def _bias(bench: Bench) -> Property:
    errors = bench.errors
    if len(errors) < 100:
        return Property(None, "too few outputs")
    figures: dict[str, float] = {}
    holds = True
    means = []
    for name, values in (("", errors), ("away from zero", errors * bench.signs)):
        mean = float(values.mean())
        reach = DEVIATES * float(values.std()) / math.sqrt(len(values))
        key = "away" if name else "mean"
        figures |= {key: mean, f"{key}_reach": reach}
        # A mean of a hundredth of an ulp or less shows nowhere.
        holds &= abs(mean) <= max(reach, 0.01) * 1.5
        means.append(f"{mean:+.4f} ± {reach:.4f} ulp{' ' if name else ''}{name}")
    return Property(holds, f"mean errors are {' and '.join(means)}", figures)


def _correctly_rounded(bench: Bench) -> Property:
    if not len(bench.errors):
        return Property(None, "too few outputs")
    share = float(np.mean(np.abs(bench.errors) <= 0.5))
    sentence = f"{100 * share:.2f} % of ordinary outputs are correctly rounded"
    return Property(share == 1.0, sentence, {"share": share})


def _kappa(bench: Bench) -> Property:
    if not len(bench.errors):
        return Property(None, "too few outputs")
    kappa = max(0.0, float(np.ceil(np.abs(bench.errors).max() - 0.5)))
    sentence = f"largest distance from correct rounding: {kappa:g} ulp"
    return Property(kappa <= 1.0, sentence, {"kappa": kappa})


properties: Table[PropertyRule] = Table(
    "property",
    [
        PropertyRule(name, description, measure, free=free)
        for name, measure, free, description in (
            ("deterministic", _deterministic, False, "the same call gives the same bits"),
            ("batch-invariant", _batch_invariant, False,
             "a row alone gives the bits that it has in a batch"),
            ("permutation", _permutation, False, "rows in another order keep their bits"),
            ("ftz", _ftz, True, "float32 subnormals are not flushed to zero"),
            ("ties", _ties, True, "exact ties go to the even neighbour"),
            ("range", _range, False,
             "ordinary rows of every size in the format give right outputs"),
            ("bias", _bias, True, "signed errors have a mean of 0, within its 95 % interval"),
            ("correctly-rounded", _correctly_rounded, True,
             "all ordinary outputs are correctly rounded"),
            ("kappa", _kappa, True,
             "ordinary outputs are the correctly rounded value or a neighbour"),
        )
    ],
)  # fmt: skip
