# SPDX-License-Identifier: Apache-2.0
"""Every norm of two real models, layer by layer."""

from __future__ import annotations

import pandas as pd

from precision_lab import charts
from precision_lab.charts import joined, listed, number
from precision_lab.formats import formats
from precision_lab.plans import plans
from precision_lab.sweep import Sweep, capture

question = "What does low precision do to every norm of a real model?"
SQUARES = plans["all-low"].replace(sum_format="float32")
LANES = {
    "late": "float32, cast late",
    "early": "float32, cast early",
    "all-low": "all in the format",
    SQUARES.name: "all but the sums",
}
HALVES = ["float16", "bfloat16"]
KINDS = {"inf": "inf", "NaN": "nan", "zero": "zero"}
FINAL = 30  # where the norm after the last layer of SmolLM2 is drawn


def sweep(*, full: bool) -> list[Sweep]:
    """Both captures, and rows of padding under MiniLM's eps."""
    models = {"norm": ("rms", "layer"), "inputs": (capture("smollm2"), capture("minilm"))}
    fp8 = ["float8_e4m3fn", "float8_e5m2"] if full else ["float8_e4m3fn"]
    three = ("late", "early", "all-low")
    return [
        Sweep(**models, formats=HALVES, plans=(*three, SQUARES)),
        Sweep(**models, formats=fp8, plans=three, scales="per_tensor"),
        Sweep(norm="layer", inputs="zero", formats=HALVES, plans=three, eps=1e-12, hidden=384),
    ]


def figures(rows: pd.DataFrame) -> list[charts.Chart]:
    """Overflow and error over SmolLM2's layers; MiniLM's errors; what becomes of its eps."""
    smollm2, minilm, _ = _parts(rows)
    edge = formats["float16"].overflow_edge ** 0.5
    eps = minilm["eps"].min()
    gone = [name for name in rows["format"].unique() if formats[name].round(eps) == 0]
    hit, spared, wide = _overflowing(smollm2)
    held = pd.DataFrame(
        [
            {"format": name, "smallest": row.smallest, "tiny": row.tiny, "largest": row.largest}
            for name, row in formats.items()
            if name in {"float32", *rows["format"]}
        ]
    )
    return [
        charts.strips(
            smollm2, name="overflow-by-layer", xlabel="layer", x="at", lane="lane", group="where",
            title=f"SmolLM2-135M: float16 squares overflow in layers {listed(hit)}, not in "
            f"{listed(spared)}; with a float32 statistic in {listed(wide)}",
            lost={kind: f"lost_{kind}" for kind in KINDS}, above=("largest |x|", "absmax"),
            limits={f"{number(edge)}: float16 squares overflow": edge},
            tick=lambda k: f"{k:.0f}", step=5,
            caption="Above: the largest element that enters each norm; crosses are past what "
            "float16 can square. Below: coloured where rows of the layer are lost, by format and "
            "plan; the paler, the fewer. The last column is the norm after the last layer.",
        ),
        charts.lines(
            smollm2, name="error-by-layer", xlabel="layer", ylabel="worst error, ulp", x="at",
            y="arithmetic_ulp_max", series="lane", panel="where", bound="bound_ulp",
            title="SmolLM2-135M: how wrong is the worst output of each layer's norms?",
            caption="Error against the exact norm of the inputs as stored, and the largest that "
            "the plan can make on them. A gap: every row is lost. A bound at the top edge: there "
            "is none.",
        ),
        charts.dots(
            minilm, name="minilm", by="where", series="lane", xlabel="error, ulp of the format",
            title="MiniLM: how wrong are its 13 LayerNorms?", value="arithmetic_ulp_p99",
            beside="arithmetic_ulp_max", meaning=("99 % of outputs", "the worst"),
            bound="bound_ulp",
            caption="Error against the exact norm of the inputs as stored, and the largest that "
            "the plan can make on them. The worst outputs are those that bias and value cancel in.",
        ),
        charts.ranges(
            held, name="eps", by="format", smallest="smallest", normal="tiny", largest="largest",
            title=f"MiniLM's eps {number(eps)} is 0 in {joined(gone)}", xlabel="magnitude",
            limits={f"eps {number(eps)}": eps},
            caption="What each format can hold, its subnormal values drawn thin. Left of the bar "
            "an eps is 0, and a row of zeros, such as padding, becomes 0 × inf.",
        ),
    ]  # fmt: skip


def findings(rows: pd.DataFrame) -> list[str]:
    """What the rows say, the headline first."""
    smollm2, minilm, padding = _parts(rows)
    hit, spared, wide = _overflowing(smollm2)
    low = (
        smollm2[smollm2["plan"] == "all-low"]
        .groupby("where", sort=False)[["arithmetic_rows_lost", "rows"]]
        .sum()
    )
    eps = minilm["eps"].min()
    first = (
        f"Squares taken in float16 overflow in layers {listed(hit)} of SmolLM2-135M, not in "
        f"{listed(spared)}; with a float32 statistic they overflow in {listed(wide)}."
    )
    counts = [f"{lost} in {where}" for where, (lost, _) in low.iterrows()]
    second = (
        f"With every step in the format, of {low['rows'].max()} rows that enter SmolLM2's norms "
        f"{joined(counts)} come out as zeros, NaN or infinity."
    )
    said = [first, second]
    for name, part in (("SmolLM2", smollm2), ("MiniLM", minilm)):
        worst = part.groupby(["plan", "where"], sort=False)["arithmetic_ulp_p99"].max()
        every = [f"{number(ulp)} in {where}" for where, ulp in worst["all-low"].items()]
        said.append(
            f"In each norm of {name} 99 % of outputs are within {number(worst['late'].max())} ulp "
            f"when cast late, {number(worst['early'].max())} when cast early; with every step in "
            f"the format, {joined(every)}."
        )
    for name, part in padding.groupby("format", sort=False):
        nan = part.groupby("plan")["arithmetic_rows_nan"].sum()
        stored = number(float(formats[str(name)].round(eps)))
        said.append(
            f"MiniLM's eps {number(eps)} is {stored} in {name}: of {part['rows'].max()} rows of "
            f"padding {nan['all-low']} become NaN with every step in it, {nan['late']} with a "
            f"float32 statistic."
        )
    return said


def _overflowing(smollm2: pd.DataFrame) -> tuple[set[int], set[int], set[int]]:
    """Layers whose squares overflow in float16, those that don't, and with a float32 statistic."""
    inside = smollm2[smollm2["at"] < FINAL]
    half = inside[(inside["format"] == "float16") & (inside["plan_square_format"] == "input")]
    wide = smollm2[smollm2["plan_square_format"] == "float32"]
    hit = set(half.loc[half["overflow_square"] > 0, "at"])
    return hit, set(half["at"]) - hit, set(wide.loc[wide["overflow"] > 0, "at"])


def _parts(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """The rows of SmolLM2, of MiniLM and of padding, with their places and names."""
    layer = rows["layer"].str.extract(r"layers?\.(\d+)\.", expand=False).astype(float)
    lost = {kind: rows[f"arithmetic_rows_{word}"] for kind, word in KINDS.items()}
    steps = list(rows.filter(like="overflow_"))
    rows = rows.assign(
        at=layer.fillna(FINAL).astype(int),
        lane=rows["plan"].map(LANES),
        where=rows["scale"].map({"none": "", "per_tensor": "scaled "}) + rows["format"],
        overflow=rows[steps].sum(axis=1),
        **{f"lost_{kind}": count / rows["rows"] for kind, count in lost.items()},
    )
    source = rows["input"]
    return rows[source == "smollm2"], rows[source == "minilm"], rows[source == "zero"]
