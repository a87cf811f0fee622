# SPDX-License-Identifier: Apache-2.0
"""How is a norm computed? `plans` has a row for each known implementation, and `emulate` runs one.

It must not know where inputs come from, nor call an implementation.
"""

from __future__ import annotations

from precision_lab.plan.a_priori import bound, bound_terms
from precision_lab.plan.applicability import can_run, computes, steps_of
from precision_lab.plan.emulation import Emulation, Step, emulate
from precision_lab.plan.eps_places import (
    EPS_PLACES,
    EPS_RULES,
    EpsPlace,
    grows_past,
    growth,
    shrinks,
    shrinks_past,
)
from precision_lab.plan.plan import SWITCHES, Plan, scaled_eps
from precision_lab.plan.program import EXACT, STEPS, Op, Program, program_of
from precision_lab.plan.step_table import Account, Steps, steps
from precision_lab.plan.switches import (
    CHOICES,
    FORMAT_SWITCHES,
    OPEN_FORMATS,
    checked,
    meaning,
)
from precision_lab.plan.table import DEFINITION, plans

__all__ = [
    "CHOICES",
    "DEFINITION",
    "EPS_PLACES",
    "EPS_RULES",
    "EXACT",
    "FORMAT_SWITCHES",
    "OPEN_FORMATS",
    "STEPS",
    "SWITCHES",
    "Account",
    "Emulation",
    "EpsPlace",
    "Op",
    "Plan",
    "Program",
    "Step",
    "Steps",
    "bound",
    "bound_terms",
    "can_run",
    "checked",
    "computes",
    "emulate",
    "grows_past",
    "growth",
    "meaning",
    "plans",
    "program_of",
    "scaled_eps",
    "shrinks",
    "shrinks_past",
    "steps",
    "steps_of",
]
