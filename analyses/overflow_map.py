# SPDX-License-Identifier: Apache-2.0
"""Which input scales a norm survives, by format and plan."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from precision_lab import charts
from precision_lab.charts import number, power
from precision_lab.formats import formats
from precision_lab.plans import plans
from precision_lab.sweep import Sweep, family

if TYPE_CHECKING:
    import pandas as pd

question = "At which input scales does a norm lose rows to infinity, NaN or zero?"
SCALED = plans["all-low"].replace(prescale="row_max")
LANES = {
    "all-low": "all in the format",
    SCALED.name: "the same, pre-scaled",
    "late": "float32 statistic",
}
SOME = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
KINDS = {"inf": "infinite", "nan": "NaN", "zero": "all zeros"}
EPS = 1e-6


def sweep(*, full: bool) -> Sweep:
    """Normal inputs at powers of two."""
    narrow = [name for name, row in formats.items() if row.bits <= 16 and row.nan and row.zero]
    return Sweep(
        norm=("rms", "layer") if full else "rms",
        plans=("all-low", SCALED, "late"),
        formats=narrow if full else SOME,
        inputs=[family("normal", scale=2.0**k) for k in range(-32, 22, 1 if full else 2)],
        eps=EPS,
        hidden=256,
        gains="none",
    )


def figures(rows: pd.DataFrame) -> list[charts.Chart]:
    """A map for each norm: input scale across, plans down, a block a format."""
    rows = _lost(rows)
    largest = rows["format"].map(lambda name: formats[name].largest)
    rows = rows.assign(
        lane=rows["plan"].map(LANES),
        end=largest.map(math.log2),
        sum=(largest / rows["hidden"]).map(lambda square: math.log2(square) / 2),
    )
    return [
        charts.strips(
            part,
            name=f"lost-rows-{norm}",
            title=_title(rows) if norm == "rms" else f"The same for the norm {norm}",
            caption="A cell is one standard deviation of normal inputs, in one plan. It is "
            "coloured where rows came out infinite, NaN or all zeros though the exact norm "
            "rounds to none of these; the paler, the fewer rows. Lines: from where on the sum of "
            "squares, and the inputs themselves, pass the format's largest value.",
            xlabel="standard deviation of the inputs",
            x="k",
            lane="lane",
            group="format",
            lost={"inf": "inf", "NaN": "nan", "zero": "zero"},
            marks={"sum of squares overflows": "sum", "inputs overflow": "end"},
            step=8,
        )
        for norm, part in rows.groupby("norm", sort=False)
    ]


def _title(rows: pd.DataFrame) -> str:
    """The message of the map in one short sentence."""
    low, scaled, late = (_edge(rows, "float16", plan) for plan in LANES)
    wide = _edge(rows, "bfloat16", "all-low")
    return (
        f"float16 loses rows from {low} on, pre-scaled or with a float32 statistic from "
        f"{late if late == scaled else f'{scaled} or {late}'}; bfloat16 "
        f"{'loses none' if wide == 'none' else f'from {wide}'}"
    )


def findings(rows: pd.DataFrame) -> list[str]:
    """What the rows say, the headline first."""
    rows = _lost(rows[rows["norm"] == "rms"])
    ends = f"between {power(rows['k'].min())} and {power(rows['k'].max())}"
    low, scaled, late = (_edge(rows, "float16", plan) for plan in LANES)
    wide = _edge(rows, "bfloat16", "all-low")
    first = (
        f"With every step in float16, inputs of standard deviation {low} and more lose rows; "
        f"pre-scaled, {scaled} and more; with a float32 statistic, {late} and more; every step in "
        f"bfloat16 loses {'none' if wide == 'none' else f'rows from {wide} on'} {ends}."
    )
    said = [first]
    for name in rows["format"].unique():
        low, scaled, late = (_edge(rows, name, plan) for plan in LANES)
        mine = rows[rows["format"] == name]
        spared = mine.loc[(mine["plan"] == "late") & ~mine["lost"], "k"]
        spent = mine[(mine["plan"] == "all-low") & mine["lost"] & mine["k"].isin(spared)]
        became = [word for kind, word in KINDS.items() if spent.loc[spent["k"] > 0, kind].any()]
        if became:
            said.append(
                f"Arithmetic in {name} makes rows {' or '.join(became)} from {low} on; a float32 "
                f"statistic moves that to {late}, pre-scaling to {scaled}."
            )
        became = [word for kind, word in KINDS.items() if spent.loc[spent["k"] < 0, kind].any()]
        if became and formats[name].round(EPS) == 0:
            said.append(
                f"In {name} eps {number(EPS)} is 0: every step in it makes rows "
                f"{' or '.join(became)} from {_edge(rows, name, 'all-low', small=True)} down; a "
                f"float32 statistic loses none above {_edge(rows, name, 'late', small=True)}."
            )
    return said


def _lost(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with their place on the map and the shares of what they lost."""
    scale = rows["parameter_scale"].map(math.log2).round().astype(int)
    shares = {kind: rows[f"total_rows_{kind}"] / rows["rows"] for kind in KINDS}
    return rows.assign(k=scale, lost=rows["total_rows_lost"] > 0, **shares)


def _edge(rows: pd.DataFrame, name: str, plan: str, *, small: bool = False) -> str:
    """The standard deviation from which rows are lost, upward or downward."""
    mine = rows.loc[rows["lost"] & (rows["plan"] == plan) & (rows["format"] == name), "k"]
    mine = mine[mine < 0] if small else mine[mine > 0]
    if mine.empty:
        return "none"
    return power(mine.max() if small else mine.min())
