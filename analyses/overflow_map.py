# SPDX-License-Identifier: Apache-2.0
"""Which input scales a norm survives, by format and plan."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from precision_lab import charts
from precision_lab.charts import joined, number, power
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
words = {
    "all in the format": "the plan all-low",
    "the same, pre-scaled": "the plan all-low with each row divided by its largest element first",
    "float32 statistic": "the plan late",
    "statistic": "the mean of squares of a row, by whose root its elements are divided",
    "lost row": "one that came out infinite, NaN or all zeros though the exact norm rounds to none "
    "of these",
}


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
            "coloured where rows came out infinite, NaN or all zeros though the exact norm of the "
            "inputs, taken before they were rounded to the format, rounds to none of these; the "
            "paler, the fewer rows. Lines: from where on the sum of squares, and the inputs "
            "themselves, pass the format's largest value.",
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
    low, scaled, late = (_told(_kept(rows, "float16", plan)) for plan in LANES)
    rest = late if late == scaled else f"{scaled} and {late}"
    return f"float16 keeps every row {low}; pre-scaled or with a float32 statistic, {rest}"


def findings(rows: pd.DataFrame) -> list[str]:
    """What the rows say, the headline first."""
    rows = _lost(rows[rows["norm"] == "rms"])
    half = {plan: _told(_kept(rows, "float16", plan)) for plan in LANES}
    wide = _told(_kept(rows, "bfloat16", "all-low"))
    first = (
        f"With every step in float16, RMSNorm keeps every row only of inputs whose standard "
        f"deviation is {half['all-low']}; with a float32 statistic, {half['late']}; with every "
        f"step in bfloat16, {wide}."
    )
    said = [first]
    for name in rows["format"].unique():
        mine = rows[rows["format"] == name]
        low, scaled, late = (_kept(rows, name, plan) for plan in LANES)
        rest = _told(late) if late == scaled else f"{_told(late)}, {_told(scaled)} if pre-scaled"
        if low == scaled == late:
            if mine["lost"].any():
                said.append(f"{name} keeps every row {rest}, in each plan.")
        else:
            said.append(
                f"{name} keeps every row {_told(low)} with every step in it, {rest} with a float32 "
                f"statistic. Arithmetic in it makes rows {_became(mine, low)}."
            )
        said += _storage(mine, name)
        small = mine[(mine["plan"] == "all-low") & (mine["k"] < 0) & mine["nan"].gt(0)]
        if formats[name].round(EPS) == 0 and len(small):
            said.append(
                f"In {name} eps {number(EPS)} is 0, so a row whose squares round to zeros is "
                f"divided by 0: that makes it NaN from {power(small['k'].max())} down."
            )
    return said


def _storage(rows: pd.DataFrame, name: str) -> list[str]:
    """What storing the inputs loses in one format, whatever the arithmetic does after it."""
    late = rows[(rows["plan"] == "late") & rows["lost"] & (rows["arithmetic_rows_lost"] == 0)]
    ends = [
        f"{power(part['k'].min())} to {power(part['k'].max())} "
        f"({joined(word for kind, word in KINDS.items() if part[kind].any())})"
        for part in (late[late["k"] < 0], late[late["k"] > 0])
        if len(part)
    ]
    if not ends:
        return []
    told = " and from ".join(ends)
    return [f"Storing the inputs in {name} loses rows that no plan brings back: from {told}."]


def _became(rows: pd.DataFrame, kept: tuple[int, int] | None) -> str:
    """What becomes of rows that every step in the format loses, below and above what it keeps."""
    spent = rows[(rows["plan"] == "all-low") & (rows["arithmetic_rows_lost"] > 0)]
    low, high = kept or (0, 0)
    sides = {"below": spent[spent["k"] < low], "above": spent[spent["k"] > high]}
    return " and ".join(
        f"{joined(word for kind, word in KINDS.items() if part[kind].any())} {where} that"
        for where, part in sides.items()
        if len(part)
    )


def _kept(rows: pd.DataFrame, name: str, plan: str) -> tuple[int, int] | None:
    """The ends of the longest run of standard deviations at which no row is lost."""
    mine = rows[(rows["plan"] == plan) & (rows["format"] == name)].sort_values("k")
    runs = mine.groupby(mine["lost"].cumsum())
    longest: list[int] = []
    for _, run in runs:
        whole = [int(k) for k in run.loc[~run["lost"], "k"]]
        longest = max(longest, whole, key=len)
    return (longest[0], longest[-1]) if longest else None


def _told(ends: tuple[int, int] | None) -> str:
    """A run in words."""
    return "nowhere" if ends is None else f"from {power(ends[0])} to {power(ends[1])}"


def _lost(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with their place on the map and the shares of what they lost."""
    scale = rows["parameter_scale"].map(math.log2).round().astype(int)
    shares = {kind: rows[f"total_rows_{kind}"] / rows["rows"] for kind in KINDS}
    return rows.assign(k=scale, lost=rows["total_rows_lost"] > 0, **shares)
