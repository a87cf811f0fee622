# SPDX-License-Identifier: Apache-2.0
"""The answer to "which eps?" as one page, with its figure inside it: it needs no file beside it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from precision_lab.eps import HARM, NOTE, by_code, counted
from precision_lab.numbers import formats
from precision_lab.report.charts.shrink_chart import shrinks
from precision_lab.report.charts.words import number, percent
from precision_lab.report.page import answer_html
from precision_lab.report.tables import Cell, PageTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from precision_lab.eps import EpsAdvice, Finding, LayerAdvice
    from precision_lab.report.charts.drawing import Chart

FEWEST, MOST = -9.0, -2.0
"""Powers of ten of eps between which the figure always reaches."""
EACH = 4
"""Places of the curves in a power of ten."""


def eps_html(advice: EpsAdvice, *, command: str = "") -> str:
    """The page: the answer, the figure, the findings, the norms one by one.

    Parameters
    ----------
    advice
        What is shown.
    command
        What makes the page again, or "".
    """
    cures = [cure_table(advice)] if advice.cures else []
    return answer_html(
        "eps.html",
        advice=advice,
        chart=shrink_chart(advice),
        sentences={word: [*sentences(advice.findings, word)] for word in (HARM, NOTE)},
        tables=[*cures, *part_tables(advice), layer_table(advice.layers)],
        command=command,
    )


def sentences(findings: Iterable[Finding], severity: str) -> Iterator[str]:
    """The findings, one a code: of a code that many norms have the first, and a count."""
    for first, others in by_code(one for one in findings if one.severity == severity):
        where = f"{first.layer}: " if first.layer else ""
        more = f", and so in {counted(others, 'more norm')}" if others else ""
        yield f"{first.code}: {where}{first.text}{more}."


def shrink_chart(advice: EpsAdvice, *, name: str = "shrink") -> Chart | None:
    """The figure: what each eps takes off the median row of each norm, the safe ones shaded.

    None where no row has a size.
    """
    sized = [layer for layer in advice.layers if layer.rms is not None and layer.rms[1] > 0]
    if not sized:
        return None
    eps = advice.configured_eps
    adding, output = formats[advice.adding_format], formats[advice.output_format]
    chosen = {f"configured {number(eps)}": eps} if eps else {}
    if advice.recommended and advice.recommended != eps:
        chosen |= {f"recommended {number(advice.recommended)}": advice.recommended}
    return shrinks(
        pd.DataFrame([row for layer in sized for row in _curve(layer, _range(chosen.values()))]),
        name=name, title=_title(advice), x="eps", y="shrink", series="layer", xlabel="eps",
        ylabel="share it takes off the outputs", safe=advice.interval, chosen=chosen,
        marks={f"smallest {adding.name}": adding.smallest},
        limits={f"half an ulp of {output.name}": 2.0 ** -(output.precision + 1)},
        caption="What an eps takes off the outputs of each norm's median row, "
        "1 − 1/√(1 + eps/ms), ms its mean square. Shaded: the eps without harm to any norm. Half "
        "an ulp of an output is at least the share at the dashed line.",
    )  # fmt: skip


def layer_table(layers: Iterable[LayerAdvice]) -> PageTable:
    """The norms one by one."""
    rows = [
        {
            "norm": layer.layer,
            "hidden": layer.hidden,
            "rows": layer.rows,
            "rms, median": number(layer.rms[1]) if layer.rms else "",
            "safe eps": Cell(_ends(layer.interval), "wide"),
            "median row shrinks": percent(layer.shrink[0]) if layer.shrink else "",
            "absorbed": layer.absorbed,
            "dominated": layer.dominated,
            "lost": layer.lost,
            "zeros give": layer.zero_row,
            "harm": Cell(", ".join(layer.harm) or "none", "wide"),
        }
        for layer in layers
    ]
    return PageTable(
        title="Norm by norm",
        rows=rows,
        note="Absorbed: rows whose mean square swallows eps; dominated: rows whose mean square is "
        "below it; lost: rows that come out as NaN or infinity, one row of zeros included.",
    )


def part_tables(advice: EpsAdvice) -> Iterator[PageTable]:
    """The parts of a model, where it has more than one, and the norms that are not judged."""
    if len(advice.parts) > 1:
        rows = [
            {
                "part": Cell(part.part, "wide"),
                "norm": part.norm,
                "norms": "" if part.count is None else part.count,
                "hidden": part.hidden_size,
                "eps": "none" if part.eps is None else number(part.eps),
                "gain": f"{number(part.weight_offset)} + w" if part.weight_offset else "w",
                "plan": part.plan,
                "verdict": part.verdict,
                "safe eps": Cell(_ends(part.interval), "wide"),
            }
            for part in advice.parts
        ]
        yield PageTable(
            title="Part by part",
            rows=rows,
            note="Norms of a part that share their kind, eps, width, gain and plan.",
        )
    if advice.unjudged:
        yield PageTable(
            title="Not judged",
            rows=[
                {"part": Cell(one.part, "wide"), "kind": one.kind, "why": Cell(one.why, "wide")}
                for one in advice.unjudged
            ],
            note="The verdict says nothing of these.",
        )


def cure_table(advice: EpsAdvice) -> PageTable:
    """What would help where no eps does, and what it costs."""
    rows = [
        {
            "cure": Cell(cure.name, "wide"),
            "rows lost": cure.lost,
            "99 % of outputs within, ulp": _maybe(cure.ulp_p99),
            "largest error, ulp": _maybe(cure.ulp_max),
            "relative error, rms": _maybe(cure.relative_rms),
        }
        for cure in advice.cures
    ]
    return PageTable(
        title="What would help",
        rows=rows,
        note="The same rows with one thing changed, held to the exact norm; ulp of the outputs' "
        "own format.",
    )


def _range(values: Iterable[float]) -> list[float]:
    known = [math.log10(value) for value in values if value > 0]
    low, high = min([FEWEST, *(k - 1 for k in known)]), max([MOST, *(k + 1 for k in known)])
    steps = np.arange(math.floor(low) * EACH, math.ceil(high) * EACH + 1)
    return [float(value) for value in 10.0 ** (steps / EACH)]


def _curve(layer: LayerAdvice, places: list[float]) -> list[dict[str, float | str]]:
    assert layer.rms is not None  # noqa: S101 - by the caller
    square = layer.rms[1] ** 2
    return [
        {"layer": layer.layer, "eps": eps, "shrink": -math.expm1(-0.5 * math.log1p(eps / square))}
        for eps in places
    ]


def _title(advice: EpsAdvice) -> str:
    where = f"{advice.model or 'This model'} in {advice.format}, plan {advice.plan}"
    if advice.interval is None:
        return f"{where}: no eps is safe"
    chosen = advice.recommended if advice.recommended is not None else advice.interval[0]
    word = {"keep": "keep", "change": "change to"}[advice.verdict]
    return f"{where}: {word} eps {number(chosen)}"


def _ends(interval: tuple[float, float] | None) -> str:
    return "none" if interval is None else f"{number(interval[0])} to {number(interval[1])}"


def _maybe(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else number(value)
