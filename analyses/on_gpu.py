# SPDX-License-Identifier: Apache-2.0
"""torch's norms on a GPU: what ``benchmarks/gpu_check.py`` found, and on which device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from precision_lab.report import Cell, PageTable, charts
from precision_lab.report.charts import joined, percent

if TYPE_CHECKING:
    import pandas as pd

question = "Are torch's norms right on a GPU, and which plan do they follow?"
made_by = "python benchmarks/gpu_check.py"
NORMS = {"rms": "RMSNorm", "layer": "LayerNorm"}
ABSENT = "not run"
SHOWN = 4
words = {
    "sound": "every output of every probe is one that a float32 computation can give",
    "compiled": "by torch.compile, with sizes left open",
    "share": "of the outputs that the nearest known plan gives bit for bit",
    "ieee, saturate": "what is too large becomes the format's NaN or infinity, or its largest",
}


def figures(rows: pd.DataFrame) -> list[charts.Chart]:
    """A table of kernels and formats: the share that the nearest plan gives."""
    ran = kernels_run(rows)
    drawn = ran.assign(title=ran["norm"].map(NORMS), faulty=ran["status"] == "not sound")
    return [
        charts.shares(
            drawn, name="plans", x="format", y="kernel", panel="title", value="share",
            lost=("faulty", "not sound"), title=f"{plan_count(ran)}, {device(rows)}",
            caption="The share of outputs that the nearest plan gives, bit for bit; 100 %: a plan "
            "is the kernel's own, and the table below names it.",
        )
    ]  # fmt: skip


def findings(rows: pd.DataFrame) -> list[str]:
    """Where it ran and what came out, the headline first."""
    ran = kernels_run(rows)
    where = f"{device(rows)}, on {rows['day'].iloc[0]}"
    first = (
        f"{int((ran['status'] == 'sound').sum())} of {len(ran)} kernels of torch, counted by"
        f" format, are sound {where}, on {int(ran['outputs'].sum()):,} outputs; {plan_count(ran)}."
    )
    if rows["kind"].iloc[0] != "cuda":
        first = f"Not run on a GPU yet. {first}"
    texts = [first]
    texts += [f"{one.why.removesuffix('.')}." for one in ran.itertuples() if one.why]
    lost = rows[rows["status"] == ABSENT]
    for why, part in lost.groupby("why", sort=False):
        listed = joined(f"{one.kernel} in {one.format}" for one in part.itertuples())
        texts.append(f"Not run, {len(part)}: {listed} ({why}).")
    casts = rows[rows["part"] == "cast"]
    right = casts[casts["status"] == "right"]
    policies = [name for name in ("ieee", "saturate") if len(right) and not right[name].any()]
    named = f", all under the policy {' and '.join(policies)}" if policies else ""
    texts.append(
        f"{len(right)} of {len(casts)} casts to fp8 are correctly rounded on all"
        f" {int(casts['compared'].sum()):,} values compared{named}."
    )
    return texts


def tables(rows: pd.DataFrame) -> list[PageTable]:
    """Every kernel and format with its verdict, and the casts."""
    parts = {part: lines.to_dict("records") for part, lines in rows.groupby("part", sort=False)}
    return [
        PageTable(
            title="Verdicts", rows=[kernel_line(row) for row in parts.get("kernel", [])],
            note="A plan is named where its emulation gives every output of the identifying calls.",
        ),
        PageTable(
            title="Casts to fp8", rows=[cast_line(row) for row in parts.get("cast", [])],
            note="Values that are not the correctly rounded one, under either policy: a cast is "
            "right where one of both is 0.",
        ),
    ]  # fmt: skip


def kernel_line(row: Any) -> dict[str, Any]:
    """A line of the table of kernels."""
    plans = row["plan"].split(", ")
    plan = ", ".join(plans[:SHOWN]) + (" …" if len(plans) > SHOWN else "")
    near = f"none; the nearest is {row['nearest']} ({percent(row['share'])})"
    return {
        "kernel": Cell(row["kernel"]),
        "format": Cell(row["format"]),
        "verdict": Cell(row["status"]),
        "schedule": Cell(row["schedule"]),
        "plan": Cell(plan or (near if row["nearest"] else row["why"]), "wide"),
        "seconds": row["seconds"],
    }


def cast_line(row: Any) -> dict[str, Any]:
    """A line of the table of casts."""
    numbers = {name: int(row[name]) for name in ("compared", "ieee", "saturate")}
    return {"from": Cell(row["format"]), "cast": Cell(row["kernel"]), **numbers,
            "verdict": Cell(row["status"])}  # fmt: skip


def kernels_run(rows: pd.DataFrame) -> pd.DataFrame:
    """The kernels that ran."""
    return rows[(rows["part"] == "kernel") & (rows["status"] != ABSENT)]


def device(rows: pd.DataFrame) -> str:
    """Where it ran."""
    one = rows.iloc[0]
    return f"on {one['device']}" if one["kind"] == "cuda" else f"on the CPU ({one['device']})"


def plan_count(ran: pd.DataFrame) -> str:
    """How many follow a plan bit for bit."""
    return f"{int((ran['plan'] != '').sum())} of {len(ran)} follow a known plan bit for bit"
