# SPDX-License-Identifier: Apache-2.0
"""The plan behind a kernel, looked for once its calls are judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from precision_lab.identify import LIKELY, Identified, answer, rivals
from precision_lab.identify.calls import SIZES, questions
from precision_lab.identify.calls import Call as Answered
from precision_lab.validate.verdict import Diagnosis

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from precision_lab.norms import Inputs
    from precision_lab.validate.calls import Call
    from precision_lab.validate.running import Outcome
    from precision_lab.validate.settings import Settings

    Execute = Callable[[Inputs], Outcome]

ELEMENTS = 2560
"""Of each call: rows are as many as that gives, and at least 8."""


def diagnoser(
    execute: Execute, settings: Settings
) -> Callable[[Sequence[Call], Sequence[Outcome]], Diagnosis]:
    """What `examine` takes as `diagnose`, for whatever answers more calls than those judged."""

    def diagnose(calls: Sequence[Call], outcomes: Sequence[Outcome]) -> Diagnosis:
        return diagnosis(identified(execute, settings, calls, outcomes))

    return diagnose


def identified(
    execute: Execute, settings: Settings, calls: Sequence[Call], outcomes: Sequence[Outcome]
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
        for inputs in questions(
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
        return Diagnosis(best.name, f"its outputs are those of {best.name}{others}{why}")
    share = f"{best.share:.2%} of {best.compared:,} outputs"
    if best.share < LIKELY:
        return Diagnosis(None, f"no plan gives its outputs; the nearest gives {share}")
    if near := rivals(found):
        names = " or ".join(f"{one.name} ({one.share:.2%})" for one in near)
        return Diagnosis(None, f"no plan gives its outputs; it is something like {names}")
    return Diagnosis(None, f"no plan gives its outputs; {best.name} gives {share}{why}")
