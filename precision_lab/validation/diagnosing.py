# SPDX-License-Identifier: Apache-2.0
"""The plan behind a kernel, looked for once its calls are judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from precision_lab.identification import LIKELY, SIZES, Identified, answer, make_queries, rivals
from precision_lab.identification import KernelAnswer as Answered
from precision_lab.kernels.running import Outcome
from precision_lab.validation.common_causes import clue
from precision_lab.validation.verdict import Diagnosis

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from precision_lab.kernels.running import Claim
    from precision_lab.norm import Inputs
    from precision_lab.validation.calls import Call
    from precision_lab.validation.session import Session

    Execute = Callable[[Inputs], Outcome]
    Diagnose = Callable[[Sequence[Call], Sequence[Outcome]], Diagnosis]

REPEATED = 2
"""Failing calls that are made again, to see whether their outputs are the same."""

ELSEWHERE = Outcome(raised="NotImplementedError", message="its outputs are wrong there")
"""What stands for calls that say nothing of what a kernel does where it is right."""

ELEMENTS = 2560
"""Of each call: rows are as many as that gives, and at least 8."""


def diagnoser(
    execute: Execute, settings: Claim
) -> Callable[[Sequence[Call], Sequence[Outcome]], Diagnosis]:
    """What `examine` takes as `diagnose`, for whatever answers more calls than those judged."""

    def diagnose(calls: Sequence[Call], outcomes: Sequence[Outcome]) -> Diagnosis:
        return diagnosis(identified(execute, settings, calls, outcomes))

    return diagnose


def identified(
    execute: Execute, settings: Claim, calls: Sequence[Call], outcomes: Sequence[Outcome]
) -> list[Identified]:
    """The plans nearest to a kernel, asked at sizes and eps that it takes; none if it takes none.

    Parameters
    ----------
    execute
        From inputs to an outcome.
    settings
        What the kernel claims.
    calls, outcomes
        What it was asked before, and what came of it.
    """
    answered: list[Answered] = []
    biased = not settings.norm.centred or any(
        call.inputs.bias is not None and outcome.y is not None
        for call, outcome in zip(calls, outcomes, strict=True)
    )
    for sizes in (_sizes(calls, outcomes), _taken(calls, outcomes)):
        for inputs in make_queries(
            settings.norm,
            settings.format,
            settings.weight_format,
            sizes=sizes,
            eps=settings.eps[:2],
            weight_offset=settings.weight_offset,
            biased=biased,
        ):
            y = execute(inputs).y
            if y is not None:
                answered.append(Answered(inputs, y))
        if answered:
            return answer(
                answered,
                weight_offset=settings.weight_offset,
                output_format=settings.output_format,
            )
    return []


def failing(
    diagnose: Diagnose,
    execute: Execute,
    session: Session,
) -> Diagnosis:
    """What is known of a kernel with wrong outputs.

    Parameters
    ----------
    diagnose
        Looks for the plan behind calls.
    execute
        From inputs to an outcome.
    session
        The run.
    """
    calls, outcomes, wrong = session.calls, session.outcomes, session.wrong
    if any(_moody(execute, calls[i], outcomes[i]) for i in list(session.rejected)[:REPEATED]):
        told = "its outputs differ from call to call"
        return Diagnosis(None, told, told)
    judged = {i for i, outcome in enumerate(outcomes) if outcome.y is not None}
    found = clue(calls, judged, wrong)
    if found is not None and found.sizes:
        # As if it refused the others: the plan is looked for at sizes where it is right.
        part = diagnose(
            calls,
            [
                outcome if found.right(call) else ELSEWHERE
                for call, outcome in zip(calls, outcomes, strict=True)
            ],
        )
        if part.plan is not None and not part.fault:
            told = f"{found.told}; where it is right, its outputs are those of {part.plan}"
            return Diagnosis(None, told, found.told)
    known = diagnose(calls, outcomes)
    if known.fault:
        return known
    if found is not None:
        told = found.told if known.plan else f"{found.told}; {known.told}"
        return Diagnosis(None, told.removesuffix("; "), found.told)
    if not wrong:
        told = "each call is right by itself, but no one rounding schedule explains all of them"
        return Diagnosis(None, told, told)
    if known.plan:
        told = f"on short ordinary rows its outputs are those of {known.plan}, on others not"
        return Diagnosis(None, told)
    return known


def _moody(execute: Execute, call: Call, outcome: Outcome) -> bool:
    """Whether a call made again gives other bits."""
    again = execute(call.inputs).bits
    return (
        again is not None and outcome.bits is not None and again.tobytes() != outcome.bits.tobytes()
    )


def _sizes(calls: Sequence[Call], outcomes: Sequence[Outcome]) -> Mapping[int, int]:
    """The sizes of identification, or where the kernel shows limits two that it takes."""
    refused = {
        call.hidden for call, outcome in zip(calls, outcomes, strict=True) if outcome.refused
    }
    limited = refused - _answered(calls, outcomes)
    return _taken(calls, outcomes) if limited else SIZES


def _taken(calls: Sequence[Call], outcomes: Sequence[Outcome]) -> Mapping[int, int]:
    """Two sizes that it takes: all there are where it declared one."""
    known = sorted(_answered(calls, outcomes))[:2]
    return {n: max(8, ELEMENTS // n) for n in known}


def _answered(calls: Sequence[Call], outcomes: Sequence[Outcome]) -> set[int]:
    return {
        call.hidden
        for call, outcome in zip(calls, outcomes, strict=True)
        if outcome.y is not None and call.rows and call.hidden > 1
    }


def diagnosis(found: Sequence[Identified]) -> Diagnosis:
    """What a verdict says of the plan behind the outputs."""
    if not found:
        return Diagnosis(None)
    best = found[0]
    why = f": {'; '.join(best.faults)}" if best.faults else ""
    if best.exact:
        others = f" ({', '.join(best.known[:4])})" if len(best.known) > 1 else ""
        told = f"its outputs are those of {best.name}"
        fault = f"{'; '.join(best.faults)} ({told})" if best.faults else ""
        return Diagnosis(best.name, f"{told}{others}{why}", fault)
    share = f"{best.share:.2%} of {best.compared:,} outputs"
    if best.share < LIKELY:
        return Diagnosis(None, f"no plan gives its outputs; the nearest gives {share}")
    if near := rivals(found):
        names = " or ".join(f"{one.name} ({one.share:.2%})" for one in near)
        return Diagnosis(None, f"no plan gives its outputs; it is something like {names}")
    return Diagnosis(None, f"no plan gives its outputs; {best.name} gives {share}{why}")
