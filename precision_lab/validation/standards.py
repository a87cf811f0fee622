# SPDX-License-Identifier: Apache-2.0
"""What a kernel's outputs are held against: sound computations, or one plan."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from precision_lab.exceptions import InputError
from precision_lab.plan import bound, emulate, plans
from precision_lab.validation.elimination import Elimination, Rejection, explains, parts, rejections
from precision_lab.validation.soundness import Exact, Judgement, ValueRange, last_cast

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from precision_lab.kernels.running import Claim
    from precision_lab.norm import Inputs
    from precision_lab.plan import Plan
    from precision_lab.validation.soundness import Hypothesis

    Floats = NDArray[np.float64]


class Standard(Protocol):
    """What outputs are held against."""

    def judge(self, number: int, inputs: Inputs, y: Floats) -> Rejection | None:
        """What is wrong with a call's outputs, if anything is."""
        ...

    def rejected(self, inputs: Inputs, y: Floats) -> Rejection | None:
        """The same of one more call, by all that is known of the kernel by now."""
        ...

    def expected(self, rejected: Rejection, inputs: Inputs) -> ValueRange:
        """The least and the largest right outputs."""
        ...

    def told(self, rejected: Rejection) -> str:
        """What the outputs are not."""
        ...


@dataclass(eq=False)
class Sound(Elimination):
    """Outputs that a sound computation gives, under one hypothesis for the whole run."""

    first: list[Hypothesis] = field(default_factory=list)
    """All hypotheses, as they were before any call."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.first = list(self.alive)

    def rejected(self, inputs: Inputs, y: Floats) -> Rejection | None:
        """Outputs that no hypothesis that is left explains."""
        judged = list(parts(inputs, y, self.claim))
        if any(explains(judged, one) for one in self.alive):
            return None
        return rejections(judged, self.alive, y.shape[1])[0]

    def expected(self, rejected: Rejection, inputs: Inputs) -> ValueRange:
        """What the hypothesis allows."""
        empty = np.zeros(inputs.x.shape)
        judgement = Judgement(Exact(inputs), empty, last_cast(self.claim))
        return judgement.expected(rejected.hypothesis or self.narrowest)

    def told(self, rejected: Rejection) -> str:  # noqa: ARG002
        """No hypothesis by name: what explains most of one call need not of another."""
        return "what a sound computation gives"

    def others(self, inputs: Inputs, y: Floats) -> list[str]:
        """Hypotheses that are dead, and explain these outputs all the same."""
        judged = list(parts(inputs, y, self.claim))
        dead = (one for one in self.first if not one.flushes)
        return [one.name for one in dead if explains(judged, one)]


@dataclass(eq=False)
class OnePlan:
    """Outputs of one plan.

    Parameters
    ----------
    plan, claim
        Which plan, and what the kernel claims.
    bits
        Whether outputs must equal the plan's bit for bit; else within its bound.
    """

    plan: Plan
    claim: Claim
    bits: bool
    equal: int = 0
    total: int = 0

    def judge(self, number: int, inputs: Inputs, y: Floats) -> Rejection | None:  # noqa: ARG002
        """Outputs that are not the plan's."""
        made = self._made(inputs)
        same = (made == y) | (np.isnan(made) & np.isnan(y))
        self.equal += int(same.sum())
        self.total += same.size
        wrong = ~same
        if wrong.any() and not self.bits:
            low, high = self._interval(inputs)
            wrong &= ~((low <= y) & (y <= high))
        if not wrong.any():
            return None
        return Rejection(None, wrong, np.zeros(len(wrong), bool))

    def rejected(self, inputs: Inputs, y: Floats) -> Rejection | None:
        """Outputs that are not the plan's, uncounted."""
        equal, total = self.equal, self.total
        found = self.judge(0, inputs, y)
        self.equal, self.total = equal, total
        return found

    def expected(self, rejected: Rejection, inputs: Inputs) -> ValueRange:  # noqa: ARG002
        """The plan's own outputs, or what its bound leaves."""
        if self.bits:
            made = self._made(inputs)
            return ValueRange(made, made)
        return self._interval(inputs)

    def told(self, rejected: Rejection) -> str:  # noqa: ARG002
        """The plan."""
        return f"what plan {self.plan.name!r} gives{'' if self.bits else ', within its bound'}"

    def _made(self, inputs: Inputs) -> Floats:
        y = emulate(
            *inputs.arguments(), eps=inputs.eps, plan=self.plan, norm=inputs.norm,
        )  # fmt: skip
        return y.astype(np.float64)

    def _interval(self, inputs: Inputs) -> ValueRange:
        offset = 1.0 if self.plan.gain == "one_plus" else 0.0
        with np.errstate(all="ignore"):
            exact = Exact(dataclasses.replace(inputs, weight_offset=offset)).output
            reach = exact[1] + bound(
                *inputs.arguments(), eps=inputs.eps, plan=self.plan, norm=inputs.norm,
            )  # fmt: skip
            reach = np.where(np.isnan(reach), np.inf, reach)
            return ValueRange(exact[0] - reach, exact[0] + reach)


def standard(claim: Claim, plan: Plan | str | None, *, bits: bool | None) -> Sound | OnePlan:
    """What a run is held against.

    Parameters
    ----------
    claim
        What the kernel claims.
    plan
        A plan or its name; None for all sound computations.
    bits
        Whether a plan's bits are asked for; None where its order of summation is known: it is a
        verified implementation's, or was chosen by name.

    Raises
    ------
    InputError
        For a plan of another norm, gain or output format.
    """
    if plan is None:
        return Sound(claim)
    chosen = plans.find(plan)
    chosen.norm_for(claim.norm)
    offset = 1.0 if chosen.gain == "one_plus" else 0.0
    if chosen.gain != "ignored" and claim.weight_offset != offset:
        raise InputError(
            f"plan {chosen.name!r} has the gain {chosen.gain!r}: give weight_offset={offset:g}"
        )
    own, weight = claim.format, claim.weight_format
    if chosen.output_format == "input" and claim.output_format != own:
        chosen = chosen.replace(output_format=claim.output_format.name)
    made = chosen.formats_for(own, weight).output_format
    if made != claim.output_format.name:
        raise InputError(
            f"plan {chosen.name!r} gives {made}: the kernel's output format is"
            f" {claim.output_format.name}"
        )
    known = bool(chosen.verified) or " order=" in f" {chosen.name}"
    return OnePlan(chosen, claim, known if bits is None else bits)


__all__ = ["OnePlan", "Sound", "Standard", "standard"]
