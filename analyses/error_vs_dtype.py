# SPDX-License-Identifier: Apache-2.0
"""Error against format, for three plans and both norms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from precision_lab import charts
from precision_lab.charts import joined, number
from precision_lab.formats import formats
from precision_lab.plans import plans
from precision_lab.sweep import Sweep

if TYPE_CHECKING:
    import pandas as pd

question = "How wrong is a norm in each number format, and how much of that is the arithmetic's?"
SOME = ("float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
IN_TURN = plans["all-low"].replace(order="sequential")
LANES = {
    "late": "float32, cast late",
    "early": "float32, cast early",
    "all-low": "all in the format",
    IN_TURN.name: "all, summed in turn",
}
SCALED = {"none": "", "per_tensor": "scaled "}
NORMS = {"rms": "RMSNorm", "layer": "LayerNorm"}


def sweep(*, full: bool) -> Sweep:
    """Normal inputs and a random gain: every format beside every plan."""
    return Sweep(
        norm=tuple(NORMS),
        plans=("late", "early", "all-low", IN_TURN),
        formats=[name for name, row in formats.items() if row.nan and row.zero] if full else SOME,
        inputs=("normal", "heavy-tailed", "mean-offset") if full else "normal",
        hidden=(64, 1024, 4096) if full else 1024,
        seeds=range(2),
        scales=tuple(SCALED),
    )


def figures(rows: pd.DataFrame) -> list[charts.Chart]:
    """For each norm and kind of inputs, errors with their bounds, and arithmetic beside total."""
    rows = rows.assign(
        where=rows["scale"].map(SCALED) + rows["format"], lane=rows["plan"].map(LANES)
    )
    near = {"rms": "", "layer": " The worst outputs lie near the mean, where x − mean cancels."}
    # Relative errors of LayerNorm say little: those near the mean outweigh all others.
    kind = {"rms": "relative_rms", "layer": "ulp_p99"}
    unit = {
        "rms": "relative error, root mean square",
        "layer": "error of 99 % of outputs, ulp of the format",
    }
    found = []
    for (norm, inputs), part in rows.groupby(["norm", "input"], sort=False):
        common: dict[str, Any] = {"by": "where", "series": "lane"}
        found += [
            charts.dots(
                part, **common, name=f"error-in-ulp-{norm}-{inputs}", title=_message(part, norm),
                value="arithmetic_ulp_p99", beside="arithmetic_ulp_max",
                meaning=("99 % of outputs", "the worst"), bound="bound_ulp",
                xlabel="error, ulp of the format", limits={"½ ulp: correctly rounded": 0.5},
                caption=f"{inputs.capitalize()} inputs. Error against the exact norm of the inputs "
                "as stored, and the largest that the plan can make on them. The numbers: 99 % of "
                "outputs, and the worst. In turn: sums add one element after the other, not in "
                f"pairs.{near[norm]}",
            ),
            charts.dots(
                part, **common, name=f"arithmetic-and-total-{norm}-{inputs}",
                title=f"{NORMS[norm]}: how much of the error comes from storing the inputs?",
                value=f"arithmetic_{kind[norm]}", beside=f"total_{kind[norm]}",
                meaning=("arithmetic", "with the inputs' rounding"), xlabel=unit[norm],
                caption=f"{inputs.capitalize()} inputs. Filled: error against the exact norm of "
                "the inputs as stored. Hollow: against that of the inputs before they were rounded "
                "to the format. Scaled: one power of two for the tensor, so that float8 holds its "
                "largest element.",
            ),
        ]  # fmt: skip
    return found


def findings(rows: pd.DataFrame) -> list[str]:
    """What the rows say, the headline first."""
    every, rows = rows, rows[rows["input"] == "normal"]
    rms = rows[(rows["norm"] == "rms")]
    relative = rms.groupby(["plan", "format", "scale"])[
        ["arithmetic_relative_rms", "total_relative_rms"]
    ].max()
    said = [_headline(rms)]
    for (norm, inputs), part in every.groupby(["norm", "input"], sort=False):
        if (norm, inputs) != ("rms", "normal"):
            said.append(f"On {inputs} inputs: {_message(part, norm)}.")
    for name in [name for name in ("bfloat16", "float16") if name in set(rms["format"])]:
        alone, total = relative.loc["late", name, "none"]
        said.append(
            f"RMSNorm in {name}, cast late: the arithmetic errs by {number(alone)} (relative, root "
            f"mean square); with the rounding of the inputs it is {number(total)}."
        )
    for name in rms.loc[rms["scale"] == "per_tensor", "format"].unique():
        (plain, plain_total), (scaled, scaled_total) = (
            relative.loc["late", name, scale] for scale in SCALED
        )
        said.append(
            f"In {name}, cast late, a scale for the tensor takes the arithmetic error from "
            f"{number(plain)} to {number(scaled)} and the total one from {number(plain_total)} to "
            f"{number(scaled_total)}."
        )
    past = int(every["bound_exceeded"].sum())
    said.append(
        f"The bound proved beforehand held for {'all' if not past else f'all but {past}'} of "
        f"{int(every['arithmetic_measured'].sum()):,} outputs."
    )
    return said


def _headline(rms: pd.DataFrame) -> str:
    """The largest error of RMSNorm in each plan, and the formats that lose rows."""
    within = _within(rms, "ulp_max")
    low = rms[(rms["plan"] == "all-low") & (rms["scale"] == "none")]
    lost = low.loc[low["arithmetic_rows_lost"] > 0, "format"]
    return (
        f"With a float32 statistic RMSNorm in 8 and 16 bits stays within {within['late']} ulp when "
        f"cast at the end, {within['early']} when cast early; with every step in the format it "
        f"errs by up to {within['all-low']} ulp, {within[IN_TURN.name]} when it sums in turn, and "
        f"loses rows in {joined(lost.unique())}."
    )


def _message(rows: pd.DataFrame, norm: str) -> str:
    """The error of each plan in the few words that fit over a figure."""
    what, column = ("the worst", "ulp_max") if norm == "rms" else ("99 % of outputs", "ulp_p99")
    within = _within(rows, column)
    return (
        f"{NORMS[norm]} in 8 and 16 bits, {what}: {within['late']} ulp cast late, "
        f"{within['early']} early, {within['all-low']} all in the format, {within[IN_TURN.name]} "
        f"summed in turn"
    )


def _within(rows: pd.DataFrame, column: str) -> pd.Series[str]:
    """The largest error of each plan in 8 and 16 bits, without a scale."""
    narrow = [name for name in rows["format"].unique() if formats[name].bits <= 16]
    mine = rows[rows["format"].isin(narrow) & (rows["scale"] == "none")]
    return mine.groupby("plan")[f"arithmetic_{column}"].max().map(number)
