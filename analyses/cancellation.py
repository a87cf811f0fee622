# SPDX-License-Identifier: Apache-2.0
"""LayerNorm of rows whose mean is large beside their deviations, by variance algorithm."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from precision_lab import Sweep, family, formats, plans
from precision_lab.report import charts
from precision_lab.report.charts import LOST, joined, number, power, surviving

if TYPE_CHECKING:
    import pandas as pd

question = "What does a large mean cost LayerNorm, with each way to compute the variance?"
EXACT = plans["late"].replace(output_format="float32")
LANES = {
    "two passes": EXACT.replace(statistic="two_pass"),
    "one pass": EXACT.replace(statistic="one_pass"),
    "one pass, clamped": EXACT.replace(statistic="one_pass_clamped"),
    "Welford": EXACT.replace(statistic="welford"),
    "scale and shift": EXACT.replace(statistic="two_pass", apply="scale_shift"),
    "torch's": plans["torch-layer-norm"].replace(output_format="float32"),
}
IN_TURN = [
    plan if lane == "torch's" else plan.replace(order="sequential") for lane, plan in LANES.items()
]
NAMES = {
    plan.name: lane
    for plans_of in (LANES.values(), IN_TURN)
    for lane, plan in zip(LANES, plans_of, strict=True)
}
words = {
    "two passes": "the mean first, then the mean square of the deviations from it",
    "one pass": "the mean of squares less the square of the mean, E[x²] − E[x]²",
    "one pass, clamped": "the same, but no less than 0",
    "Welford": "mean and variance updated element by element",
    "scale and shift": "two passes for the variance, but the output as x·r − m·r",
    "torch's": "the plan torch-layer-norm: Welford in chunks; of 16-bit inputs x·r − m·r, fused",
    "statistic": "the mean and the variance of a row, always in float32 here",
    "unit roundoff": "u, of float32: 2⁻²⁴, half the distance from 1 to the next number",
    "lost row": charts.LOST_ROW,
}
U = formats["float32"].unit_roundoff
ERROR = "arithmetic_absolute_max"
CONSTANTS = {"float16": (5e4,), "float32": (1234.0, 1e4 / 3, 1e6)}


def sweep(*, full: bool) -> list[Sweep]:
    """Rows around a mean of 2^k standard deviations, and rows of one number."""
    shared = {"norm": "layer", "plans": LANES.values(), "gains": "none", "eps": 1e-5}
    # float16 ends at 65504.
    some = range(0, 16, 1 if full else 2)
    means = {"float32": range(25 if full else 21), "bfloat16": some, "float16": some}
    return [
        *(
            Sweep(
                **shared, formats=name, hidden=1024, rows=64 if full else 16,
                inputs=[family("mean-offset", offset=2.0**k) for k in exponents],
            )
            for name, exponents in means.items()
        ),
        *(
            Sweep(
                **(shared | {"plans": IN_TURN}), formats=name, hidden=256, rows=1,
                inputs=[family("mean-offset", offset=value, scale=0.0) for value in values],
            )
            for name, values in CONSTANTS.items()
        ),
    ]  # fmt: skip


def figures(rows: pd.DataFrame) -> list[charts.Chart]:
    """Error over mean/std, a panel a format; and what becomes of rows of one number."""
    spread, constant = _parts(surviving(rows))
    return [
        charts.lines(
            spread, name="error-by-mean", title=_message(spread), x="k", y=ERROR, series="lane",
            panel="panel", xlabel="mean / standard deviation of the inputs", tick=power, step=2,
            ylabel="largest error", lost=LOST, tall=1.6, limits={"as large as outputs": 1.0},
            guides={"u·mean/std": "condition", "u·(mean/std)²": "squared"},
            caption="The largest distance of an output from the exact norm of the inputs as "
            "stored, statistics in float32 and outputs before their last rounding. Outputs have a "
            "standard deviation of 1. Rounding the mean costs u·mean/std, whatever the algorithm; "
            "the difference of one pass loses u·(mean/std)². Sums of so few inputs in 16 bits are "
            "exact, and from some mean on these have no deviations left. Crosses at the top: rows "
            "became NaN, for their variance came out negative.",
        ),
        charts.dots(
            constant, name="constant-rows", by="row", series="lane", value=ERROR, lost=LOST,
            title=_right(constant), xlabel="distance of the output from 0",
            caption="256 times one number, summed in turn (by torch's plan in its own order). The "
            "exact norm is 0, which stands at the left edge.",
        ),
    ]  # fmt: skip


def findings(rows: pd.DataFrame) -> list[str]:
    """What the rows say, the headline first."""
    all_rows = rows
    spread, constant = _parts(surviving(rows))
    texts = [f"{_message(spread)}."]
    for name, part in spread.groupby("format", sort=False):
        clauses = [
            f"{lane} {number(mine[ERROR].max())}"
            + (f" ({lost} of {mine['rows'].sum()} rows lost)" if lost else "")
            for lane, mine in part.groupby("lane", sort=False)
            for lost in [mine[LOST[0]].sum()]
        ]
        texts.append(
            f"Largest error, inputs in {name} with means up to {power(part['k'].max())} standard "
            f"deviations: {'; '.join(clauses)}."
        )
    best = spread[(spread["lane"] == "two passes") & (spread["format"] == "float32")]
    best = best[best["k"] >= best["k"].max() / 2]
    texts.append(
        f"Two passes err by {number((best[ERROR] / best['condition']).min())} to "
        f"{number((best[ERROR] / best['condition']).max())} times u·mean/std, from means of "
        f"{power(best['k'].min())} standard deviations on (inputs in float32)."
    )
    texts += _shifted(spread)
    texts += _constant(constant)
    return [*texts, f"The bound proved beforehand {charts.bound_held(all_rows)}."]


def _shifted(spread: pd.DataFrame) -> list[str]:
    """What x·r − m·r costs beside (x − m)·r, where both use the same statistic."""
    worst = spread.groupby(["format", "lane"], sort=False)[ERROR].max()
    clauses = [
        f"from {number(worst[name, 'two passes'])} to {number(worst[name, 'scale and shift'])} in "
        f"{name}"
        for name in spread["format"].unique()
    ]
    return [f"Writing (x − m)·r as x·r − m·r takes the largest error {joined(clauses)}."]


def _message(spread: pd.DataFrame) -> str:
    """From which mean on one pass is worthless, and how two passes fare at the largest."""
    mine = spread[spread["format"] == "float32"]
    once = mine[mine["lane"] == "one pass"]
    nan = once.loc[once["arithmetic_rows_nan"] > 0, "k"]
    off = once.loc[once[ERROR] > 1, "k"]
    clauses = [f"errs by {number(once[ERROR].max())}"] if nan.empty and off.empty else []
    start = f"errs by more than the outputs themselves from a mean of {power(off.min())}"
    clauses += [f"{start} standard deviations on"] if len(off) else []
    clauses += [f"gives NaN from {power(nan.min())} on"] if len(nan) else []
    twice = mine[mine["lane"] == "two passes"]
    return (
        f"LayerNorm in one pass {' and '.join(clauses)}; two passes err by "
        f"{number(100 * twice[ERROR].max())} % of the outputs' size at {power(mine['k'].max())}"
    )


def _right(constant: pd.DataFrame) -> str:
    """Which algorithms make 0 of every row of one number."""
    off = (constant[ERROR] > 0) | (constant["arithmetic_rows_nan"] > 0)
    wrong = off.groupby(constant["lane"], sort=False).any()
    right = [str(lane) for lane, bad in wrong.items() if not bad]
    return f"Rows of one number should become 0, and always do with {joined(right)}"


def _constant(constant: pd.DataFrame) -> list[str]:
    """What becomes of rows of one number where it is not 0, a sentence a row."""
    texts = []
    for row, part in constant.groupby("row", sort=False):
        by_value: dict[str, list[str]] = {}
        for one in part.to_dict("records"):
            if one["arithmetic_rows_nan"] > 0:
                by_value.setdefault("NaN", []).append(one["lane"])
            elif one[ERROR] > 0:
                by_value.setdefault(number(float.fromhex(one["worst_actual_hex"])), []).append(
                    one["lane"]
                )
        clauses = [f"{value} ({joined(lanes)})" for value, lanes in by_value.items()]
        if clauses:
            texts.append(
                f"A row of {part['hidden'].max()} elements, each {row}, should become 0: it "
                f"becomes {joined(clauses)}."
            )
    return texts or ["Rows of one number become 0; none becomes anything else."]


def _parts(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows around a mean and the rows of one number, with places and conditions."""
    offset = rows["parameter_offset"]
    rows = rows.assign(
        k=offset.map(math.log2).round(),
        lane=rows["plan"].map(NAMES),
        panel="of inputs in " + rows["format"],
        condition=U * offset,
        squared=U * offset**2,
        row=offset.map(number) + " in " + rows["format"],
    )
    return rows[rows["parameter_scale"] > 0], rows[rows["parameter_scale"] == 0]
