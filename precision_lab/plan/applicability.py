# SPDX-License-Identifier: Apache-2.0
"""Which combinations of a plan make sense: its norms, the formats it runs in, the steps it has."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from precision_lab.exceptions import InputError
from precision_lab.numbers import formats
from precision_lab.plan.program import program_of

if TYPE_CHECKING:
    from precision_lab.plan.plan import Plan


def computes(plan: Plan, norm: str) -> bool:
    """Whether a plan is one for a norm."""
    try:
        plan.norm_for(norm)
    except InputError:
        return False
    return True


def can_run(plan: Plan, format: str) -> bool:
    """Whether every format that the plan computes in has a NaN, to say that a value left it.

    An output of another format saturates; arithmetic in one would stop at the first overflow.
    """
    used = {plan.compute_format, plan.square_format, plan.sum_format, plan.reciprocal_format}
    # The gain is multiplied in the output's format.
    used |= {plan.output_format} if plan.cast != "late" else set()
    return all(formats[name if name in formats else format].nan for name in used)


@cache
def steps_of(plan: Plan, norm: str, gain: bool, bias: bool) -> frozenset[str]:  # noqa: FBT001
    """The steps that a plan has, where a gain and a bias are given and where they are not."""
    settled = plan.formats_for("float32", "float32")
    return program_of(settled, settled.norm_for(norm), gain=gain, bias=bias).steps
