# SPDX-License-Identifier: Apache-2.0
"""The plan behind a kernel that is opened, here or in a process of its own."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from precision_lab.exceptions import InputError
from precision_lab.identification.closest_plan import Identified, answer
from precision_lab.identification.queries import (
    EPS,
    SIZES,
    KernelAnswer,
    make_queries,
    rows_by_size,
)
from precision_lab.kernels.running import DEFAULT_EPS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from precision_lab.kernels.running import Claim, Outcome, Runnable

OTHERS = (64, 128, 768, 1024, 4096, 5120)
"""Sizes that are tried, one after another, where a kernel refuses the usual ones."""


def identify_running_kernel(
    tool: Runnable, settings: Claim, *, hidden: Sequence[int] | None = None
) -> list[Identified]:
    """The plans nearest to a kernel, best first.

    Parameters
    ----------
    tool, settings
        The kernel and what it claims.
    hidden
        Elements of a row; by default what is fixed in the kernel, or else sizes that tell plans
        apart.

    Raises
    ------
    InputError
        It answered no call; or a size is none.
    """
    if hidden is not None and (not hidden or min(hidden) < 1):
        raise InputError(f"hidden is {list(hidden)}: give sizes, 1 or more, such as 40")
    if hidden is None and tool.declared.hidden is not None:
        hidden = [tool.declared.hidden]
    tries = [SIZES, *(rows_by_size([n]) for n in OTHERS)]
    if hidden is not None:
        tries = [rows_by_size(hidden)]
    last: Outcome | None = None
    # One that refuses a bias is asked without, and then without a weight.
    affine = [(True, True), (True, False), (False, False)][not settings.norm.centred :]
    for sizes, (weighted, biased) in itertools.product(tries, affine):
        calls = []
        for inputs in make_queries(
            settings.norm,
            settings.format,
            settings.weight_format,
            sizes=sizes,
            # More would take longer and tell no more.
            eps=EPS if settings.eps == DEFAULT_EPS else settings.eps,
            weight_offset=settings.weight_offset,
            biased=biased,
            weighted=weighted,
        ):
            outcome = tool.run(inputs, settings)
            if outcome.y is None:
                last = outcome
            else:
                calls.append(KernelAnswer(inputs, outcome.y))
        if calls:
            return answer(
                calls, weight_offset=settings.weight_offset, output_format=settings.output_format
            )
        if last is not None and not last.refused:
            break
    raise InputError(f"{tool.name} answered no call: {describe_failure(last)}")


def describe_failure(outcome: Outcome | None) -> str:
    """Why there are no outputs."""
    if outcome is None:
        return "none was made"
    if outcome.raised:
        return f"it raised {outcome.raised}: {outcome.message}"
    return outcome.findings[-1][1] if outcome.findings else "it gave no outputs"
