# SPDX-License-Identifier: Apache-2.0
"""Which step of a plan costs most, by format: one step at a time is computed exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from precision_lab import charts
from precision_lab.charts import joined, number, surviving
from precision_lab.plans import plans
from precision_lab.sweep import Sweep

if TYPE_CHECKING:
    import pandas as pd

question = "Which step of a low-precision norm costs most, and what does computing it exactly save?"
IN_TURN = plans["all-low"].replace(order="sequential")
LANES = {
    "all-low": "all in the format",
    IN_TURN.name: "all, summed in turn",
    "early": "float32, cast early",
    "late": "float32, cast late",
}
STEPS = {
    "square": "squares",
    "sum": "sum",
    "mean": "mean",
    "eps": "eps",
    "radicand": "mean + eps",
    "reciprocal": "1/√",
    "normalise": "x · 1/√",
    "cast": "cast before gain",
    "gain": "times gain",
    "output": "last cast",
}
SOME = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
ERROR = "arithmetic_relative_rms"
SHOWN = 0.005  # a step that changes the error by less than this is not worth its line
TITLED = {
    "all in the format": "with every step in the format",
    "all, summed in turn": "summed in turn",
}
words = {
    "all in the format": "the plan all-low: every step rounds to the format, sums add in pairs",
    "all, summed in turn": "the same, but sums add one element after the other",
    "float32, cast early": "the plan early: the statistic in float32, rounded to the format before "
    "the gain",
    "float32, cast late": "the plan late: all in float32, one rounding to the format at the end",
    "exact": "computed in float64, all other steps as the plan has them",
    "statistic": "the mean of squares of a row, by whose root its elements are divided",
    "lost row": "one that came out with infinity or NaN, or as zeros alone, though the exact norm "
    "rounds to none of these",
}


def sweep(*, full: bool) -> list[Sweep]:
    """Rows short enough for float8 to hold their sum of squares; each step exact in turn."""
    kinds = ("normal", "uniform", "heavy-tailed") if full else "normal"
    common = {"formats": SOME, "inputs": kinds, "hidden": 256, "rows": 64}
    wide = ("none", "sum", "reciprocal", "normalise", "cast", "gain", "output")
    return [
        Sweep(**common, plans=("all-low", IN_TURN), exact=("none", *STEPS)),
        Sweep(**common, plans=("early", "late"), exact=wide),
    ]


def figures(rows: pd.DataFrame) -> list[charts.Chart]:
    """A table for each kind of inputs: steps down, formats across, a block a plan."""
    found = []
    for inputs, part in _saved(rows).groupby("input", sort=False):
        told = part["gone"] | (part["saved"].abs() >= SHOWN)
        listed = part.groupby(["lane", "step"])["gone"].transform("size") > 0
        listed &= told.groupby([part["lane"], part["step"]]).transform("any")
        idle = [step for step in STEPS.values() if step not in set(part.loc[listed, "step"])]
        found.append(
            charts.shares(
                part[listed], name=f"steps-{inputs}", title=_title(part), x="column", y="step",
                panel="lane", value="saved", largest=True, told=_change, lost=("gone", "rows lost"),
                caption=f"{str(inputs).capitalize()} inputs, rows of {part['hidden'].max()}. How "
                "the relative error, root mean square, changes with this step exact and all others "
                "as the plan has them; bold: what lowers it most. Steps that change nothing are "
                f"left out ({joined(idle)}): a result that the next step rounds again to the same "
                "format may as well be rounded.",
            )
        )  # fmt: skip
    return found


def findings(rows: pd.DataFrame) -> list[str]:
    """What the rows say, the headline first."""
    found = _saved(rows)
    said = [f"{_title(found[found['input'] == part])}." for part in found["input"].unique()[:1]]
    for (inputs, lane), part in found.groupby(["input", "lane"], sort=False):
        best = _costliest(part)
        told = [
            f"{step} in "
            + joined(
                f"{name} (from {number(row['whole'])} to {number(row[ERROR])})"
                for name, row in best.items()
                if row["step"] == step
            )
            for step in dict.fromkeys(row["step"] for row in best.values())
        ]
        start = f"{str(lane).capitalize()}, {inputs} inputs"
        said.append(
            f"{start}: of all steps the one whose exact computation lowers the relative error most "
            f"is {'; '.join(told)}."
            if told
            else f"{start}: none of its steps, computed exactly, lowers the error."
        )
    return said


def _title(rows: pd.DataFrame) -> str:
    """The costliest steps of the plans that stay in the format, in one short sentence."""
    told = []
    for lane, start in TITLED.items():
        by: dict[str, list[str]] = {}
        for name, row in _costliest(rows[rows["lane"] == lane]).items():
            by.setdefault(row["step"], []).append(name.removeprefix("float8_"))
        every = rows["format"].nunique()
        where = [
            f"{'the ' * step.isalpha()}{step} in "
            f"{joined(some) if len(some) < every else 'each format'}"
            for step, some in by.items()
        ]
        told.append(f"{start}, {', '.join(where) or 'no step'}")
    return f"What costs most: {'; '.join(told)}"


def _costliest(rows: pd.DataFrame) -> dict[str, pd.Series[Any]]:
    """For each format the row of the step whose exact computation saves most, if any does."""
    telling = rows[rows["saved"] >= SHOWN]
    at = telling.groupby("format", sort=False)["saved"].idxmax()
    return {str(name): rows.loc[index] for name, index in at.items()}


def _saved(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with one step exact, beside the error with none and the part of it that is saved."""
    rows = surviving(rows).assign(
        lane=rows["plan"].map(LANES), gone=rows["arithmetic_rows_lost"] > 0,
        column=rows["format"].str.replace("float8_", "float8_\n"),
    )  # fmt: skip
    keys = ["input", "plan", "format", "seed"]
    whole = rows[rows["exact"] == ""].set_index(keys)[ERROR].rename("whole")
    some = rows[rows["exact"] != ""].join(whole, on=keys)
    saved = 1 - some[ERROR] / some["whole"]
    return some.assign(step=some["exact"].map(STEPS), saved=saved)


def _change(saved: float) -> str:
    """How the error changes, in whole per cent."""
    change = round(-100 * saved)
    return f"{change:+d} %".replace("-", "−") if change else "0"
