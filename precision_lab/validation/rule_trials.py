# SPDX-License-Identifier: Apache-2.0
"""Further calls of a kernel with wrong outputs: a rule that is reported was tried."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from precision_lab.identification import KernelAnswer, least_squares_roots
from precision_lab.validation.calls import Call, with_parameters
from precision_lab.validation.common_causes import Cause, shows_faults
from precision_lab.validation.probe_rows import LARGEST_CALL, ProbeRequest
from precision_lab.validation.probe_table import probes
from precision_lab.validation.standards import Sound

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from precision_lab.kernels.running import Outcome
    from precision_lab.norm import Inputs
    from precision_lab.validation.elimination import Rejection
    from precision_lab.validation.session import Session

TRIES = 120
"""Calls at most."""

WORK = 1 << 21
"""Elements at most, all calls together."""

TEMPLATES = 2
"""Failing calls, of different probes, that are made again at another size."""

MIXED = ("every-kind", "many-rows")
"""Probes of rows of many kinds."""

MULTIPLES = 3
"""Multiples of a number that must be right before it is a modulus."""

PATTERN = 6
"""Values that were tried, from which on a list of right and wrong ones says something."""

LONGEST = 8192
"""Elements of a row, at most, that calls of the run are made again with."""

LISTED = 6
"""Values that are written out."""

EPS = (1e-12, 1e-8, 1e-7, 1e-4, 1e-3)
"""Values of eps that are tried beside those of the run."""


SURE = 1.5
"""Errors of roots that are so many times u/√n are no rounding's: of n outputs, each rounded once or
twice, these are 0.4 to 0.6."""


class Trial(NamedTuple):
    """One further call."""

    call: Call
    outcome: Outcome
    rejection: Rejection | None
    """What is wrong with its outputs, by themselves."""
    unit: float
    """The largest relative error of a rounded output."""


@dataclass(eq=False)
class Trials:
    """Further calls with a budget.

    Parameters
    ----------
    execute
        From inputs to an outcome.
    session
        The run.
    """

    execute: Callable[[Inputs], Outcome]
    session: Session
    made: list[Trial] = field(default_factory=list)
    tries: int = TRIES
    work: int = WORK

    def run(self, call: Call) -> Trial | None:
        """Make a call; None where it has no outputs, or the budget is spent."""
        size, standard = call.inputs.x.size, self.session.standard
        if self.tries <= 0 or self.work < size or not isinstance(standard, Sound):
            return None
        self.tries -= 1
        self.work -= size
        outcome = self.execute(call.inputs)
        if outcome.y is None:
            return None
        rejection = standard.rejected_alone(call.inputs, outcome.y)
        unit = self.session.claim.output_format.unit_roundoff
        self.made.append(Trial(call, outcome, rejection, unit))
        return self.made[-1]

    def change(
        self, call: Call, *,
        hidden: int | None = None, rows: int | None = None, eps: float | None = None,
        redrawn: int = 0,
    ) -> Call:  # fmt: skip
        """The same probe with another size, number of rows or eps, or with other numbers."""
        claim = self.session.claim
        seed = claim.seed + redrawn
        width = call.hidden if hidden is None else hidden
        one = call.inputs.eps if eps is None else eps
        # Of a probe of many rows there are fewer where they are longer.
        most = max(1, LARGEST_CALL // width)
        count = min(probes[call.probe].rows or 4, most) if rows is None else rows
        request = ProbeRequest(count, width, claim.format, one, seed, claim.norm.centred)
        with np.errstate(all="ignore"):
            x = claim.format.cast(probes[call.probe].make(request)[:rows])
        biased = call.inputs.bias is not None
        inputs = with_parameters(claim, x, call.gain, one, seed, biased=biased)
        return Call(call.probe, inputs, call.gain)

    def doubtful(self, cause: Cause) -> list[int]:
        """Sizes at which all calls of the run are right, though a suspected rule says otherwise."""
        if not cause.suspected:
            return []
        calls, session = self.session.calls, self.session
        wrong = {calls[i].hidden for i in session.wrong}
        right = Counter(
            call.hidden
            for call, outcome in zip(calls, session.outcomes, strict=True)
            if outcome.y is not None
            and 1 < call.hidden <= LONGEST
            and call.hidden not in wrong
            and not cause.right(call)
        )
        return [size for size, _ in right.most_common(LISTED)]

    def templates(self, axis: str) -> list[Call]:
        """Failing calls of the probes that fail at most values; of each probe the smallest."""
        failing: dict[str, list[Call]] = {}
        for number in sorted(self.session.wrong):
            call = self.session.calls[number]
            if call.probe in probes and shows_faults(call):
                # Of rows by themselves, any probe of ordinary rows does.
                failing.setdefault("" if axis == "rows" else call.probe, []).append(call)
        # Rows of one kind before rows of many kinds: those are more, and take longer.
        groups = sorted(
            failing.values(),
            key=lambda group: (group[0].probe in MIXED, -len({one.hidden for one in group})),
        )
        return [min(group, key=lambda one: one.inputs.x.size) for group in groups[:TEMPLATES]]


@dataclass(eq=False)
class _Axis:
    """What was found right and wrong along one axis: ``hidden``, ``rows`` or ``eps``."""

    name: str
    trials: Trials
    known: dict[float, bool | None] = field(default_factory=dict)
    chosen: list[Call] = field(default_factory=list)
    made: list[Trial] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chosen = self.trials.templates(self.name)

    def right(self, value: float) -> bool | None:
        """Whether all outputs are right there; None where that cannot be tried in full."""
        if value not in self.known:
            self.known[value] = self._right(value)
        return self.known[value]

    def _right(self, value: float) -> bool | None:
        lacking = not self.chosen
        for template in self.chosen:
            changes = {self.name: value if self.name == "eps" else int(value)}
            trial = self.trials.run(self.trials.change(template, **changes))  # type: ignore[arg-type]
            if trial is None:
                lacking = True
                continue
            self.made.append(trial)
            if trial.rejection is not None:
                return False
        return None if lacking else True

    def found(self, *, good: bool) -> list[float]:
        """Values that are right, or wrong, in order."""
        return sorted(value for value, right in self.known.items() if right is good)

    def hides_the_fault(self) -> bool:
        """Whether roots are off as far where outputs are right as where they are wrong.

        A small fault shows in some calls alone, for what a sound computation may give is more in
        others: then these are no better, and a rule would say of the validator what it says of the
        kernel.
        """
        made = [(trial.rejection is None, *root_error(trial)) for trial in self.made]
        wrong = [error for is_right, error, _ in made if not is_right]
        if not wrong:
            return False
        usual = float(np.median(wrong))
        return any(
            error > max(usual / 2, SURE * unit) for is_right, error, unit in made if is_right
        )

    def all(self, values: Iterable[float], *, right: bool) -> bool:
        """Whether each value was tried, and is right, or wrong."""
        return all(self.right(value) is right for value in values)


def root_error(trial: Trial) -> tuple[float, float]:
    """How far the roots of a call's rows are off, and how far rounding takes them; the medians.

    By least squares over the outputs, each of which errs by half an ulp at most.
    """
    inputs, y = trial.call.inputs, trial.outcome.y
    if y is None:
        raise AssertionError(trial.call)
    with np.errstate(all="ignore"):
        answered = [KernelAnswer(inputs, y)]
        gain = "one_plus" if inputs.weight_offset == 1 else "plain"
        x = inputs.x.astype(np.float64)
        d = x - x.mean(-1, keepdims=True) if inputs.norm.centred else x
        off = least_squares_roots(answered, gain, "after_gain") * np.sqrt(
            np.mean(d * d, -1) + inputs.eps
        )
        count = np.sum(d * d, -1) ** 2 / np.sum(d**4, -1)
        known = np.isfinite(off) & np.isfinite(count)
        unit = trial.unit / np.sqrt(count[known])
    if not known.any():
        return 0.0, math.inf
    return float(np.median(np.abs(off[known] - 1))), float(np.median(unit))


def tried_cause(causes: Iterable[Cause], trials: Trials) -> Cause | None:
    """What separates right calls from wrong ones, as it holds in further calls.

    A rule that separates the calls of a run may be too narrow: all right sizes may be multiples of
    1024 where multiples of 128 are right. The kernel is called at further values until the smallest
    modulus, or both sides of a threshold, are right and wrong as the rule says. Where no rule
    holds, the values that were tried are listed; where nothing can be tried, the rule is one of the
    calls made. None where further calls contradict it.

    Parameters
    ----------
    causes
        Of the calls of a run, the simplest first.
    trials
        Makes further calls.
    """
    axes: dict[str, _Axis] = {}
    first: dict[str, Cause] = {}
    for cause in causes:
        if not cause.axis:
            return cause
        axis = axes.setdefault(cause.axis, _Axis(cause.axis, trials))
        if not cause.suspected:
            first.setdefault(cause.axis, cause)
        held = _held(cause, axis)
        tried = held is not None and axis.all(trials.doubtful(held), right=False)
        if tried and not axis.hides_the_fault():
            return held
    for name, cause in first.items():
        if axes[name].hides_the_fault():
            continue
        right, wrong = axes[name].found(good=True), axes[name].found(good=False)
        if not right and not wrong:
            return dataclasses.replace(cause, sentence=f"in the calls made, {cause.sentence}")
        if right and wrong and len(right) + len(wrong) >= PATTERN:
            sentence = f"right at {name} {_listed(right)}, wrong at {_listed(wrong)}"
            return dataclasses.replace(cause, sentence=sentence, axis="")
    return None


def _held(cause: Cause, axis: _Axis) -> Cause | None:
    """The rule as it holds in further calls; None where it does not."""
    if cause.axis == "eps":
        return _eps(cause, axis)
    if cause.step:
        return _multiples(cause, axis)
    return _only(cause, axis) if cause.only else _threshold(cause, axis)


def _multiples(cause: Cause, axis: _Axis) -> Cause | None:
    """The smallest modulus whose multiples are right, with its neighbours tried."""
    step = cause.step
    if not axis.all([step, 3 * step], right=True):
        return None
    smaller = True
    while smaller:
        smaller = False
        for prime in _primes(step):
            factors = [k for k in range(1, 9) if k % prime][:MULTIPLES]
            if axis.all([step // prime * k for k in factors], right=True):
                step, smaller = step // prime, True
                break
    beside = {k * step + side for k in (1, 2, 3, 5) for side in (-1, 1)}
    beside |= {k * step + step // 2 for k in (1, 3)}
    if step < 2 or not axis.all(sorted(n for n in beside if n % step), right=False):
        return None
    return dataclasses.replace(
        cause,
        sentence=f"right where hidden is a multiple of {step}, wrong elsewhere",
        right=lambda one: one.hidden % step == 0,
        step=step,
    )


def _threshold(cause: Cause, axis: _Axis) -> Cause | None:
    """Both ends moved together until they are neighbours, and values beyond them tried."""
    good, bad = cause.ends
    if axis.right(good) is not True or axis.right(bad) is not False:
        return None
    # Of one element every output is alike: that it is right says nothing.
    least = 2 if cause.axis == "hidden" else 1
    while abs(bad - good) > 1:
        middle = (good + bad) // 2
        answer = axis.right(middle)
        if answer is None:
            break
        good, bad = (middle, bad) if answer else (good, middle)
    if good < least:
        return None
    low, high = sorted((good, bad))
    below, above = {max(1, low - 1), max(1, low // 2)}, {high + 1, high + high // 2 + 1}
    up = good < bad
    if not (axis.all(below, right=up) and axis.all(above, right=not up)):
        return None
    name = "hidden is" if cause.axis == "hidden" else "rows are"
    if up:
        sentence = f"right where {name} {good} or fewer, wrong from {bad} on"
        return dataclasses.replace(cause, sentence=sentence, right=lambda c: _of(c, cause) <= good)
    sentence = f"right where {name} {good} or more, wrong up to {bad}"
    return dataclasses.replace(cause, sentence=sentence, right=lambda c: _of(c, cause) >= good)


def _only(cause: Cause, axis: _Axis) -> Cause | None:
    """A few wrong values, whose neighbours, halves and doubles are tried."""
    values = set(cause.only)
    beside = {n for v in values for n in (v - 1, v + 1, v // 2, 2 * v) if n > 0} - values
    wrong = axis.all(sorted(values), right=False)
    return cause if wrong and axis.all(sorted(beside), right=True) else None


def _eps(cause: Cause, axis: _Axis) -> Cause | None:
    """Values of eps: those of the run, and others."""
    for value in sorted({*EPS, *axis.trials.session.claim.eps}):
        axis.right(value)
    right, wrong = axis.found(good=True), axis.found(good=False)
    if not right or not wrong:
        return None
    if right[-1] < wrong[0]:
        return _cause(
            cause, f"right where eps is {right[-1]:g} or less, wrong from {wrong[0]:g} on", right
        )
    if wrong[-1] < right[0]:
        return _cause(
            cause, f"right where eps is {right[0]:g} or more, wrong up to {wrong[-1]:g}", right
        )
    if len(right) == 1:
        return _cause(cause, f"right where eps is {right[0]:g}, wrong at {_listed(wrong)}", right)
    return None


def _cause(cause: Cause, sentence: str, right: Sequence[float]) -> Cause:
    """With these right values."""
    return dataclasses.replace(cause, sentence=sentence, right=lambda c: _of(c, cause) in right)


def _of(call: Call, cause: Cause) -> float:
    """The value of the axis."""
    return call.inputs.eps if cause.axis == "eps" else float(getattr(call, cause.axis))


def _listed(values: Sequence[float]) -> str:
    few = [f"{value:g}" for value in values[:LISTED]]
    return ", ".join(few) + (", …" if len(values) > LISTED else "")


def _primes(number: int) -> Collection[int]:
    """Those that divide it."""
    return [p for p in range(2, number + 1) if number % p == 0 and all(p % q for q in range(2, p))]
