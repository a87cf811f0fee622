# SPDX-License-Identifier: Apache-2.0
"""Which input scales a norm survives, by format and plan."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from precision_lab import Sweep, family, formats, plans
from precision_lab.report import charts
from precision_lab.report.charts import joined, number, power

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
    rows = _with_losses(rows)
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
    low, scaled, late = (_range_text(_kept_range(rows, "float16", plan), rows) for plan in LANES)
    rest = late if late == scaled else f"{scaled} and {late}"
    return f"float16 keeps every row {low}; pre-scaled or with a float32 statistic, {rest}"


def findings(rows: pd.DataFrame) -> list[str]:
    """What the rows say, the headline first."""
    rows = _with_losses(rows[rows["norm"] == "rms"])
    half = {plan: _range_text(_kept_range(rows, "float16", plan), rows) for plan in LANES}
    wide = _range_text(_kept_range(rows, "bfloat16", "all-low"), rows)
    first = (
        f"With every step in float16 RMSNorm keeps every row {half['all-low']} (standard deviation "
        f"of the inputs); with a float32 statistic {half['late']}; with every step in bfloat16 "
        f"{wide}."
    )
    texts = [first]
    for name in rows["format"].unique():
        mine = rows[rows["format"] == name]
        low, scaled, late = (_kept_range(rows, name, plan) for plan in LANES)
        rest = f"{_range_text(late, rows)} with a float32 statistic"
        rest += "" if late == scaled else f", {_range_text(scaled, rows)} if pre-scaled"
        if low == scaled == late:
            if mine["lost"].any():
                texts.append(f"{name} keeps every row {_range_text(late, rows)}, in each plan.")
        else:
            texts.append(
                f"{name} keeps every row {_range_text(low, rows)} with every step in it, {rest}. "
                f"Arithmetic in it makes rows {_losses_text(mine, low)}."
            )
    return texts + _storage(rows) + _eps(rows)


def _eps(rows: pd.DataFrame) -> list[str]:
    """Where every step in a format in which eps is 0 makes small rows NaN."""
    small = rows[(rows["plan"] == "all-low") & (rows["k"] < 0) & (rows["nan"] > 0)]
    gone = [name for name in small["format"].unique() if formats[name].round(EPS) == 0]
    clauses = [f"{power(small.loc[small['format'] == name, 'k'].max())} in {name}" for name in gone]
    if not clauses:
        return []
    first = (
        f"Where eps {number(EPS)} is 0 in the format, a row whose squares round to zeros is "
        f"divided by 0 and becomes NaN: from {joined(clauses)} down."
    )
    return [first]


def _storage(rows: pd.DataFrame) -> list[str]:
    """What storing the inputs loses, whatever the arithmetic does after it."""
    late = rows[(rows["plan"] == "late") & rows["lost"] & (rows["arithmetic_rows_lost"] == 0)]
    clauses = []
    for name, mine in late.groupby("format", sort=False):
        ends = [
            f"{_range_text((part['k'].min(), part['k'].max()), rows)} "
            f"({joined(word for kind, word in KINDS.items() if part[kind].any())})"
            for part in (mine[mine["k"] < 0], mine[mine["k"] > 0])
            if len(part)
        ]
        clauses.append(f"in {name} {' and '.join(ends)}")
    return (
        [f"Storing inputs loses rows that no plan brings back: {'; '.join(clauses)}."]
        if clauses
        else []
    )


def _losses_text(rows: pd.DataFrame, ends: tuple[int, int] | None) -> str:
    """What becomes of rows that every step in the format loses, below and above what it keeps."""
    spent = rows[(rows["plan"] == "all-low") & (rows["arithmetic_rows_lost"] > 0)]
    sides = {"": spent}
    if ends:
        sides = {" below that": spent[spent["k"] < ends[0]]}
        sides |= {" above that": spent[spent["k"] > ends[1]]}
    kinds = {
        where: joined(word for kind, word in KINDS.items() if part[kind].any())
        for where, part in sides.items()
        if len(part)
    }
    if len(kinds) > 1 and len(set(kinds.values())) == 1:
        return f"{next(iter(kinds.values()))} on either side of that"
    return " and ".join(f"{what}{where}" for where, what in kinds.items()) or "none"


def _kept_range(rows: pd.DataFrame, name: str, plan: str) -> tuple[int, int] | None:
    """The ends of the run of standard deviations at or next to 1 at which no row is lost."""
    mine = rows[(rows["plan"] == plan) & (rows["format"] == name)].sort_values("k")
    # Far below 1 the exact norm is all zeros, too, and nothing is lost: that is another run.
    runs = [
        [int(k) for k in run.loc[~run["lost"], "k"]]
        for _, run in mine.groupby(mine["lost"].cumsum())
    ]
    near = min((run for run in runs if run), key=lambda run: min(map(abs, run)), default=None)
    return (near[0], near[-1]) if near else None


def _range_text(ends: tuple[int, int] | None, rows: pd.DataFrame) -> str:
    """A run in words; where it ends with the scales measured, that is no end of its own."""
    if ends is None:
        return "at no scale measured"
    first, last = int(rows["k"].min()), int(rows["k"].max())
    low, high = map(power, ends)
    if ends == (first, last):
        return f"at every scale measured ({low} to {high})"
    if low == high:
        return f"at {low} alone"
    if ends[1] == last:
        return f"from {low} up"
    return f"up to {high}" if ends[0] == first else f"from {low} to {high}"


def _with_losses(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with their place on the map and the shares of what they lost."""
    scale = rows["parameter_scale"].map(math.log2).round().astype(int)
    shares = {kind: rows[f"total_rows_{kind}"] / rows["rows"] for kind in KINDS}
    return rows.assign(k=scale, lost=rows["total_rows_lost"] > 0, **shares)
