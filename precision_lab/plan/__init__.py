# SPDX-License-Identifier: Apache-2.0
"""How is a norm computed? `plans` has a row for each known implementation, and `emulate` runs one.

It must not know where inputs come from, nor call an implementation.
"""

from __future__ import annotations

from precision_lab.plan.applicability import can_run, computes, steps_of
from precision_lab.plan.emulation import Moments, Run, Step, emulate
from precision_lab.plan.plan import SWITCHES, Plan, scaled_eps
from precision_lab.plan.step_table import Account, Steps, steps
from precision_lab.plan.switch_words import words
from precision_lab.plan.switches import CHOICES, FORMAT_SWITCHES, checked
from precision_lab.plan.table import DEFINITION, plans

__all__ = [
    "CHOICES",
    "DEFINITION",
    "FORMAT_SWITCHES",
    "SWITCHES",
    "Account",
    "Moments",
    "Plan",
    "Run",
    "Step",
    "Steps",
    "can_run",
    "checked",
    "computes",
    "emulate",
    "plans",
    "scaled_eps",
    "steps",
    "steps_of",
    "words",
]
