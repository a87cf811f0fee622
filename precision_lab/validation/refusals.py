# SPDX-License-Identifier: Apache-2.0
"""Limits that a kernel shows: what it refuses wherever it is asked for is no fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from precision_lab.kernels.running import Outcome
    from precision_lab.validation.calls import Call

TRAITS: tuple[tuple[str, Callable[[Call], object]], ...] = (
    ("no rows", lambda call: call.rows == 0),
    ("a weight", lambda call: call.inputs.weight is not None),
    # Before "no weight": where all calls without a weight have a bias, that is what is refused.
    ("a bias", lambda call: call.inputs.bias is not None),
    ("no weight", lambda call: call.inputs.weight is None),
    ("no bias", lambda call: call.inputs.bias is None),
)
"""What calls may have in common, beside their sizes and eps."""


def unsupported(calls: Sequence[Call], outcomes: Sequence[Outcome]) -> tuple[list[str], set[int]]:
    """What the kernel does not take, and the numbers of the calls that were refused for it.

    A trait is not supported where every call that has it raised an error by which arguments are
    refused, and some call without it was answered.

    Parameters
    ----------
    calls, outcomes
        A run, call by call.
    """
    refused = {i for i, outcome in enumerate(outcomes) if outcome.refused}
    limits: list[str] = []
    covered: set[int] = set()
    if not refused or len(refused) == len(calls):
        return limits, covered

    def always_refused(having: set[int]) -> bool:
        return bool(having) and having <= refused and bool(having - covered)

    for name, trait in TRAITS:
        having = {i for i, call in enumerate(calls) if trait(call)}
        if always_refused(having):
            limits.append(f"{name} ({_reason(outcomes, having - covered)})")
            covered |= having
    sizes = _by_value(calls, lambda call: call.hidden)
    lost = {size: having for size, having in sizes.items() if always_refused(having - covered)}
    if lost:
        taken = sorted(set(sizes) - set(lost))
        reason = _reason(outcomes, set.union(*lost.values()))
        limits.append(f"{_size_rule(sorted(lost), taken)} ({reason})")
        covered |= set.union(*lost.values())
    for kind, trait in (("eps", lambda call: call.inputs.eps), ("rows", lambda call: call.rows)):
        for value, having in _by_value(calls, trait).items():
            if always_refused(having - covered):
                limits.append(f"{kind} {value:g} ({_reason(outcomes, having)})")
                covered |= having
    return limits, covered & refused


def without_refused(calls: Sequence[Call], outcomes: Sequence[Outcome]) -> list[Call]:
    """Refused calls again, without the weight or bias that no call was answered with.

    A norm may have neither: then its rows are judged all the same.

    Parameters
    ----------
    calls, outcomes
        A run, call by call.
    """
    refused = [call for call, one in zip(calls, outcomes, strict=True) if one.refused]
    answered = [call for call, one in zip(calls, outcomes, strict=True) if one.bits is not None]
    lacking = [
        name for name in ("weight", "bias")
        if not any(getattr(call.inputs, name) is not None for call in answered)
    ]  # fmt: skip
    absent = (
        (call, [name for name in lacking if getattr(call.inputs, name) is not None])
        for call in refused
    )
    return [call.without(names) for call, names in absent if names]


def _by_value(calls: Sequence[Call], trait: Callable[[Call], float]) -> dict[float, set[int]]:
    numbers: dict[float, set[int]] = {}
    for i, call in enumerate(calls):
        numbers.setdefault(trait(call), set()).add(i)
    return numbers


def _size_rule(lost: list[float], taken: list[float]) -> str:
    """Which hidden sizes are refused, as a rule where there is one."""
    if len(taken) == 1:
        return f"hidden sizes other than {taken[0]:g}"
    for step in (1024, 512, 256, 128, 64, 32, 16, 8, 4, 2):
        if all(n % step == 0 for n in taken) and all(n % step for n in lost):
            return f"hidden sizes that are no multiple of {step}"
    if taken and min(lost) > max(taken):
        return f"hidden sizes above {max(taken):g}"
    if taken and max(lost) < min(taken):
        return f"hidden sizes below {min(taken):g}"
    return "hidden " + ", ".join(f"{n:g}" for n in lost)


def _reason(outcomes: Sequence[Outcome], having: set[int]) -> str:
    first = next((outcomes[i] for i in sorted(having) if outcomes[i].raised), None)
    return "" if first is None else f"{first.raised}: {first.message}"
