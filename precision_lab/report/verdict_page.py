# SPDX-License-Identifier: Apache-2.0
"""A verdict as one page, with its figure inside it: the file needs nothing beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from precision_lab.report.charts.signed_chart import signed
from precision_lab.report.page import answer_html
from precision_lab.report.tables import PageTable
from precision_lab.validation import hex_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from precision_lab.report.charts.drawing import Chart
    from precision_lab.validation import Failure, Verdict

LONGEST = 64
"""Values of a row of a shrunk input that are written out."""


def verdict_html(verdict: Verdict, *, command: str = "") -> str:
    """The page: the sentence, each failure with its input and outputs, the errors by probe.

    Parameters
    ----------
    verdict
        What is shown.
    command
        What makes the page again, or "".
    """
    power = [
        {
            "hidden": one.hidden,
            "in 1/std" if verdict.claim.norm.centred else "in 1/rms": f"{one.root:.1e}",
            "in an element": f"{one.element:.1e}",
        }
        for one in verdict.power
    ]
    table = PageTable(
        title="Smallest detectable errors",
        rows=power,
        note="Relative errors from which on an output leaves what is sound.",
    )
    return answer_html(
        "verdict.html",
        verdict=verdict,
        chart=error_chart(verdict) if verdict.errors else None,
        failures=[(failure, arrays_in_hex(failure)) for failure in verdict.failures],
        tables=[table] if power else [],
        command=command,
    )


def error_chart(verdict: Verdict) -> Chart:
    """The figure of a verdict: signed errors of its outputs, in ulp, by probe."""
    rows = pd.DataFrame([vars(one) for one in verdict.errors])
    output = verdict.claim.output_format.name
    return signed(
        rows,
        name="errors",
        title=f"How far are the outputs of {verdict.kernel} from the exact values?",
        caption="Outputs less exact values, by probe, from the least to the largest. Half an ulp is"
        " what rounding once costs; rows near √eps and rows with a mean may cost more in float32.",
        xlabel=f"signed error, ulp of {output}",
        by="probe", low="low", high="high", mean="mean",
    )  # fmt: skip


def arrays_in_hex(failure: Failure) -> list[tuple[str, str]]:
    """The shrunk inputs of a failure by name."""
    inputs = failure.inputs
    if inputs is None or not inputs.x.size:
        return []
    return [(name, _in_hex(array)) for name, array in inputs.named_arguments().items()]


def _in_hex(array: NDArray[Any]) -> str:
    rows = array.astype(float).reshape(-1, array.shape[-1])
    lines = []
    for row in rows[:4].tolist():
        more = f" … {len(row)} in all" if len(row) > LONGEST else ""
        lines.append(" ".join(hex_text(value) for value in row[:LONGEST]) + more)
    if len(rows) > 4:
        lines.append(f"… {len(rows)} rows in all")
    return "\n".join(lines)
