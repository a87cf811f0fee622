# SPDX-License-Identifier: Apache-2.0
"""What a kernel's outputs are checked against: sound computations, or one plan."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from precision_lab.exceptions import InputError
from precision_lab.plan import OPEN_FORMATS, bound, emulate, plans
from precision_lab.validation.elimination import Elimination, Rejection, explains, parts, rejections
from precision_lab.validation.soundness import Exact, Judgement, ValueRange, last_cast

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from precision_lab.arithmetic import Floats, Mask
    from precision_lab.kernels.running import Claim
    from precision_lab.norm import Inputs
    from precision_lab.plan import Plan
    from precision_lab.validation.soundness import Hypothesis


@dataclass(eq=False)
class Sound(Elimination):
    """Outputs that a sound computation gives, under one hypothesis for the whole run."""

    kind: ClassVar = "value"
    description: ClassVar = "what a sound computation gives"
    """What wrong outputs are not: of no hypothesis, for what explains most of one call need not
    explain most of another."""
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

    def is_wrong(self, inputs: Inputs, y: NDArray[Any]) -> bool:
        """Whether another answer to a call, in bits, is explained by no hypothesis that is left."""
        return self.rejected(inputs, _widened(y)) is not None

    def rejected_alone(self, inputs: Inputs, y: Floats) -> Rejection | None:
        """Outputs that no hypothesis explains, whatever other calls showed."""
        judged = list(parts(inputs, y, self.claim))
        every = [one for one in self.first if not one.flushes]
        if any(explains(judged, one) for one in every):
            return None
        return rejections(judged, every, y.shape[1])[0]

    def expected(self, rejected: Rejection, inputs: Inputs) -> ValueRange:
        """What the hypothesis allows."""
        empty = np.zeros(inputs.x.shape)
        judgement = Judgement(Exact(inputs), empty, last_cast(self.claim))
        return judgement.expected(rejected.hypothesis or self.narrowest)

    def explaining(self, inputs: Inputs, y: Floats) -> list[str]:
        """Names of the hypotheses that explain these outputs by themselves."""
        judged = list(parts(inputs, y, self.claim))
        kept = (one for one in self.first if not one.flushes)
        return list(dict.fromkeys(one.name for one in kept if explains(judged, one)))


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

    kind: ClassVar = "plan"
    plan: Plan
    claim: Claim
    bits: bool
    equal: int = 0
    total: int = 0

    def judge(self, inputs: Inputs, y: Floats) -> Rejection | None:
        """Outputs that are not the plan's, counted."""
        equal = self._equal(inputs, y)
        self.equal += int(equal.sum())
        self.total += equal.size
        return self._rejection(inputs, y, ~equal)

    def rejected(self, inputs: Inputs, y: Floats) -> Rejection | None:
        """Outputs that are not the plan's, uncounted."""
        return self._rejection(inputs, y, ~self._equal(inputs, y))

    def is_wrong(self, inputs: Inputs, y: NDArray[Any]) -> bool:
        """Whether another answer to a call, in bits, is not within the plan's bound."""
        bound = dataclasses.replace(self, bits=False)
        return bound.rejected(inputs, _widened(y)) is not None

    def _equal(self, inputs: Inputs, y: Floats) -> Mask:
        expected = self._emulated(inputs)
        return np.asarray((expected == y) | (np.isnan(expected) & np.isnan(y)))

    def _rejection(self, inputs: Inputs, y: Floats, wrong: Mask) -> Rejection | None:
        if wrong.any() and not self.bits:
            low, high = self._range(inputs)
            wrong &= ~((low <= y) & (y <= high))
        return Rejection(None, wrong, np.zeros(len(wrong), bool)) if wrong.any() else None

    def expected(self, rejected: Rejection, inputs: Inputs) -> ValueRange:  # noqa: ARG002
        """The plan's outputs, or what its bound leaves."""
        if self.bits:
            y = self._emulated(inputs)
            return ValueRange(y, y)
        return self._range(inputs)

    @property
    def description(self) -> str:
        """What wrong outputs are not: the plan's."""
        return f"what plan {self.plan.name!r} gives{'' if self.bits else ', within its bound'}"

    def _emulated(self, inputs: Inputs) -> Floats:
        y = emulate(
            *inputs.arguments(), eps=inputs.eps, plan=self.plan, norm=inputs.norm,
        )  # fmt: skip
        return y.astype(np.float64)

    def _range(self, inputs: Inputs) -> ValueRange:
        offset = 1.0 if self.plan.gain == "one_plus" else 0.0
        with np.errstate(all="ignore"):
            exact = Exact(dataclasses.replace(inputs, weight_offset=offset)).output
            reach = exact[1] + bound(
                *inputs.arguments(), eps=inputs.eps, plan=self.plan, norm=inputs.norm,
            )  # fmt: skip
            reach = np.where(np.isnan(reach), np.inf, reach)
            return ValueRange(exact[0] - reach, exact[0] + reach)


def _widened(y: NDArray[Any]) -> Floats:
    with np.errstate(all="ignore"):
        return y.astype(np.float64)


def standard(claim: Claim, plan: Plan | str | None, *, bits: bool | None) -> Sound | OnePlan:
    """What a run is checked against.

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
    wanted = claim.output_format
    output = chosen.formats_for(claim.format, claim.weight_format).output_format
    is_open = chosen.output_format in OPEN_FORMATS["output_format"]
    if is_open and wanted.name != output and wanted != claim.format:
        chosen = chosen.replace(output_format=wanted.name)
        output = wanted.name
    if output != wanted.name:
        raise InputError(
            f"plan {chosen.name!r} gives {output}: the kernel's output format is {wanted.name}"
        )
    known_order = bool(chosen.verified) or " order=" in f" {chosen.name}"
    return OnePlan(chosen, claim, known_order if bits is None else bits)
