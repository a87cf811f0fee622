# SPDX-License-Identifier: Apache-2.0
"""What a sweep's run comes to: how many cases it measured, and which plans and kernels failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from precision_lab.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from precision_lab.sweeps.case import Case


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """What a run came to.

    Parameters
    ----------
    cases
        Of the whole sweep.
    wanted
        Of the shard; all cases where there is one only.
    before, measured, elsewhere
        How many of those wanted were finished at the start, were measured by this run, and by
        others meanwhile.
    sweep
        What identifies the sweep.
    """

    cases: int
    wanted: int
    before: int
    measured: int
    elsewhere: int
    sweep: str


@dataclass(frozen=True, kw_only=True)
class FailedCases:
    """The cases of one plan or kernel that could not be measured.

    Parameters
    ----------
    name, kind
        Of the plan or the kernel: ``plan`` or ``kernel``.
    cases
        How many of its cases failed.
    first, error
        The first of them, in words, and what went wrong in it.
    crashed
        Whether one of them ended or held up its process, or this package failed; else each kernel
        raised, or gave what is no output.
    """

    name: str
    kind: str
    cases: int
    first: str
    error: str
    crashed: bool


class CaseError(RuntimeError):
    """Some cases could not be measured; the rows of all others are saved.

    `failed` has each plan and kernel once.
    """

    def __init__(
        self, message: str, failed: tuple[FailedCases, ...] = (), run: RunSummary | None = None
    ):
        super().__init__(message)
        self.failed = failed
        self.run = run


class KernelError(CaseError, InputError):
    """Kernels raised or gave what is no output; the rows of all other cases are saved."""


def case_error(
    replies: Sequence[dict[str, Any]], cases: Mapping[int, Case], done: RunSummary
) -> CaseError:
    """What is raised of cases that failed: each plan and kernel once, in the sweep's order.

    `replies` are those of the cases, each with ``position``, ``error`` and ``bad_input``; `cases`
    are all that were wanted, by position.
    """
    by_name: dict[str, list[dict[str, Any]]] = {}
    for reply in sorted(replies, key=lambda reply: int(reply["position"])):
        by_name.setdefault(cases[reply["position"]].name, []).append(reply)
    failed = tuple(
        FailedCases(
            name=name,
            kind="kernel" if cases[replies_of_one[0]["position"]].kernel else "plan",
            cases=len(replies_of_one),
            first=cases[replies_of_one[0]["position"]].text,
            error=replies_of_one[0]["error"],
            crashed=not all(reply["bad_input"] for reply in replies_of_one),
        )
        for name, replies_of_one in by_name.items()
    )
    which = f"the first is {failed[0].first}: {failed[0].error}"
    if len(failed) > 1:
        each = "; ".join(f"{one.name} ({one.cases}): {one.error}" for one in failed)
        which = f"those of {each}"
    message = (
        f"{len(replies)} of {len(cases)} cases could not be measured, the others are saved; {which}"
    )
    kind = CaseError if any(one.crashed for one in failed) else KernelError
    return kind(message, failed, done)
