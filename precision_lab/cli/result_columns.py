# SPDX-License-Identifier: Apache-2.0
"""What stands in each column of a sweep's results."""

from __future__ import annotations

from precision_lab.cli.meanings import meanings
from precision_lab.norm import ErrorReport
from precision_lab.plan import STEPS, SWITCHES, Plan
from precision_lab.sweeps import ERRORS, PLACES, Case
from precision_lab.sweeps.results import CASE_FIELDS

INPUTS = {
    "input": "The family or the capture.",
    "input_kind": "family or capture.",
    "layer": "Of a capture.",
    "parameter_<name>": "A parameter of the family, empty where it has no such.",
}
KERNELS = {
    "kind": "plan, or kernel where one computed in the place of a plan.",
    "kernel": "Where the kernel came from, and the start of the digest of its code.",
    "framework": "Whose arrays it takes: numpy, or torch or jax with its version.",
    "device": "Where it ran.",
}
SIZES = {
    "absmax": "The largest magnitude of the inputs before they were rounded.",
    "rms_min": "The smallest root mean square of a row of them.",
    "rms_max": "The largest.",
    "scale_exponent": "The power of two that the inputs were multiplied by.",
}
BOUNDS = {
    "bound_ulp": "The largest a-priori bound on the error, in ulp; NaN where none is derived, as "
    "for kernels, and where a step is exact.",
    "bound_ulp_worst": "The bound at the element with the largest error.",
    "bound_exceeded": "Elements whose error passes their bound: there should be none.",
}
OVERFLOWS = {
    "first_overflow": "The first step whose results left the range; empty where none did.",
    **{
        f"overflow_{step}": f"Results of step {step} past the range, of finite operands; NaN for "
        "a kernel."
        for step in STEPS
    },
}
WORST = {
    "worst_row": "The row of the element with the largest error; -1 where there is none.",
    "worst_column": "Its place in the row.",
    "worst_ulp": "Its signed error in ulp.",
    "worst_actual_hex": "What the plan gave there.",
    "worst_expected_hex": "The correct rounding.",
    "worst_exact_hex": "The exact value, as float64.",
    "worst_x_hex": "The input there.",
    "worst_gain_hex": "The gain there.",
    "worst_bias_hex": "The bias there.",
    "worst_row_hex": "The first inputs of that row, then the one of largest magnitude.",
}
AGAINST = {
    "against_differs": "Outputs that are not the same bits as the other plan's.",
    "against_ulp_max": "The largest distance of both in ulp; infinite where one is not finite.",
    "against_relative_rms": "The root mean square of the difference, relative to the other's.",
    "outputs_digest": "What names the outputs: equal for the same bits, NaN the same as NaN.",
}
LAST = {
    "versions": "What measured it: versions, and a digest of the code.",
    "key": "The digest of the case.",
}
BEFORE = "but against the truth of the inputs before they were rounded"
LOST = (
    "Rows that hold NaN or infinity, or zeros alone, where the rounded truth does not; not those "
    "that were lost as they were stored, which total_rows_lost counts too."
)


def result_columns() -> dict[str, str]:
    """Every column of a table of results with its meaning; ``<name>`` stands for several names."""
    case, report, plan = meanings(Case), meanings(ErrorReport), meanings(Plan)
    apart = ("plan", "kernel", "parameters", *PLACES)
    axes = {name: case.get(name, "") for name in CASE_FIELDS if name not in apart}
    measures = {**{name: report.get(name, "") for name in ERRORS}, "rows_lost": LOST}
    errors = {
        **{f"arithmetic_{name}": text for name, text in measures.items()},
        **{f"total_{name}": f"As arithmetic_{name}, {BEFORE}." for name in measures},
    }
    switches = {f"plan_{name}": plan.get(name, "") for name in ("norm", *SWITCHES)}
    return {
        "plan": "The plan's name, or the kernel's.",
        **axes,
        **KERNELS,
        **INPUTS,
        "output_format": "The format of the outputs, whose ulp is the unit of the errors.",
        **errors,
        **BOUNDS,
        **OVERFLOWS,
        **SIZES,
        **AGAINST,
        **WORST,
        **switches,
        **LAST,
    }
