# SPDX-License-Identifier: Apache-2.0
"""Error against format, for three plans and both norms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from precision_lab import Sweep, formats, plans
from precision_lab.report import charts
from precision_lab.report.charts import LOST, at_most, joined, number, surviving

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
TELLING = 0.1  # errors nearer than this to each other are the same to a reader
OTHERWISE = 2.0
SCALED = {"none": "", "per_tensor": "scaled "}
words = {
    "statistic": "the mean of squares (RMSNorm) or the mean and the variance (LayerNorm) of a row",
    "float32, cast late": "the plan late: all in float32, one rounding to the format at the end",
    "float32, cast early": "the plan early: the statistic in float32, rounded to the format before "
    "the gain",
    "all in the format": "the plan all-low: every step rounds to the format, sums add in pairs",
    "all, summed in turn": "the same, but sums add one element after the other",
    "scaled": "inputs times one power of two for the tensor, so that the format just holds the "
    "largest of them",
    "lost row": charts.LOST_ROW,
}
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
    rows = surviving(rows).assign(
        where=rows["scale"].map(SCALED) + rows["format"], lane=rows["plan"].map(LANES)
    )
    near = {"rms": "", "layer": " The worst outputs lie near the mean, where x − mean cancels."}
    chart_list = []
    for (norm, inputs), part in rows.groupby(["norm", "input"], sort=False):
        common: dict[str, Any] = {"by": "where", "series": "lane"}
        chart_list += [
            charts.dots(
                part, **common, name=f"error-in-ulp-{norm}-{inputs}",
                title=_message(part, norm, inputs), lost=LOST,
                value="arithmetic_ulp_p99", beside="arithmetic_ulp_max",
                meaning=("99 % of outputs", "the worst"), bound="bound_ulp",
                xlabel="error, ulp of the format", limits={"½ ulp: correctly rounded": 0.5},
                caption=f"{inputs.capitalize()} inputs. Error against the exact norm of the inputs "
                "as stored, and the largest that the plan can make on them. The numbers: 99 % of "
                "outputs, and the worst; of a case that loses rows, no error but how many rows it "
                f"loses. In turn: sums add one element after the other, not in pairs.{near[norm]}",
            ),
            charts.dots(
                part, **common, name=f"arithmetic-and-total-{norm}-{inputs}",
                title=f"{NORMS[norm]} of {inputs} inputs: how much of the error comes from storing "
                "the inputs?", lost=("total_rows_lost", "rows"),
                # Relative errors of LayerNorm say little: those near the mean outweigh others.
                value="arithmetic_ulp_p99", beside="total_ulp_p99",
                meaning=("arithmetic", "with the inputs' rounding"),
                xlabel="error of 99 % of outputs, ulp of the format",
                caption=f"{inputs.capitalize()} inputs. Filled: error against the exact norm of "
                "the inputs as stored. Hollow: against that of the inputs before they were rounded "
                "to the format. Scaled: one power of two for the tensor, so that float8 holds its "
                "largest element.",
            ),
        ]  # fmt: skip
    return chart_list


def findings(rows: pd.DataFrame) -> list[str]:
    """What the rows say, the headline first."""
    all_rows, rows = rows, surviving(rows)
    rms = rows[(rows["norm"] == "rms") & (rows["input"] == "normal")]
    within = _within(rms, "ulp_max")
    first = (
        f"With a float32 statistic and one rounding at the end RMSNorm in 8 and 16 bits errs by at "
        f"most {within['late']} ulp; with every step in the format, by up to "
        f"{within[IN_TURN.name]} ulp{' or it loses whole rows' if _lost(rms) else ''}."
    )
    second = (
        f"Between the two: rounded to the format before the gain, {within['early']} ulp; every "
        f"step in the format and sums in pairs, {within['all-low']} ulp. The largest error above "
        f"is of sums in turn, whose late addends are small beside the sum."
    )
    texts = [first, second, *_lost(rows)]
    worst = rms[_narrow(rms)].groupby("plan")["arithmetic_ulp_max"].max()
    for (norm, inputs), part in rows.groupby(["norm", "input"], sort=False):
        mine = part[_narrow(part)].groupby("plan")["arithmetic_ulp_max"].max()
        # Other inputs are worth a sentence where they err otherwise.
        if (norm, inputs) != ("rms", "normal") and _differs(mine, worst):
            texts.append(f"{_message(part, norm, inputs)}.")
    chart_list = rms.groupby(["plan", "format", "scale"])
    relative = chart_list[["total_relative_rms"]].max()
    ulp = chart_list[["arithmetic_ulp_p99", "total_ulp_p99"]].max()
    for name in [name for name in ("bfloat16", "float16") if name in set(rms["format"])]:
        alone, total = ulp.loc["late", name, "none"]
        if not math.isclose(alone, total, rel_tol=TELLING):
            texts.append(
                f"RMSNorm in {name}, cast late, 99 % of outputs: the arithmetic errs by at most "
                f"{at_most(alone)} ulp; with the rounding of the inputs it is {at_most(total)} ulp."
            )
    texts += _scaling(relative)
    return [*texts, f"The bound proved beforehand {charts.bound_held(all_rows)}."]


def _scaling(relative: pd.DataFrame) -> list[str]:
    """What a scale for the tensor changes in the total error, where it was measured."""
    late = relative.loc["late", "total_relative_rms"].reset_index()
    both = late.pivot_table(index="format", columns="scale", values="total_relative_rms").dropna()
    if "per_tensor" not in both:
        return []
    same = [
        name for name, row in both.iterrows()
        if math.isclose(row["none"], row["per_tensor"], rel_tol=TELLING)
    ]  # fmt: skip
    texts = [
        f"In {name}, cast late, a scale for the tensor takes the relative error of rounding "
        f"inputs and arithmetic from {number(row['none'])} to {number(row['per_tensor'])}."
        for name, row in both.iterrows()
        if name not in same
    ]
    unchanged = [f"{number(both.loc[name, 'per_tensor'])} in {name}" for name in same]
    if unchanged:
        texts.append(
            f"A scale for the tensor is for inputs that leave the format's range. These do not: "
            "with it the relative error of storage and arithmetic, cast late, is "
            f"{joined(unchanged)}."
        )
    return texts


def _differs(one: pd.Series[float], other: pd.Series[float]) -> bool:
    """Whether a plan errs by twice what it does elsewhere, or by half."""
    ratio = (one / other).dropna()
    return bool(((ratio > OTHERWISE) | (ratio < 1 / OTHERWISE)).any())


def _lost(rows: pd.DataFrame) -> list[str]:
    """Which formats lose rows: with normal inputs, and which others do with other inputs."""
    hit = rows.assign(where=rows["scale"].map(SCALED) + rows["format"])
    texts = []
    for plan, lane in LANES.items():
        known: set[str] = set()
        for inputs, part in hit[hit["plan"] == plan].groupby("input", sort=False):
            counts = part.groupby("where", sort=False)[list(LOST)].sum()
            counts = counts[(counts["arithmetic_rows_lost"] > 0) & ~counts.index.isin(known)]
            clauses = [
                f"{where} ({'all' if lost == of else f'{lost} of {of}'})"
                for where, (lost, of) in counts.iterrows()
            ]
            if clauses:
                start = f"{lane.capitalize()}, rows of {inputs} inputs are lost"
                more = " besides" if known else ""
                texts.append(f"{start}{more} in {joined(clauses)}.")
            known |= set(counts.index)
    return texts


def _message(rows: pd.DataFrame, norm: str, inputs: str) -> str:
    """The error of each plan in the few words that fit over a figure."""
    what, column = ("the worst", "ulp_max") if norm == "rms" else ("99 % of outputs", "ulp_p99")
    within = _within(rows, column)
    return (
        f"{NORMS[norm]} of {inputs} inputs in 8 and 16 bits, {what}: {within['late']} ulp cast "
        f"late, {within[IN_TURN.name]} with every step in the format"
    )


def _narrow(rows: pd.DataFrame) -> pd.Series[bool]:
    """Which rows are in 8 and 16 bits, without a scale."""
    narrow = [name for name in rows["format"].unique() if formats[name].bits <= 16]
    return rows["format"].isin(narrow) & (rows["scale"] == "none")


def _within(rows: pd.DataFrame, column: str) -> pd.Series[str]:
    """The largest error of each plan in 8 and 16 bits, without a scale, among rows not lost."""
    return rows[_narrow(rows)].groupby("plan")[f"arithmetic_{column}"].max().map(at_most)
