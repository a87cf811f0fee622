# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a kernel, in words, where the plan behind it is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from precision_lab.identification.candidates import DEFAULTS
from precision_lab.numbers import formats
from precision_lab.plan import EPS_PLACES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from precision_lab.norm import Norm
    from precision_lab.plan import Plan

NARROW = {
    "compute_format": "x, x·r and the gain's product are held in {}",
    "square_format": "squares are rounded to {}",
    "sum_format": "sums, means and ms + eps are rounded to {}",
    "reciprocal_format": "the reciprocal root is rounded to {}",
    "eps_format": "eps is rounded to {}",
}
"""Of formats narrower than float32."""

FAULTS = {
    **{("eps_place", row.name): row.fault for row in EPS_PLACES.values() if row.fault},
    ("divisor", "n-1"): "the sum of squares is divided by n − 1",
    ("statistic", "one_pass"): "the variance is taken in one pass, E[x²] − E[x]²",
    ("statistic", "one_pass_clamped"): "the variance is taken in one pass, E[x²] − E[x]², and"
    " clamped at 0",
    ("gain", "ignored"): "the gain is ignored",
    ("bias", "before_gain"): "the bias is added before the gain is multiplied",
    ("output_rounding", "toward_zero"): "outputs are truncated, not rounded to nearest",
}
"""What no sound kernel does, by switch and value."""


def faults(
    plan: Plan, norm: Norm, *, format: str, weight_offset: float = 0.0, wanted: Norm | None = None
) -> list[str]:
    """What a plan does that a sound computation does not, a phrase each; none if it is sound.

    Parameters
    ----------
    plan
        The plan behind a kernel.
    norm
        What it computes.
    format
        Name of the inputs' format.
    weight_offset
        What the kernel is to add to the weight.
    wanted
        The norm that the kernel is to compute, where it is another.
    """
    phrases = []
    if wanted is not None and wanted.name != norm.name:
        what = "the mean is subtracted" if norm.centred else "the mean is not subtracted"
        phrases.append(f"{what}: it computes {norm.title}, not {wanted.title}")
    elif not norm.centred and plan.statistic in ("two_pass", "one_pass", "welford"):
        phrases.append("the statistic subtracts the mean: a variance, not a mean square")
    elif norm.centred or plan.statistic == "mean_square":
        phrases += _phrases(plan, "statistic")
    for switch in ("eps_place", "divisor"):
        phrases += _phrases(plan, switch)
    phrases += _low_steps(plan, format)
    if plan.gain not in ("ignored", "one_plus" if weight_offset == 1 else "plain"):
        pair = ("1 + g", "g") if plan.gain == "one_plus" else ("g", "1 + g")
        phrases.append("{} is multiplied, not {}".format(*pair))
    elif plan.gain == "one_plus" and plan.gain_format == "input" and format != "float32":
        phrases.append("1 + g is rounded to the weight's format")
    for switch in ("gain", "bias", "output_rounding"):
        phrases += _phrases(plan, switch)
    return phrases


def _low_steps(plan: Plan, format: str) -> list[str]:
    """Steps in formats narrower than float32."""
    steps = {phrase: plan.switches[switch] for switch, phrase in NARROW.items()}
    kind, _, name = plan.order.partition(":")
    if kind == "accumulator":
        steps["sums are accumulated in {}"] = name
    names = {phrase: format if name == "input" else name for phrase, name in steps.items()}
    single = formats["float32"].precision
    return [
        phrase.format(name) for phrase, name in names.items() if formats[name].precision < single
    ]


def eps_faults(configured: Sequence[float], effective: Sequence[float]) -> list[str]:
    """What is wrong with the eps in effect, call by call; nothing where it is the given one."""
    if list(configured) == list(effective):
        return []
    if len(set(configured)) > 1 and len(set(effective)) == 1:
        return [f"eps is {effective[0]:g} whatever is given"]
    return [f"eps counts {effective[0] / configured[0]:g} times"]


def _phrases(plan: Plan, switch: str) -> list[str]:
    phrase = FAULTS.get((switch, plan.switches[switch]))
    return [] if phrase is None else [phrase]


def changes(plan: Plan) -> list[str]:
    """How a plan differs from the textbook's, as switches."""
    return [f"{s}={value}" for s, value in plan.switches.items() if value != DEFAULTS[s]]
