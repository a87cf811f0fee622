# SPDX-License-Identifier: Apache-2.0
"""Error against hidden size and order of summation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from precision_lab import Sweep, family, formats, orders, plans
from precision_lab.report import charts
from precision_lab.report.charts import LOST, joined, number, power, surviving

if TYPE_CHECKING:
    import pandas as pd

question = "How much does the order of a sum cost as rows grow?"
LANES = {
    "sequential": "in turn",
    "blocked:128": "blocks of 128",
    "lanes:256x4": "GPU lanes",
    "torch-cascade": "torch's cascade",
    "pairwise": "pairs",
    "kahan": "Kahan",
    "wider:float64": "in float64",
}
words = {
    "in turn": "one addend after the other",
    "blocks of 128": "blocks of 128 addends in turn, then the blocks' sums in turn",
    "GPU lanes": "256 threads, each with vectors of 4 addends, in turn; then the threads' sums in "
    "pairs",
    "torch's cascade": "torch's order on a CPU: 8 lanes, four accumulators, sums of 16 upwards",
    "pairs": "NumPy's pairwise order: halves down to blocks of 128 in 8 lanes",
    "Kahan": "in turn with Kahan's compensation, which carries what each addition lost",
    "in float64": "in turn in a float64 accumulator, rounded once",
    "unit roundoff": "u, of the format that adds: half the distance from 1 to the next number",
    "statistic": "the mean of squares of a row",
    "1/rms": "one over the root of the mean of squares, which the elements are multiplied by",
    "lost row": charts.LOST_ROW,
}
SUMS = ("float32", "bfloat16")
ERROR = "arithmetic_relative_max"


def sweep(*, full: bool) -> list[Sweep]:
    """Normal inputs, every step exact to float64 but the sum."""
    exact = {
        f"{step}_format": "float64" for step in ("compute", "square", "eps", "reciprocal", "output")
    }
    by_format = [
        [plans["late"].replace(sum_format=name, order=order, **exact) for order in LANES]
        for name in ((*SUMS, "float16") if full else SUMS)
    ]
    shared = {
        "formats": "bfloat16", "inputs": family("normal", scale=0.5), "eps": 0.0, "gains": "none",
        "rows": 16 if full else 4,
    }  # fmt: skip
    sizes = [2**k for k in range(6, 17, 1 if full else 2)]
    # Kahan's in a narrow format takes longest and says least.
    slow = [plan for some in by_format for plan in some if _slow(plan.order, plan.sum_format)]
    quick = [plan for some in by_format for plan in some if plan not in slow]
    return [
        Sweep(**shared, plans=quick, hidden=sizes),
        Sweep(**shared, plans=slow, hidden=sizes if full else [n for n in sizes if n <= 1024]),
    ]


def figures(rows: pd.DataFrame) -> list[charts.Chart]:
    """Error over hidden size; and at the longest rows beside the proved bound."""
    rows = _placed(rows)
    longest = rows[rows["hidden"] == rows["hidden"].max()]
    return [
        charts.lines(
            rows, name="error-by-hidden-size", title=_message(rows), x="k", y=ERROR, series="lane",
            panel="panel", xlabel="hidden size", ylabel="relative error of 1/rms", tick=power,
            step=2, lost=LOST, tall=1.7, guides={"½·n·u": "linear", "½·√n·u": "root"},
            caption="The largest relative error of 1/rms, one over the root of the mean of "
            "squares, of normal inputs in bfloat16, when only the sum is rounded. n is the hidden "
            "size, u the unit roundoff; the root halves the error of a sum. In bfloat16 Kahan's "
            "order takes long and stops early.",
        ),
        charts.dots(
            longest, name="error-and-bound", by="lane", series="sum", value=ERROR, bound="bound",
            title=f"At hidden size {number(longest['hidden'].max())}: what each order errs by, "
            "and the most it could", lost=LOST, xlabel="relative error of 1/rms",
            limits={"100 %": 1.0},
            caption="The largest relative error of 1/rms and the bound that follows from the depth "
            "and the kind of the order's tree. An arrow at the edge: there is no bound.",
        ),
    ]  # fmt: skip


def findings(rows: pd.DataFrame) -> list[str]:
    """What the rows say, the headline first."""
    all_rows, rows = rows, _placed(rows)
    texts = [f"{_message(rows)}."]
    for name, part in rows.groupby("sum", sort=False):
        least, most = (_at(part, n) for n in (part["hidden"].min(), part["hidden"].max()))
        last = number(part["hidden"].max())
        clauses = [f"{LANES[order]} {_share(error)}" for order, error in most.items()]
        texts.append(f"Sums in {name} at hidden size {last}, error of 1/rms: {joined(clauses)}.")
        ratio = part["hidden"].max() / part["hidden"].min()
        if ratio > 1 and least["sequential"] > 0:
            growth = most["sequential"] / least["sequential"]
            texts.append(
                f"In {name} the error of sums in turn grows {number(growth)}-fold while rows grow "
                f"{number(ratio)}-fold: as n to the power of "
                f"{number(math.log(growth) / math.log(ratio))}; √n would be the power ½."
            )
        u = formats[str(name)].unit_roundoff
        within = [LANES[order] for order, error in most.items() if error <= u]
        texts.append(
            f"In {name} {joined(within)} stay within u = {_share(u)} there; the largest error is "
            f"{_share(most.max())}."
        )
    known = rows[rows["bound"] < math.inf]
    used = (known[ERROR] / known["bound"]).max()
    texts.append(
        f"No error passes what its order allows: the largest is {number(used)} of its bound, and "
        f"the bound of the whole plan {charts.bound_held(all_rows)}."
    )
    return texts


def _slow(order: str, sums: str) -> bool:
    return order == "kahan" and formats[sums].bits < 32


def _message(rows: pd.DataFrame) -> str:
    """The price of adding in turn at the longest rows, the coarsest format first."""
    clauses: dict[str, list[str]] = {"sequential": [], "pairwise": []}
    for name in sorted(rows["sum"].unique(), key=lambda name: -formats[name].unit_roundoff):
        part = rows[rows["sum"] == name]
        errors = _at(part, part["hidden"].max())
        for order, some in clauses.items():
            some.append(f"{_share(errors.get(order, math.nan))} in {name}")
    turn, pairs = (joined(some) for some in clauses.values())
    return (
        f"{number(rows['hidden'].max())} squares added one after the other: 1/rms is off by "
        f"{turn}; added in pairs, by {pairs}"
    )


def _share(error: float) -> str:
    """A relative error as people say it."""
    return f"{number(100 * error)} %"


def _at(rows: pd.DataFrame, hidden: int) -> pd.Series[float]:
    """The largest error of each order at a size, or at its own longest rows."""
    mine = rows[rows["hidden"] == hidden]
    return mine.groupby("plan_order", sort=False)[ERROR].max()


def _placed(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with their place, their lane, the rates of growth and the bound on r."""
    rows = surviving(rows)
    target = [formats[name] for name in rows["plan_sum_format"]]
    u = rows["plan_sum_format"].map({row.name: row.unit_roundoff for row in target})
    return rows.assign(
        k=rows["hidden"].map(math.log2),
        lane=rows["plan_order"].map(LANES),
        sum=rows["plan_sum_format"],
        panel="sum in " + rows["plan_sum_format"],
        linear=rows["hidden"] * u / 2,
        root=rows["hidden"] ** 0.5 * u / 2,
        bound=[
            _bound(order, hidden, name, rms)
            for order, hidden, name, rms in zip(
                rows["plan_order"], rows["hidden"], rows["plan_sum_format"], rows["rms_min"],
                strict=True,
            )
        ],
    )  # fmt: skip


def _bound(order: str, hidden: int, name: str, rms: float) -> float:
    """The most that r can err by, relatively: the sum is at least this share of the exact one."""
    target = formats[name]
    # Addends are rounded to the format, and those below its range by an absolute amount.
    addends = 1 - target.unit_roundoff - target.smallest / rms**2
    share = orders[order].least(hidden, target) * addends * (1 - target.unit_roundoff)
    return share**-0.5 - 1 if share > 0 else math.inf
