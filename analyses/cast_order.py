# SPDX-License-Identifier: Apache-2.0
"""Which plans agree bit for bit, and by how much the others differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from precision_lab import Sweep, plans
from precision_lab.report import charts
from precision_lab.report.charts import joined, number, percent

if TYPE_CHECKING:
    import pandas as pd

question = "Which ways to compute RMSNorm agree bit for bit, and by how much do the others differ?"
LATE = plans["late"]
PLUS = LATE.replace(gain="one_plus")
ROUNDED = PLUS.replace(gain_format="input")
TWICE = LATE.replace(inverse="reciprocal_sqrt")
# What is changed in late, what the plan is called beside others, and the plan.
CHANGES = [
    ("cast before the gain", "early", plans["early"]),
    ("1 + g rounded to the format", "", ROUNDED),
    ("sum in the format", "sum in\nformat", LATE.replace(sum_format="input")),
    ("every step in the format", "all in\nformat", plans["all-low"]),
    ("summed in turn", "in turn", LATE.replace(order="sequential")),
    ("x·(r·g) for (x·r)·g", "x·(r·g)", LATE.replace(apply="folded_gain")),
    ("r as root, then 1/root", "1/root", TWICE),
    ("division by the root", "÷ root", LATE.replace(inverse="divide")),
]
OTHERS = [plan for _, short, plan in CHANGES if short]
GAINS = {"random": "random gain", "ones": "gain 1", "powers-of-two": "gain ±2ᵏ"}
SOME = ("bfloat16", "float16")
words = {
    "statistic": "the mean of squares of a row; r is 1 over its root",
    "late": "all in float32, r as one operation, (x·r)·g, one rounding to the format at the end",
    "cast before the gain": "the plan early: x·r is rounded to the format, then multiplied by the "
    "gain in it",
    "1 + g rounded to the format": "a gain stored as its distance g from 1, against late with "
    "1 + g in float32",
    "sum in the format": "late with sums, means and eps added in the format",
    "every step in the format": "the plan all-low, sums in pairs",
    "summed in turn": "late with sums one element after the other, not in pairs",
    "x·(r·g) for (x·r)·g": "late with the gain multiplied into r first",
    "r as root, then 1/root": "late with r in two operations, each rounded",
    "division by the root": "late with no r: x is divided by the root",
    "lost row": charts.LOST_ROW,
}


def sweep(*, full: bool) -> list[Sweep]:
    """Each change against the plan late, with three gains; and each plan against each other."""
    common: dict[str, Any] = {
        "formats": (*SOME, "float32") if full else SOME, "seeds": range(4) if full else 0,
    }  # fmt: skip
    pairs = [
        Sweep(**{**common, "formats": "bfloat16"}, plans=OTHERS[at + 1 :], against=other)
        for at, other in enumerate(OTHERS[:-1])
    ]
    return [
        Sweep(**common, gains=tuple(GAINS), plans=OTHERS, against=LATE),
        Sweep(**common, gains=tuple(GAINS), plans=ROUNDED, against=PLUS),
        *pairs,
    ]


def figures(rows: pd.DataFrame) -> list[charts.Chart]:
    """The share of outputs that each change changes, by gain; and a table of all pairs."""
    rows = _shares(rows)
    changes, pairs = _parts(rows)
    return [
        charts.shares(
            changes, name="changes-by-gain", title=_title(changes), x="column", y="change",
            panel="format", value="share", label=_briefly,
            caption="The share of outputs that are not the same bits as those of the plan late, on "
            "normal inputs. 1 + g is held against late with 1 + g in float32.",
        ),
        charts.shares(
            pairs, name="pairs", x="column", y="line", value="share", label=_briefly,
            title=f"bfloat16, random gain: {_equal(pairs)}",
            caption="The share of outputs that are not the same bits, plan against plan, on normal "
            "inputs. late: all in float32, one cast at the end; the others change one thing in it, "
            "and the last all.",
        ),
    ]  # fmt: skip


def findings(rows: pd.DataFrame) -> list[str]:
    """What the rows say, the headline first."""
    changes, pairs = _parts(_shares(rows))
    texts = [f"{_title(changes)}."]
    for name, part in changes.groupby("format", sort=False):
        mine = part[part["gain"] == "random"].groupby("change", sort=False)
        means = mine.agg({"share": "mean", "against_ulp_max": "max"})
        some = [
            f"{change} {percent(share)}, by up to {number(ulp)} ulp"
            for change, (share, ulp) in means.iterrows()
            if share
        ]
        texts.append(f"Outputs in {name} changed with a random gain: {'; '.join(some) or 'none'}.")
    unlike = changes[changes["gain"] != "random"].groupby("change", sort=False)["share"].max()
    same = [str(change) for change, share in unlike.items() if share == 0]
    texts.append(f"With gains of 1 and of powers of two these change no bit: {joined(same)}.")
    outputs = int(
        (pairs["rows"] * pairs["hidden"]).groupby([pairs["line"], pairs["column"]]).sum().max()
    )
    texts.append(f"In {outputs:,} outputs in bfloat16 with a random gain {_equal(pairs)}.")
    return texts


def _title(changes: pd.DataFrame) -> str:
    """What casting before the gain changes, with a random gain and without, and what 1/√ does."""
    first = changes[changes["format"] == changes["format"].iloc[0]]
    share = first.groupby(["plan", "gain"])["share"].mean()
    early, ones, root = (
        percent(share[at]) if share[at] else "none"
        for at in (("early", "random"), ("early", "ones"), (TWICE.name, "random"))
    )
    return (
        f"{first['format'].iloc[0]}: a cast before the gain changes {early} of outputs if the gain "
        f"is random, {ones} if it is 1; how 1/√ is formed changes {root}"
    )


def _equal(pairs: pd.DataFrame) -> str:
    """Which plans agree in every bit."""
    worst = pairs.groupby(["line", "column"], sort=False)["share"].max()
    names = list(dict.fromkeys([*pairs["column"], *pairs["line"]]))
    groups: list[list[str]] = []
    for name in names:
        for group in groups:
            if all(worst.get((name, other), worst.get((other, name), 1.0)) == 0 for other in group):
                group.append(name)
                break
        else:
            groups.append([name])
    shared = [
        joined(name.replace("\n", " ") for name in group) for group in groups if len(group) > 1
    ]
    return (
        f"no bit differs between {'; '.join(shared)}"
        if shared
        else "no two plans agree in all bits"
    )


def _briefly(share: float) -> str:
    """A share as a cell holds it."""
    return percent(share).replace("under ", "< ") if share else "equal"


def _parts(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of changes to late; and those of pairs of plans in bfloat16, late among them."""
    changes = rows[rows["against"].isin([LATE.name, PLUS.name])]
    pairs = rows[(rows["format"] == "bfloat16") & (rows["gain"] == "random") & (rows["line"] != "")]
    names = {LATE.name: "late"} | {plan.name: short for _, short, plan in CHANGES}
    column = pairs["against"].map(names)
    pairs = pairs.assign(column=column, line=pairs["line"].str.replace("\n", " "))
    return changes, pairs


def _shares(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with the share of outputs that differ, in the order of the changes."""
    places = {plan.name: (at, *labels) for at, (*labels, plan) in enumerate(CHANGES)}
    order, change, line = zip(*rows["plan"].map(places), strict=True)
    share = rows["against_differs"] / (rows["rows"] * rows["hidden"])
    # Over all seeds.
    share = share.groupby([rows[key] for key in ("plan", "against", "format", "gain")])
    share = share.transform("mean")
    rows = rows.assign(share=share, order=order, change=change, line=line)
    rows["column"] = rows["gain"].map(GAINS)
    return rows.sort_values("order", kind="stable")
