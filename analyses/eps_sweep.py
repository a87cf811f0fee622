# SPDX-License-Identifier: Apache-2.0
"""What an eps does, by the rms of the row, in each format that may add it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from precision_lab import Plan, Sweep, family, formats, plans
from precision_lab.report import charts
from precision_lab.report.charts import joined, number, percent, power

if TYPE_CHECKING:
    import pandas as pd

question = "Which eps does anything, to which rows, and in which format must it be added?"
SOME = ("float32", "bfloat16", "float16", "float8_e4m3fn")
EPS = (1e-12, 1e-10, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
USUAL = 1e-6
SHEET = 4  # formats on a map
SHRINKS = 2.0**-9  # half an ulp of a bfloat16 just below 2: of no value is it a smaller share
VISIBLY = f"{100 * SHRINKS:.1f} %"
KINDS = {
    "vanishes": "eps is 0",
    "absorbed": "eps changes nothing",
    "shrinks": f"shrinks outputs by {VISIBLY} or more",
    "dominates": "eps exceeds the mean square",
    "lost": "row lost, whatever eps is",
}
words = {
    "eps is 0": "the format rounds eps to 0",
    "eps changes nothing": "eps is at most half an ulp of the mean square: adding it leaves the "
    "outputs bit for bit as they are without it",
    f"shrinks outputs by {VISIBLY} or more": "outputs are so much smaller than without eps; exact "
    "arithmetic shrinks them by 1 − 1/√(1 + eps/ms), ms the mean square. Half an ulp of bfloat16 "
    "is 0.2 to 0.4 % of its value",
    "eps exceeds the mean square": "outputs say more about eps than about the size of the row",
    "row lost, whatever eps is": "the sum of squares is past the format's largest value",
    "statistic": "the mean of squares of a row, and what eps is added to",
    "lost row": charts.LOST_ROW,
}


def sweep(*, full: bool) -> list[Sweep]:
    """Rows of ±2^k, whose mean square is 4^k in any format: all that rounds is eps and its sum."""
    others = [name for name, row in formats.items() if row.nan and row.zero and row.bits <= 32]
    names = dict.fromkeys((*SOME, *others)) if full else SOME
    rows = [family("alternating", scale=2.0**k, spread=0.0) for k in range(-16, 5, 2)]
    return [
        Sweep(
            plans=_adds_in(name), against=_adds_in(name).replace(eps_place="missing"), inputs=rows,
            eps=EPS, formats="float64", hidden=16, rows=1, gains="none",
        )
        for name in names
    ]  # fmt: skip


def _adds_in(name: str) -> Plan:
    """The plan that sums and adds eps in a format, and does all else in float64."""
    others = ("compute_format", "square_format", "reciprocal_format", "output_format")
    here = dict.fromkeys(("sum_format", "eps_format"), name)
    return plans["late"].replace(name=f"eps added in {name}", **dict.fromkeys(others, "float64"),
                                 **here)  # fmt: skip


def figures(rows: pd.DataFrame) -> list[charts.Chart]:
    """A map, or several of a few formats each: eps down, rms of the row across."""
    rows = _with_effects(rows)
    names = list(rows["format"].unique())
    maps = []
    for at in range(0, len(names), SHEET):
        part = rows[rows["format"].isin(names[at : at + SHEET])]
        maps.append(
            charts.tiles(
                part, name=f"eps-by-rms{f'-{1 + at // SHEET}' if at else ''}", title=_title(part),
                x="k", y="eps_text", panel="format", kind="kind", kinds=KINDS, text="text",
                blank="counts, shrinks less", tick=power, xlabel="rms of the row",
                caption="What eps, by line, does to rows of a root mean square, by column, when "
                "the mean square and eps are added in one format and all else is exact. Numbers: "
                "by how much outputs shrink against those without eps; blue without a number: "
                "without eps the row would be divided by 0. ∞: the row is lost, for its mean "
                "square is 0 in the format, too; NaN: lost, for the sum of its squares is past the "
                "format's largest value.",
            )
        )  # fmt: skip
    return maps


def findings(rows: pd.DataFrame) -> list[str]:
    """What the rows say, the headline first."""
    rows = _with_effects(rows)
    texts = [f"{_title(rows)}."]
    usual = rows[rows["eps"] == USUAL]
    ends = {
        str(name): power(part["k"].min())
        for name, part in usual[usual["kind"] == "absorbed"].groupby("format", sort=False)
    }
    texts.append(
        f"An eps of {number(USUAL)} changes no bit of rows whose rms is at least "
        f"{_by_format(ends)}: it is at most half an ulp of their mean square."
        if ends
        else f"An eps of {number(USUAL)} changes some bit of rows of each of the rms."
    )
    for eps, part in rows[rows["format"] == rows["format"].iloc[0]].groupby("eps"):
        over = part[part["kind"] == "dominates"]
        visible = part[part["kind"].isin(["shrinks", "dominates"])]
        if eps >= USUAL and len(over) and len(visible):
            last = visible.loc[visible["k"].idxmax()]
            texts.append(
                f"Added in {part['format'].iloc[0]}, eps {_written(float(str(eps)))} exceeds the "
                f"mean square of rows up to an rms of {power(over['k'].max())}, which shrink by "
                f"{percent(over['shrinks'].min())} or more; it still takes "
                f"{percent(last['shrinks'])} off rows of {power(last['k'])}."
            )
    return texts + _between(rows) + _lost(rows)


def _between(rows: pd.DataFrame) -> list[str]:
    """Whether there are rows for which an eps counts and does not visibly shrink."""
    fine = rows[_fine(rows)]
    counts = {name: int((fine["format"] == name).sum()) for name in rows["format"].unique()}
    each = len(rows) // len(counts)
    marks = {name: str(count or "none") for name, count in counts.items()}
    text = (
        f"Of {each} pairs of eps and rms, those in which eps counts and shrinks outputs by less "
        f"than {VISIBLY}: {_by_format(marks)}."
    )
    return [text]


def _lost(rows: pd.DataFrame) -> list[str]:
    """Rows that an eps of 0 leaves to be divided by 0."""
    gone = rows[(rows["kind"] == "vanishes") & (rows["arithmetic_rows_inf"] > 0)]
    marks = {str(name): power(part["k"].max()) for name, part in gone.groupby("format", sort=False)}
    text = (
        f"Under an eps that is 0, rows whose squares are 0, too, are divided by 0: up to an rms of "
        f"{_by_format(marks)}."
    )
    return [text] if marks else []


def _title(rows: pd.DataFrame) -> str:
    """In which format to add eps, and what becomes of it in the others."""
    zero = rows[rows["kind"] == "vanishes"].groupby("format", sort=False)["eps"].max()
    parts = [f"in {name} it is 0 up to {_written(eps)}" for name, eps in zero.items()]
    every = list(rows["format"].unique())
    fine = {*zero.index, *rows[_fine(rows)]["format"]}
    either = [name for name in every if name not in fine]
    parts += (
        [f"in {joined(either)} it does nothing or shrinks outputs by {VISIBLY} or more"]
        if either
        else []
    )
    good = [name for name in every if name in fine and name not in zero.index]
    return f"Add eps in {joined(good)}: {joined(parts) if parts else 'it is 0 in none of these'}"


def _by_format(marks: dict[str, str]) -> str:
    """What is so in which formats, those that share it together."""
    groups: dict[str, list[str]] = {}
    for name, text in marks.items():
        groups.setdefault(text, []).append(name)
    return ", ".join(f"{text} in {joined(names)}" for text, names in groups.items())


def _fine(rows: pd.DataFrame) -> pd.Series[bool]:
    """Where eps counts and does not visibly shrink."""
    return (rows["kind"] == "") & (rows["arithmetic_rows_lost"] == 0)


def _with_effects(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with their place on the map, and what eps does there."""
    name = rows["plan_eps_format"]
    stored = [float(formats[n].round(eps)) for n, eps in zip(name, rows["eps"], strict=True)]
    rows = rows.assign(
        format=name, k=rows["parameter_scale"].map(math.log2).round().astype(int), stored=stored,
        eps_text=rows["eps"].map(_written), shrinks=rows["against_relative_rms"],
    )  # fmt: skip
    kinds = [_kind(row) for row in rows.to_dict("records")]
    rows = rows.assign(kind=kinds)
    return rows.assign(text=[_text(row) for row in rows.to_dict("records")])


def _kind(row: dict[str, Any]) -> str:
    if row["stored"] == 0:
        return "vanishes"
    if row["stored"] > row["rms_max"] ** 2:
        return "dominates"
    if row["arithmetic_rows_lost"]:
        return "lost"
    if row["against_differs"] == 0:
        return "absorbed"
    return "shrinks" if row["shrinks"] >= SHRINKS else ""


def _text(row: dict[str, Any]) -> str:
    if row["arithmetic_rows_lost"]:
        return "NaN" if row["arithmetic_rows_nan"] else "∞"
    if row["kind"] in ("vanishes", "absorbed"):
        return "0" if row["kind"] == "vanishes" else "="
    share = row["shrinks"]
    if not row["kind"] or not math.isfinite(share):
        return ""
    return f"{100 * share:.{0 if share >= 0.01 else 1}f} %"


def _written(eps: float) -> str:
    """An eps as people write it."""
    return f"{eps:.0e}".replace("e-0", "e-")
