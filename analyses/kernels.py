# SPDX-License-Identifier: Apache-2.0
"""The norms of the libraries that are installed: are they right, and whose plan do they follow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from precision_lab import identify, validate
from precision_lab.kernels import installed
from precision_lab.report import Cell, PageTable, charts
from precision_lab.report.charts import joined, percent

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

question = "Are the norms of installed libraries right, and which plan do they follow?"
NORMS = {"rms": "RMSNorm", "layer": "LayerNorm"}
ABSENT = "not installed"
words = {
    "sound": "every output of every probe is one that a float32 computation can give: the "
    "statistic in float32 or wider, each cast to nearest",
    "late": "gain and bias in float32, then one rounding to the format",
    "early": "x·r is rounded to the format, then multiplied by the gain",
    "direct": "a mean of squares, or of squared deviations from the mean, in any order",
    "welford": "only the wider bound of running updates, or of scale-and-shift, explains it",
    "one pass": "the variance as E[x²] − E[x]², which cancels where the mean is large; flax takes "
    "it so, and in two passes, which are sound, with use_fast_variance=False",
    "share": "of the outputs that the nearest known plan gives bit for bit",
    "plan": "the known implementations whose emulation gives every output bit for bit",
}  # fmt: skip


def measure(progress: Callable[[int, int], None]) -> list[dict[str, Any]]:
    """A verdict and the nearest plan of each library's norm, in each format that it takes."""
    verdicts: list[dict[str, Any]] = []
    total = sum(len(row.formats) for row in installed.values())
    progress(0, total)
    for row in installed.values():
        kernel_columns = {"kernel": row.name, "package": row.package, "norm": row.norm}
        try:
            kernel = row.make()
        except ImportError as error:
            verdicts.append(
                {**kernel_columns, **absent_columns(), "sentence": f"{ABSENT}: {error}"}
            )
            progress(len(verdicts), total)
            continue
        for format in row.formats:
            offset = row.weight_offset
            verdict = validate(
                kernel, norm=row.norm, format=format, weight_offset=offset, name=row.name
            )
            best = identify(kernel, norm=row.norm, format=format, weight_offset=offset)[0]
            verdicts.append(
                {
                    **kernel_columns,
                    "format": format,
                    "status": "sound" if verdict.passed else "not sound",
                    "schedule": verdict.schedule or "",
                    "share": best.share,
                    "plan": ", ".join(best.known) if best.exact else "",
                    "nearest": best.name,
                    "outputs": verdict.outputs,
                    "unsupported": "; ".join(verdict.unsupported),
                    "notes": "; ".join(verdict.notes),
                    "sentence": verdict.sentence,
                }
            )
            progress(len(verdicts), total)
    return verdicts


def absent_columns() -> dict[str, Any]:
    """The columns of a library that is not there."""
    texts = ("format", "schedule", "plan", "nearest", "unsupported", "notes")
    return {**dict.fromkeys(texts, ""), "status": ABSENT, "share": float("nan"), "outputs": 0}


def figures(rows: pd.DataFrame) -> list[charts.Chart]:
    """A table of kernels and formats: the share that the nearest plan gives."""
    ran = rows[rows["status"] != ABSENT]
    drawn = ran.assign(
        title=ran["norm"].map(NORMS),
        faulty=ran["status"] == "not sound",
        column=ran["format"],
    )
    return [
        charts.shares(
            drawn, name="plans", x="column", y="kernel", panel="title", value="share",
            lost=("faulty", "not sound"), title=plan_count(rows),
            caption="The share of outputs that the nearest plan gives, bit for bit; 100 %: a plan "
            "is the kernel's own, and the table below names it. A blank: the library has no such "
            "kernel.",
        )
    ]  # fmt: skip


def findings(rows: pd.DataFrame) -> list[str]:
    """What the rows say, the headline first."""
    ran = rows[rows["status"] != ABSENT]
    wrong = ran[ran["status"] == "not sound"]
    sound = int((ran["status"] == "sound").sum())
    first = (
        f"{sound} of {len(ran)} kernels of installed libraries, counted by format, are sound on "
        f"{int(ran['outputs'].sum()):,} outputs; {plan_count(rows)}."
    )
    texts = [first]
    texts += [str(sentence) for sentence in wrong["sentence"]]
    once = wrong[wrong["nearest"].str.contains("statistic=one_pass")]
    for kernel, part in once.groupby("kernel", sort=False):
        texts.append(
            f"{kernel} in {joined(part['format'])}, {len(part)} of those not sound: the nearest"
            " plan takes the variance in one pass."
        )
    for schedule, part in ran[ran["status"] == "sound"].groupby("schedule", sort=False):
        listed = "; ".join(
            f"{kernel} in {joined(mine['format'])}"
            for kernel, mine in part.groupby("kernel", sort=False)
        )
        texts.append(f"Explained by {schedule}, {len(part)}: {listed}.")
    for note, part in ran[ran["notes"] != ""].groupby("notes", sort=False):
        listed = joined(f"{one.kernel} in {one.format}" for one in part.itertuples())
        texts.append(f"{len(part)} of {len(ran)}, {listed}: {str(note).removesuffix('.')}.")
    gone = rows[rows["status"] == ABSENT]["kernel"]
    if len(gone):
        texts.append(f"Not installed where this was measured, {len(gone)}: {joined(gone)}.")
    return texts


def tables(rows: pd.DataFrame) -> list[PageTable]:
    """Every kernel and format with its verdict."""
    return [
        PageTable(
            title="Verdicts", rows=[table_line(row) for row in rows.to_dict("records")],
            note="All probes, two eps, rows of 1 to 16,385 elements. A plan is named where its "
            "emulation gives every output of the identifying calls.",
        )
    ]  # fmt: skip


def table_line(row: Any) -> dict[str, Any]:
    """A line of the table."""
    near = f"{row['nearest']} ({percent(row['share'])})" if row["nearest"] else ""
    return {
        "kernel": Cell(row["kernel"]),
        "format": Cell(row["format"]),
        "verdict": Cell(row["status"]),
        "schedule": Cell(row["schedule"]),
        "plan": Cell(row["plan"] or (f"none; the nearest is {near}" if near else ""), "wide"),
        "notes": Cell("; ".join(filter(None, (row["notes"], row["unsupported"]))), "wide"),
    }


def plan_count(rows: pd.DataFrame) -> str:
    """How many follow a plan bit for bit."""
    ran = rows[rows["status"] != ABSENT]
    return f"{int((ran['plan'] != '').sum())} of {len(ran)} follow a known plan bit for bit"
