# SPDX-License-Identifier: Apache-2.0
"""A Hypothesis strategy for plans with any switches."""

from __future__ import annotations

from hypothesis import strategies as st

from precision_lab.exceptions import InputError
from precision_lab.plan.switches import CHOICES, FOLDED, FORMAT_SWITCHES, ONE_PASS, SHIFTED
from precision_lab.plan.table import plans

FORMATS = ("float32", "bfloat16", "float16", "float8_e4m3fn")
OUTPUTS = ("float16", "bfloat16")


@st.composite
def random_plans(draw, formats=FORMATS, outputs=OUTPUTS, orders=("pairwise",)):
    """A plan with any switches that do not contradict each other, formats mixed."""
    switches = {switch: draw(st.sampled_from(values)) for switch, values in CHOICES.items()}
    if switches["apply"] in FOLDED:
        switches |= {"cast": "late", "bias": "after_gain"}
    if switches["apply"] in SHIFTED and switches["inverse"] == "divide":
        switches["inverse"] = "reciprocal_sqrt"
    if switches["statistic"] in ONE_PASS and switches["divisor"] == "n-1":
        switches["divisor"] = "n"
    for switch in FORMAT_SWITCHES:
        switches[switch] = draw(st.sampled_from(outputs if switch == "output_format" else formats))
    return plans["late"].replace(order=draw(st.sampled_from(orders)), **switches)


def computes(plan, norm):
    """Whether a plan's switches have a meaning in this norm."""
    try:
        plan.norm_for(norm)
    except InputError:
        return False
    return True
