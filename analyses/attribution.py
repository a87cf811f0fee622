# SPDX-License-Identifier: Apache-2.0
"""Which step of a plan costs most, by format: one step at a time is computed exactly."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from precision_lab import Sweep, formats, make_gain, make_inputs, plans
from precision_lab.plan import bound_terms
from precision_lab.report import charts
from precision_lab.report.charts import joined, number, percent, surviving

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
HEADLINE = "all, summed in turn"
words = {
    "all in the format": "the plan all-low: every step rounds to the format, sums add in pairs",
    "all, summed in turn": "the same, but sums add one element after the other",
    "float32, cast early": "the plan early: the statistic in float32, rounded to the format before "
    "the gain",
    "float32, cast late": "the plan late: all in float32, one rounding to the format at the end",
    "exact": "computed in float64, all other steps as the plan has them",
    "statistic": "the mean of squares of a row, by whose root its elements are divided",
    "lost row": charts.LOST_ROW,
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
    """A table for each kind of inputs: steps down, formats across; and what bounds say of it."""
    maps = []
    for inputs, part in _saved(rows).groupby("input", sort=False):
        counts = part["gone"] | (part["saved"].abs() >= SHOWN)
        listed = counts.groupby([part["lane"], part["step"]]).transform("any")
        idle = [step for step in STEPS.values() if step not in set(part.loc[listed, "step"])]
        maps.append(
            charts.shares(
                part[listed], name=f"steps-{inputs}", title=_title(part), x="column", y="step",
                panel="lane", value="saved", largest=True, label=_change,
                lost=("gone", "rows lost"),
                caption=f"{str(inputs).capitalize()} inputs, rows of {part['hidden'].max()}. How "
                "the relative error, root mean square, changes with this step exact and all others "
                "as the plan has them; bold: what lowers it most. Steps that change nothing are "
                f"left out ({joined(idle)}): a result that the next step rounds again to the same "
                "format may as well be rounded.",
            )
        )  # fmt: skip
    return [*maps, _expected(rows)]


def _expected(rows: pd.DataFrame) -> charts.Chart:
    """The part of each step in the bound of the plans that stay in the format."""
    parts = _terms(rows)
    worst = [f"the {step}" if step.isalpha() else step for step in parts["worst"].unique()]
    each = " in each format and order" if len(worst) == 1 else ""
    listed = parts.groupby(["lane", "step"])["part"].transform("max") >= SHOWN
    return charts.shares(
        parts[listed], name="steps-beforehand", x="column", y="step", panel="lane", value="part",
        title=f"The bound proved beforehand blames {joined(worst)}{each}",
        label=lambda part: f"{100 * part:.0f} %", largest=True, lost=("gone", "no bound"),
        caption=f"{str(rows['input'].iloc[0]).capitalize()} inputs. The part of each step in the "
        "largest error that the plan can make, as it is known before anything is computed: the "
        "bound if this step alone rounds, over the sum of those of all steps. Where the sum may "
        "pass the format's largest value there is no bound.",
    )  # fmt: skip


def _terms(rows: pd.DataFrame) -> pd.DataFrame:
    """What each step adds to the bound, for the very inputs of the rows."""
    low = {plan.name: plan for plan in (plans["all-low"], IN_TURN)}
    first = rows[(rows["exact"] == "") & (rows["input"] == rows["input"].iloc[0])]
    parts = []
    for row in first[first["plan"].isin(list(low))].to_dict("records"):
        parameters = {
            name.removeprefix("parameter_"): value
            for name, value in row.items()
            if name.startswith("parameter_") and math.isfinite(value)
        }
        shape = {"hidden": row["hidden"], "seed": row["seed"]}
        target = formats[row["format"]]
        x = target.cast(make_inputs(row["input"], rows=row["rows"], **shape, **parameters))
        gain = make_gain(row["gain"], **shape)
        gain = None if gain is None else target.cast(gain)
        terms = bound_terms(x, gain, eps=row["eps"], plan=low[row["plan"]])
        # A sum that may overflow is infinite, and a part of it is no number.
        total = sum(terms.values()) if all(map(math.isfinite, terms.values())) else math.nan
        parts += [
            {
                "lane": LANES[row["plan"]], "column": _column(row["format"]), "step": label,
                "part": terms.get(step, 0.0) / total, "gone": math.isinf(terms.get(step, 0.0)),
                "worst": STEPS.get(next(iter(terms)), "another step"),
            }
            for step, label in STEPS.items()
        ]  # fmt: skip
    return pd.DataFrame(parts)


def findings(rows: pd.DataFrame) -> list[str]:
    """What the rows say, the headline first."""
    steps = _saved(rows)
    texts = [f"{_title(steps[steps['input'] == part])}." for part in steps["input"].unique()[:1]]
    several = len(steps["input"].unique()) > 1
    for (inputs, lane), part in steps.groupby(["input", "lane"], sort=False):
        best = _costliest(part)
        clauses = [
            f"an exact {step} in "
            + joined(
                f"{name} (from {number(row['whole'])} to {number(row[ERROR])})"
                for name, row in best.items()
                if row["step"] == step
            )
            for step in dict.fromkeys(row["step"] for row in best.values())
        ]
        start = f"{str(lane).capitalize()}{f', {inputs} inputs' if several else ''}"
        texts.append(
            f"{start}: the relative error falls most with {', with '.join(clauses)}."
            if clauses
            else f"{start}: none of its steps, computed exactly, lowers the error."
        )
    return texts


def _title(rows: pd.DataFrame) -> str:
    """The costliest step where all is in the format and sums add in turn, and what it costs."""
    costly = _costliest(rows[rows["lane"] == HEADLINE])
    by: dict[str, list[str]] = {}
    for name, row in costly.items():
        by.setdefault(row["step"], []).append(name.removeprefix("float8_"))
    if not by:
        return "With every step in the format and sums in turn, none costs more than the others"
    every = rows["format"].nunique()
    clauses = [
        f"{'the ' * step.isalpha()}{step} in {joined(some) if len(some) < every else 'each format'}"
        for step, some in by.items()
    ]
    least, most = (pick(row["saved"] for row in costly.values()) for pick in (min, max))
    return (
        f"With every step in the format and sums in turn, what costs most is {joined(clauses)}: "
        f"computed exactly, it takes {percent(least)} to {percent(most)} off the error"
    )


def _costliest(rows: pd.DataFrame) -> dict[str, pd.Series[Any]]:
    """For each format the row of the step whose exact computation saves most, if any does."""
    telling = rows[rows["saved"] >= SHOWN]
    at = telling.groupby("format", sort=False)["saved"].idxmax()
    return {str(name): rows.loc[index] for name, index in at.items()}


def _saved(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with one step exact, beside the error with none and the part of it that is saved."""
    rows = surviving(rows).assign(
        lane=rows["plan"].map(LANES), gone=rows["arithmetic_rows_lost"] > 0,
        column=rows["format"].map(_column),
    )  # fmt: skip
    keys = ["input", "plan", "format", "seed"]
    total = rows[rows["exact"] == ""].set_index(keys)[ERROR].rename("whole")
    some = rows[rows["exact"] != ""].join(total, on=keys)
    saved = 1 - some[ERROR] / some["whole"]
    return some.assign(step=some["exact"].map(STEPS), saved=saved)


def _column(format: str) -> str:
    """A format's name in two lines, where it is long."""
    return format.replace("float8_", "float8_\n")


def _change(saved: float) -> str:
    """How the error changes, in whole per cent."""
    change = round(-100 * saved)
    return f"{change:+d} %".replace("-", "−") if change else "0"
