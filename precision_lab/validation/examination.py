# SPDX-License-Identifier: Apache-2.0
"""Is this kernel right? Its outputs against what a sound computation can give, or a plan."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from precision_lab.exceptions import InputError
from precision_lab.kernels.running import TIME_LIMIT, Claim, Outcome, open_kernel
from precision_lab.processes import check_arithmetic
from precision_lab.validation.calls import Call, capture_calls, default_calls
from precision_lab.validation.diagnosing import diagnose_failure, diagnoser
from precision_lab.validation.failures import Failure, only_side_effects
from precision_lab.validation.measuring import powers, spreads
from precision_lab.validation.power_notes import notes
from precision_lab.validation.property_table import Bench, properties
from precision_lab.validation.session import Session
from precision_lab.validation.standards import OnePlan, Sound, standard
from precision_lab.validation.verdict import Diagnosis, Unjudged, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from precision_lab.inputs import Capture
    from precision_lab.kernels import Kernel
    from precision_lab.norm import Inputs, Norm
    from precision_lab.numbers import Format
    from precision_lab.plan import Plan
    from precision_lab.validation.probe_table import Probe


SATURATES = "its last cast saturates, and all else is sound: give --overflow saturate"


def validate(
    kernel: Kernel | Callable[..., Any] | str,
    *,
    norm: Norm | str | None = None,
    format: Format | str | None = None,
    eps: float | Iterable[float] | None = None,
    weight_offset: float | None = None,
    weight_format: Format | str | None = None,
    output_format: Format | str | None = None,
    overflow: str = "ieee",
    plan: Plan | str | None = None,
    bits: bool | None = None,
    hidden: Iterable[int] | None = None,
    rows: Iterable[int] | None = None,
    probes: Iterable[Probe | str] | None = None,
    inputs: Capture | None = None,
    require: Iterable[str] = (),
    seed: int = 1,
    name: str | None = None,
    framework: str = "numpy",
    device: str = "cpu",
    isolate: bool = False,
    time_limit: float = TIME_LIMIT,
    diagnose: bool | Literal["failures"] = True,
) -> Verdict:
    """Judge a kernel, with no tolerance guessed.

    Parameters
    ----------
    kernel
        kernel(x, weight, bias, eps) -> y: x is [rows, hidden] of the format's array type, weight
        and bias are [hidden] or None; it returns y, or a dict that holds ``"y"``. Or a `Kernel`,
        or what `find_kernel` finds one by: ``"file.py:function"``, ``"package.module:function"``,
        the name of a plan.
    norm
        ``"rms"`` or ``"layer"``; by default the kernel's own where it has one, else ``"rms"``.
    format, weight_format, output_format
        Of x, bfloat16 by default; of weight and bias, and of y, by default the same.
    eps
        The values that it is tried with: 1e-6, 1e-5 and 1e-12 by default. What is fixed in the
        kernel and declared by it comes before these defaults.
    weight_offset
        Added to the weight to give the gain: 1 for kernels that store g − 1. By default what the
        kernel declares, 0 for a function.
    overflow
        What its last cast does past the largest value: ``"ieee"`` or ``"saturate"``.
    plan
        A plan or its name: then that plan is the standard, and not all sound computations.
    bits
        Whether the plan's bits are asked for, or its bound; by default its bits where its order of
        summation is known.
    hidden, rows, probes
        Sizes and rows of `precision_lab.validation.probe_table.probes` to be tried instead of all.
    inputs
        A capture, whose rows are tried too.
    require
        Names of properties that it must have.
    seed
        Of the inputs.
    name
        Of the kernel, for the verdict; by default the function's own.
    framework, device
        ``"torch"`` has it called with tensors, ``"jax"`` with JAX's arrays, on ``"cpu"`` or
        ``"cuda"``.
    isolate
        Whether it is called in a process of its own, so that it may hang and crash. Another process
        must be able to import it.
    time_limit
        Seconds that a call may take there; in this process nothing can stop one.
    diagnose
        Whether the plan behind the outputs is looked for, which takes longer than the judging: a
        second for an RMSNorm, four for a LayerNorm. Without it the verdict's plan is None.
        ``"failures"`` looks for it only where something is wrong.

    Returns
    -------
    Verdict
        Its string is the verdict in words, one sentence first.

    Raises
    ------
    InputError
        For arguments that name nothing or do not fit each other. What the kernel does is never an
        error, but a finding of the verdict.

    Examples
    --------
    >>> from precision_lab import emulate
    >>> def kernel(x, weight, bias, eps):
    ...     return emulate(x, weight, bias, eps=eps, plan="late")
    >>> validate(kernel, hidden=[3, 64], probes=["normal", "exact"]).schedule
    'late/direct'
    """
    if not (isinstance(diagnose, bool) or diagnose == "failures"):
        raise InputError(f"diagnose is {diagnose!r}: give True, False or 'failures'")
    with open_kernel(
        kernel, norm=norm, framework=framework, device=device, isolate=isolate,
        time_limit=time_limit,
    ) as tool:  # fmt: skip
        claim = Claim.of(
            tool, norm=norm, format=format, weight_format=weight_format,
            output_format=output_format, eps=eps, weight_offset=weight_offset, overflow=overflow,
            seed=seed,
        )  # fmt: skip
        fixed = tool.declared.hidden
        sizes = [fixed] if hidden is None and fixed is not None else hidden
        calls = default_calls(claim, hidden=sizes, rows=rows, chosen=probes)
        if inputs is not None:
            calls += capture_calls(claim, inputs)

        def execute(asked: Inputs) -> Outcome:
            return tool.run(asked, claim)

        verdict = examine(
            execute,
            claim,
            calls,
            name=name or tool.name,
            plan=plan,
            bits=bits,
            require=require,
            diagnose=diagnoser(execute, claim, chosen=hidden is not None) if diagnose else None,
            diagnose_sound=diagnose is True,
        )
        limits = (*tool.declared.limits, *verdict.unsupported)
        remarks = (*filter(None, [tool.declared.note]), *verdict.notes)
        return dataclasses.replace(verdict, unsupported=limits, notes=remarks)


def examine(
    execute: Callable[[Inputs], Outcome],
    claim: Claim,
    calls: Sequence[Call],
    *,
    name: str,
    plan: Plan | str | None = None,
    bits: bool | None = None,
    require: Iterable[str] = (),
    diagnose: Callable[[Sequence[Call], Sequence[Outcome]], Diagnosis] | None = None,
    diagnose_sound: bool = True,
) -> Verdict:
    """Judge whatever answers calls: a function here, or a kernel in a process of its own.

    Parameters
    ----------
    execute
        From a call's inputs to its outcome. It is called again to shrink what fails.
    claim, calls
        What the kernel claims, and the calls to be made, in order.
    name, plan, bits, require
        As for `validate`.
    diagnose
        Asked for the plan behind the outputs, once all calls are made.
    diagnose_sound
        Whether it is asked where nothing is wrong, too.

    Raises
    ------
    InputError
        This process rounds otherwise than to nearest, or flushes subnormal numbers.
    """
    check_arithmetic()
    names = [require] if isinstance(require, str) else require
    required = [properties.find(one).name for one in names]
    against = standard(claim, plan, bits=bits)
    session = Session(claim, execute, against, calls)
    session.run()
    calls = session.calls
    failures, unsupported = session.conclude()
    sound = against if isinstance(against, Sound) else None
    judged = session.judged > 0
    ordinary = session.ordinary
    none = np.zeros(0)
    bench = Bench(
        claim, execute, calls, session.outcomes,
        errors=np.concatenate([e for e, _ in ordinary]) if ordinary else none,
        signs=np.concatenate([s for _, s in ordinary]) if ordinary else none,
        flushes=None if sound is None else sound.narrowest.flushes,
    )  # fmt: skip
    measured = {
        row.name: row.measure(bench)
        for row in properties.values()
        if judged and (row.free or row.name in required)
    }
    if "ties" not in required and "ties" in measured and measured["ties"].holds is None:
        # Not required, and nothing was measured.
        del measured["ties"]
    failures += tuple(
        Failure(kind="property", probe="", message=f"{one} is required, and {row.sentence}")
        for one in required
        if (row := measured.get(one)) and not row.holds
    )
    if isinstance(against, OnePlan):
        exact = not failures and against.equal == against.total
        known = Diagnosis(against.plan.name if exact else None)
    elif sound is not None and session.explained_if_it_saturates():
        known = Diagnosis(None, SATURATES, SATURATES)
    elif diagnose is not None and session.rejected:
        known = diagnose_failure(diagnose, execute, session)
    elif diagnose is not None and judged and (failures or diagnose_sound):
        known = diagnose(calls, session.outcomes)
    else:
        known = Diagnosis()
    fault = known.fault
    if failures and not session.rejected and only_side_effects(failures, session.outcomes):
        fault = f"its numbers are right, but {failures[0].message}"
    unjudged = Unjudged() if sound is None else sound.evidence.of(sound.narrowest)
    explained = session.outputs > unjudged.outputs and not session.rejected
    return Verdict(
        kernel=name,
        claim=claim,
        failures=failures,
        schedule=sound.narrowest.name if sound and explained else None,
        schedules=tuple(dict.fromkeys(h.name for h in sound.alive)) if sound and explained else (),
        plan=known.plan,
        diagnosis=known.sentence,
        fault=fault,
        power=powers(calls, session.outcomes, claim, sound.narrowest) if sound else (),
        unsupported=unsupported,
        properties=measured,
        notes=notes(calls, session.outcomes, claim, sound.narrowest) if sound else (),
        errors=spreads(session.errors),
        calls=session.judged,
        outputs=session.outputs - unjudged.outputs,
        unjudged=unjudged,
        tried=session.tried,
        standard=against.plan.name if isinstance(against, OnePlan) else None,
    )
