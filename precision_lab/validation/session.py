# SPDX-License-Identifier: Apache-2.0
"""One run: all calls made, judged, and what is wrong reported once for each probe."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.kernels.running import layout_finding
from precision_lab.validation.failures import Failure, Wrong, value_text
from precision_lab.validation.measuring import signed_errors
from precision_lab.validation.probe_table import probes
from precision_lab.validation.refusals import unsupported, without_refused
from precision_lab.validation.shrinking import shrink
from precision_lab.validation.standards import Sound
from precision_lab.validation.verdict import Tried

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from precision_lab.arithmetic import Floats
    from precision_lab.kernels.running import Claim, Outcome
    from precision_lab.norm import Inputs
    from precision_lab.validation.calls import Call
    from precision_lab.validation.elimination import Rejection
    from precision_lab.validation.standards import OnePlan

SHRUNK = 2
"""Failing probes whose inputs are made small."""

SHOWN_INPUTS = ("killed", "hung", "shape", "type")
"""Kinds of findings whose inputs are reported."""

SEARCHED = 64
"""Wrong rows among which the worst element is looked for."""


@dataclass(eq=False)
class Session:
    """A run.

    Parameters
    ----------
    claim
        What the kernel claims.
    execute
        Calls it once.
    standard
        What its outputs are checked against.
    calls
        The calls; those refused for a weight or a bias are made without it too.
    """

    claim: Claim
    execute: Callable[[Inputs], Outcome]
    standard: Sound | OnePlan
    calls: Sequence[Call]
    outcomes: list[Outcome] = field(default_factory=list)
    rejected: dict[int, Rejection] = field(default_factory=dict)
    errors: list[tuple[str, Floats]] = field(default_factory=list)
    ordinary: list[tuple[Floats, Floats]] = field(default_factory=list)
    """Errors in ulp of ordinary rows, and the signs of the exact values."""

    def run(self) -> None:
        """Make all calls and judge them."""
        for call in self.calls:
            self._make(call)
        more = without_refused(self.calls, self.outcomes)
        self.calls = [*self.calls, *more]
        for call in more:
            self._make(call)

    def _make(self, call: Call) -> None:
        """The next call."""
        number, outcome = len(self.outcomes), self.execute(call.inputs)
        if outcome.other is not None and self.standard.is_wrong(call.inputs, outcome.other):
            finding = layout_finding(outcome.layout)
            outcome = replace(outcome, findings=(*outcome.findings, finding))
        self.outcomes.append(outcome)
        if outcome.y is None:
            return
        rejection = self.standard.judge(call.inputs, outcome.y)
        if rejection is not None:
            self.rejected[number] = rejection
        errors, signs = signed_errors(call.inputs, outcome.y, self.claim)
        self.errors.append((call.probe, errors))
        # A bias may cancel the value: an ulp of what is left is no measure.
        if call.probe == "normal" and call.inputs.bias is None and errors.size:
            self.ordinary.append((errors, signs))

    @property
    def judged(self) -> int:
        """Calls that were judged."""
        return sum(outcome.y is not None for outcome in self.outcomes)

    @property
    def outputs(self) -> int:
        """Outputs that were judged."""
        return sum(outcome.y.size for outcome in self.outcomes if outcome.y is not None)

    @property
    def tried(self) -> Tried:
        """Sizes, rows and eps of the calls that were judged."""
        calls = [
            call for call, outcome in zip(self.calls, self.outcomes, strict=True)
            if outcome.y is not None
        ]  # fmt: skip
        return Tried(
            tuple(sorted({call.hidden for call in calls})),
            tuple(sorted({call.rows for call in calls})),
            tuple(sorted({call.inputs.eps for call in calls})),
        )

    @property
    def _without_rows(self) -> bool:
        """Whether all calls were of probes whose point is that there are no rows, and answered."""
        names = {call.probe for call in self.calls}
        empty = all(name in probes and probes[name].rows == 0 for name in names)
        return bool(names) and empty and self.judged == len(self.calls)

    @cached_property
    def explained(self) -> dict[int, list[str]]:
        """Of each rejected call the hypotheses that would explain it by itself, if any."""
        if not isinstance(self.standard, Sound):
            return {number: [] for number in self.rejected}
        return {
            number: self.standard.explaining(self.calls[number].inputs, y)
            for number in self.rejected
            if (y := self.outcomes[number].y) is not None
        }

    @property
    def wrong(self) -> set[int]:
        """Calls with outputs that no sound computation gives."""
        return {number for number, names in self.explained.items() if not names}

    @property
    def apart(self) -> dict[int, list[str]]:
        """The same where each call is right by itself, and only no one hypothesis is for all."""
        return {} if self.wrong else self.explained

    def explained_if_it_saturates(self) -> bool:
        """Whether all outputs are sound of a kernel whose last cast saturates, and it was not said.

        Calls that were rejected are judged first: one of them settles most kernels.
        """
        if self.claim.overflow != "ieee" or not self.rejected:
            return False
        other = Sound(replace(self.claim, overflow="saturate"))
        order = sorted(range(len(self.outcomes)), key=lambda number: number not in self.rejected)
        return all(
            other.judge(self.calls[number].inputs, y) is None
            for number in order
            if (y := self.outcomes[number].y) is not None
        )

    def conclude(self) -> tuple[tuple[Failure, ...], tuple[str, ...]]:
        """What is wrong, and what the kernel does not take."""
        lacking, covered = unsupported(self.calls, self.outcomes)
        failures = [*self._wrong_values(), *self._errors(covered), *self._findings()]
        if not failures and not self.outputs and not self._without_rows:
            why = next((f": {o.raised}: {o.message}" for o in self.outcomes if o.raised), "")
            failures.append(
                Failure(kind="nothing", probe="", message=f"none of the calls was answered{why}")
            )
        return tuple(failures), tuple(lacking)

    # Outputs --------------------------------------------------------------------------------------

    def _wrong_values(self) -> list[Failure]:
        """A failure for each probe that has one, the most telling first.

        Of a probe the first call is reported of those with the largest share of wrong outputs; of
        probes that with the largest share, then with the largest error, comes first.
        """
        most: dict[str, int] = {}
        times: Counter[str] = Counter()
        for number, rejected in self.rejected.items():
            probe = self.calls[number].probe
            best = most.setdefault(probe, number)
            if rejected.wrong.mean() > self.rejected[best].wrong.mean():
                most[probe] = number
            times[probe] += 1
        worst = {number: self._worst_of(number) for number in most.values()}

        def telling(number: int) -> tuple[bool, float, float]:
            one = worst[number]
            # Rows of numbers before rows with NaN and infinities.
            odd = not np.isfinite(self.calls[number].inputs.x.astype(np.float64)).all()
            return odd, -float(self.rejected[number].wrong.mean()), -(one.far if one else 0.0)

        return [
            self._value(number, worst[number], times[self.calls[number].probe], place < SHRUNK)
            for place, number in enumerate(sorted(most.values(), key=telling))
        ]

    def _worst_of(self, number: int) -> Wrong | None:
        """The worst output of a call; None where no one output is wrong."""
        rejected, y = self.rejected[number], self.outcomes[number].y
        if y is None:
            raise AssertionError(self.calls[number])
        return self._worst(rejected, self.calls[number].inputs, y) if rejected.wrong.any() else None

    def _value(self, number: int, worst: Wrong | None, times: int, small: bool) -> Failure:  # noqa: FBT001
        call, rejected = self.calls[number], self.rejected[number]
        inputs = call.inputs
        count = int(rejected.wrong.sum())
        where = (worst.row, worst.element) if worst else (int(rejected.rows.argmax()), 0)
        if worst is None:
            kind = "root"
            one = "one 1/√ and one mean" if self.claim.norm.centred else "one 1/√"
            message = f"no {one} can have given all outputs of row {where[0]}"
        else:
            special = not np.isfinite(inputs.x[worst.row].astype(np.float64)).all()
            kind = "special" if special else self.standard.kind
            message = self._message(rejected, inputs, worst)
        if names := self.apart.get(number):
            message += f" ({names[0]} would, but not all other calls)"
        if times > 1:
            message += f", and {times - 1} more calls of this probe fail"
        fewer = shrink(inputs, *where, self._fails) if small else None
        return Failure(
            kind=kind,
            probe=call.probe,
            message=message,
            call=str(call),
            count=count,
            total=rejected.wrong.size,
            worst=worst,
            inputs=fewer,
            small=None if fewer is None else self._worst_again(fewer),
        )

    def _worst_again(self, inputs: Inputs) -> Wrong | None:
        """The worst output of smaller inputs."""
        y = self.execute(inputs).y
        rejected = None if y is None else self.standard.rejected(inputs, y)
        if y is None or rejected is None or not rejected.wrong.any():
            return None
        return self._worst(rejected, inputs, y)

    def _fails(self, inputs: Inputs) -> bool:
        outcome = self.execute(inputs)
        return outcome.y is not None and self.standard.rejected(inputs, outcome.y) is not None

    def _worst(self, rejected: Rejection, inputs: Inputs, y: Floats) -> Wrong:
        rows = np.nonzero(rejected.wrong.any(-1))[0][:SEARCHED]
        wrong, part = rejected.wrong[rows], y[rows]
        low, high = self.standard.expected(rejected, inputs.take(rows))
        target = self.claim.output_format
        top = target.largest
        with np.errstate(all="ignore"):
            near = np.clip(part, np.fmax(low, -top), np.fmin(high, top))
            off = np.isnan(part) != np.isnan(low)
            off |= np.isinf(part) | ~np.isfinite(near)
            far = np.abs(target.distance(np.where(off, 0, part), np.where(off, 0, near)))
        far = np.where(wrong, np.where(off, np.inf, far), -1.0)
        i, j = np.unravel_index(int(far.argmax()), far.shape)
        place = int(rows[i]), int(j)
        off_by = float(far[i, j])
        return Wrong(*place, float(low[i, j]), float(high[i, j]), float(y[place]), off_by)

    def _message(self, rejected: Rejection, inputs: Inputs, worst: Wrong) -> str:
        wrong = rejected.wrong
        x = inputs.x[worst.row].astype(np.float64)
        if not np.isfinite(x).all():
            what = "NaN" if np.isnan(x).any() else "an infinity"
            return (
                f"{wrong.sum()} of {wrong.size} outputs are wrong beside {what}: row {worst.row},"
                f" element {worst.element} is {value_text(worst.got)}, where IEEE arithmetic gives"
                " NaN (in an RMSNorm's row with an infinity 0 as well)"
            )
        message = (
            f"{wrong.sum()} of {wrong.size} outputs are not {self.standard.description}: {worst}"
        )
        if np.isnan(worst.got) and np.isnan(inputs.x.astype(np.float64)).any():
            message += "; the NaN came from another row"
        return message

    def _example(self, numbers: Iterable[int]) -> int:
        """The first of these calls; one with rows where there is one."""
        return min(numbers, key=lambda number: (self.calls[number].rows == 0, number))

    # Beside the outputs ---------------------------------------------------------------------------

    def _errors(self, covered: set[int]) -> list[Failure]:
        kinds: dict[str, list[int]] = {}
        for number, outcome in enumerate(self.outcomes):
            if outcome.raised and number not in covered:
                kinds.setdefault(outcome.raised, []).append(number)
        return [
            Failure(
                kind="raised",
                probe=self.calls[first].probe,
                message=f"it raised {name}: {self.outcomes[first].message}"
                + (f", and so on {len(numbers) - 1} more calls" if len(numbers) > 1 else ""),
                call=str(self.calls[first]),
                inputs=self.calls[first].inputs,
            )
            for name, numbers in kinds.items()
            for first in [self._example(numbers)]
        ]

    def _findings(self) -> list[Failure]:
        kinds: dict[str, dict[int, str]] = {}
        for number, outcome in enumerate(self.outcomes):
            for kind, sentence in outcome.findings:
                kinds.setdefault(kind, {}).setdefault(number, sentence)
        return [
            Failure(
                kind=kind,
                probe=self.calls[number].probe,
                message=sentences[number]
                + (f", on {len(sentences)} calls" if len(sentences) > 1 else ""),
                call=str(self.calls[number]),
                inputs=self.calls[number].inputs if kind in SHOWN_INPUTS else None,
            )
            for kind, sentences in kinds.items()
            for number in [self._example(sentences)]
        ]
