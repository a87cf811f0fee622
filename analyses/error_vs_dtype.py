# SPDX-License-Identifier: Apache-2.0
"""Error against format, for three plans and both norms."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    """For each norm its errors with their bounds, then arithmetic beside total error."""
    rows = rows.assign(
        where=rows["scale"].map(SCALED) + rows["format"], lane=rows["plan"].map(LANES)
    )
    parts = [(str(norm), part) for norm, part in rows.groupby("norm", sort=False)]
    near = {"rms": "", "layer": " The worst outputs lie near the mean, where x − mean cancels."}
    # Relative errors of LayerNorm say little: those near the mean outweigh all others.
    kind = {"rms": "relative_rms", "layer": "ulp_p99"}
    unit = {
        "rms": "relative error, root mean square",
        "layer": "error of 99 % of outputs, ulp of the format",
    }
    ulp = [
        charts.dots(
            part, name=f"error-in-ulp-{norm}", by="where", series="lane",
            title=_message(rows, norm), xlabel="error, ulp of the format",
            value="arithmetic_ulp_p99", beside="arithmetic_ulp_max",
            meaning=("99 % of outputs", "the worst"), bound="bound_ulp",
            limits={"½ ulp: correctly rounded": 0.5},
            caption="Error against the exact norm of the inputs as stored, and the largest error "
            "that the plan can make on them. The numbers: 99 % of outputs, and the worst. In turn: "
            f"sums add one element after the other, not in pairs.{near[norm]}",
        )
        for norm, part in parts
    ]  # fmt: skip
    total = [
        charts.dots(
            part, name=f"arithmetic-and-total-{norm}", by="where", series="lane",
            title=f"{NORMS[norm]}: how much of the error comes from storing the inputs?",
            xlabel=unit[norm], value=f"arithmetic_{kind[norm]}", beside=f"total_{kind[norm]}",
            meaning=("arithmetic", "with the inputs' rounding"),
            caption="Filled: error against the exact norm of the inputs as stored. Hollow: against "
            "that of the inputs before they were rounded to the format. Scaled: one power of two "
            "for the tensor, so that float8 holds its largest element.",
        )
        for norm, part in parts
    ]  # fmt: skip
    return [*ulp, *total]


def findings(rows: pd.DataFrame) -> list[str]:
    """What the rows say, the headline first."""
    rms = rows[(rows["norm"] == "rms")]
    relative = rms.groupby(["plan", "format", "scale"])[
        ["arithmetic_relative_rms", "total_relative_rms"]
    ].max()
    layer = rows[
        (rows["norm"] == "layer") & (rows["plan"] == "all-low") & (rows["scale"] == "none")
    ]
    said = [_headline(rows)]
    if layer["arithmetic_ulp_max"].notna().any():
        worst = layer.loc[layer["arithmetic_ulp_max"].idxmax()]
        exact = number(float.fromhex(worst["worst_exact_hex"]))
        said.append(
            f"LayerNorm, every step in {worst['format']}: 99 % of outputs are within "
            f"{number(worst['arithmetic_ulp_p99'])} ulp; the worst, {exact} when exact, is "
            f"{number(worst['arithmetic_ulp_max'])} ulp off."
        )
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
    past = int(rows["bound_exceeded"].sum())
    said.append(
        f"The bound proved beforehand held for {'all' if not past else f'all but {past}'} of "
        f"{int(rows['arithmetic_measured'].sum()):,} outputs."
    )
    return said


def _headline(rows: pd.DataFrame) -> str:
    """The largest error of RMSNorm in each plan, and the formats that lose rows."""
    within = _within(rows, "rms")
    mine = rows[(rows["norm"] == "rms") & (rows["plan"] == "all-low") & (rows["scale"] == "none")]
    lost = mine.loc[mine["arithmetic_rows_lost"] > 0, "format"]
    return (
        f"With a float32 statistic RMSNorm in 8 and 16 bits stays within {within['late']} ulp when "
        f"cast at the end, {within['early']} when cast early; with every step in the format it "
        f"errs by up to {within['all-low']} ulp, {within[IN_TURN.name]} when it sums in turn, and "
        f"loses rows in {joined(lost.unique())}."
    )


def _message(rows: pd.DataFrame, norm: str) -> str:
    """The same in the few words that fit over a figure."""
    within = _within(rows, norm)
    what = "the worst output" if norm == "rms" else "99 % of outputs"
    return (
        f"{NORMS[norm]} in 8 and 16 bits, {what}: {within['late']} ulp cast late, "
        f"{within['early']} early, {within['all-low']} all in the format, {within[IN_TURN.name]} "
        f"summed in turn"
    )


def _within(rows: pd.DataFrame, norm: str) -> pd.Series[str]:
    """The error of each plan in 8 and 16 bits: the worst of RMSNorm, 99 % of LayerNorm."""
    narrow = [name for name in rows["format"].unique() if formats[name].bits <= 16]
    mine = rows[(rows["norm"] == norm) & rows["format"].isin(narrow) & (rows["scale"] == "none")]
    column = "arithmetic_ulp_max" if norm == "rms" else "arithmetic_ulp_p99"
    return mine.groupby("plan")[column].max().map(number)
