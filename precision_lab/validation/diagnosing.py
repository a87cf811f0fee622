# SPDX-License-Identifier: Apache-2.0
"""The plan behind a kernel, looked for once its calls are judged."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from precision_lab.identification import (
    SIZES,
    Identified,
    KernelAnswer,
    answer,
    make_queries,
)
from precision_lab.kernels.running import Outcome
from precision_lab.validation.common_causes import common_causes, suspected_causes
from precision_lab.validation.rule_trials import Trials, tried_cause
from precision_lab.validation.verdict import Diagnosis
from precision_lab.validation.wrong_places import wrong_places

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from precision_lab.kernels.running import Claim
    from precision_lab.norm import Inputs
    from precision_lab.validation.calls import Call
    from precision_lab.validation.session import Session

    Execute = Callable[[Inputs], Outcome]
    Diagnose = Callable[[Sequence[Call], Sequence[Outcome]], Diagnosis]

REPEATED = 2
"""Failing calls that are made again, to compare their outputs."""

WRONG_THERE = Outcome(raised="NotImplementedError", message="its outputs are wrong there")
"""What stands for calls that say nothing of what a kernel does where it is right."""

LONGEST = 512
"""Elements of a row at most from which a plan is looked for where a kernel takes shorter rows."""

ELEMENTS = 2560
"""Of each call: rows are as many as that gives, and at least 8."""


def diagnoser(execute: Execute, claim: Claim, *, chosen: bool = False) -> Diagnose:
    """What `examine` takes as `diagnose`, for whatever answers more calls than those judged.

    Parameters
    ----------
    execute, claim
        As for `nearest_plans`.
    chosen
        Whether someone chose the hidden sizes of the run: then the plan is looked for at those.
    """

    def diagnose(calls: Sequence[Call], outcomes: Sequence[Outcome]) -> Diagnosis:
        return diagnosis(nearest_plans(execute, claim, calls, outcomes, chosen=chosen))

    return diagnose


def nearest_plans(
    execute: Execute,
    claim: Claim,
    calls: Sequence[Call],
    outcomes: Sequence[Outcome],
    *,
    chosen: bool = False,
) -> list[Identified]:
    """The plans nearest to a kernel, from sizes and eps that it takes; none if it takes none.

    Parameters
    ----------
    execute
        From inputs to an outcome.
    claim
        What the kernel claims.
    calls, outcomes
        The run, whose outcomes show what it takes.
    chosen
        Whether its sizes are to be taken, where some are short enough (`LONGEST`).
    """
    answered: list[KernelAnswer] = []
    taken = {
        name
        for call, outcome in zip(calls, outcomes, strict=True)
        for name in ("weight", "bias")
        if outcome.y is not None and getattr(call.inputs, name) is not None
    }
    for sizes in (_sizes(calls, outcomes, chosen=chosen), _answered_sizes(calls, outcomes)):
        for inputs in make_queries(
            claim.norm,
            claim.format,
            claim.weight_format,
            sizes=sizes,
            eps=claim.eps[:2],
            weight_offset=claim.weight_offset,
            biased="bias" in taken,
            weighted="weight" in taken,
        ):
            y = execute(inputs).y
            if y is not None:
                answered.append(KernelAnswer(inputs, y))
        if answered:
            return answer(
                answered,
                weight_offset=claim.weight_offset,
                output_format=claim.output_format,
            )
    return []


def diagnose_failure(
    diagnose: Diagnose,
    execute: Execute,
    session: Session,
) -> Diagnosis:
    """What is known of a kernel with wrong outputs.

    A fault is reported where a plan with that fault gives all outputs, where wrong outputs lie in a
    part of each row or batch alone, or where a rule separates wrong calls from right ones and holds
    in further calls, too. Else no known fault fits, and that is what is reported.

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
    if any(_varies(execute, calls[i], outcomes[i]) for i in list(session.rejected)[:REPEATED]):
        sentence = "its outputs differ from call to call"
        return Diagnosis(None, sentence, sentence)
    judged = {i for i, outcome in enumerate(outcomes) if outcome.y is not None}
    trials = Trials(execute, session)
    places = wrong_places(trials)
    if any(places):
        # Of many rows, some are wrong: they are no plan's.
        plan = None if places.rows else diagnose(calls, outcomes).plan
        on = f"; on short ordinary rows its outputs are those of {plan}" if plan else ""
        return Diagnosis(None, f"{places}{on}", str(places))
    causes = common_causes(calls, judged, wrong), suspected_causes(calls, judged, wrong)
    cause = tried_cause(chain(*causes), trials)
    if cause is not None and cause.sizes:
        # As if it refused the others: the plan is looked for at sizes where it is right.
        more = [t for t in trials.made if t.rejection is None and t.call.hidden <= LONGEST]
        part = diagnose(
            [*calls, *(trial.call for trial in more)],
            [
                *(
                    outcome if cause.right(call) and call.hidden <= LONGEST else WRONG_THERE
                    for call, outcome in zip(calls, outcomes, strict=True)
                ),
                *(trial.outcome for trial in more),
            ],
        )
        if part.plan is not None and not part.fault:
            sentence = f"{cause.sentence}; where it is right, its outputs are those of {part.plan}"
            return Diagnosis(None, sentence, cause.sentence)
    known = diagnose(calls, outcomes)
    if known.fault:
        return known
    if cause is not None:
        return Diagnosis(None, cause.sentence, cause.sentence)
    if not wrong:
        sentence = "each call is right by itself, but no one rounding schedule explains all of them"
        return Diagnosis(None, sentence, sentence)
    if known.plan:
        return Diagnosis(
            None, f"on short ordinary rows its outputs are those of {known.plan}, on others not"
        )
    return Diagnosis(None, f"no known fault fits: {known.sentence}") if known.sentence else known


def _varies(execute: Execute, call: Call, outcome: Outcome) -> bool:
    """Whether a call made again gives other bits."""
    again = execute(call.inputs).bits
    return (
        again is not None and outcome.bits is not None and again.tobytes() != outcome.bits.tobytes()
    )


def _sizes(
    calls: Sequence[Call], outcomes: Sequence[Outcome], *, chosen: bool
) -> Mapping[int, int]:
    """The sizes of identification, or two of the run: of a chosen one, or that the kernel takes."""
    answered = _answered_sizes(calls, outcomes)
    if chosen and (short := {n: rows for n, rows in answered.items() if n <= LONGEST}):
        return short
    refused = {
        call.hidden for call, outcome in zip(calls, outcomes, strict=True) if outcome.refused
    }
    limited = refused - _hidden_sizes(calls, outcomes)
    return answered if limited else SIZES


def _answered_sizes(calls: Sequence[Call], outcomes: Sequence[Outcome]) -> Mapping[int, int]:
    """Two sizes that it takes: all there are where it declared one."""
    few = sorted(_hidden_sizes(calls, outcomes))[:2]
    return {n: max(8, ELEMENTS // n) for n in few}


def _hidden_sizes(calls: Sequence[Call], outcomes: Sequence[Outcome]) -> set[int]:
    """Of the calls that it answered."""
    return {
        call.hidden
        for call, outcome in zip(calls, outcomes, strict=True)
        if outcome.y is not None and call.rows and call.hidden > 1
    }


def diagnosis(plans: Sequence[Identified]) -> Diagnosis:
    """What a verdict says of the plan behind the outputs.

    A plan and its faults are named only where it gives all outputs, bit for bit. Plans that give 58
    or 96 % of them are as often as not of another kind than the kernel: their names would mislead.
    """
    if not plans:
        return Diagnosis()
    best = plans[0]
    why = f": {'; '.join(best.faults)}" if best.faults else ""
    if best.exact:
        others = f" ({', '.join(best.known[:4])})" if len(best.known) > 1 else ""
        sentence = f"its outputs are those of {best.name}"
        fault = f"{'; '.join(best.faults)} ({sentence})" if best.faults else ""
        return Diagnosis(best.name, f"{sentence}{others}{why}", fault)
    share = f"{min(best.share, 0.9999):.2%}".replace("%", " %")
    return Diagnosis(
        None, f"no plan gives all outputs; the nearest gives {share} of {best.compared:,}"
    )
