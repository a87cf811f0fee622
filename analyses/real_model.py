# SPDX-License-Identifier: Apache-2.0
"""Every norm of two real models, layer by layer."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pandas as pd

from precision_lab import Sweep, captured, formats, plans, recommend_eps
from precision_lab.report import Cell, PageTable, charts, shrink_chart
from precision_lab.report.charts import LOST, at_most, joined, listed, number, surviving

if TYPE_CHECKING:
    from precision_lab import EpsAdvice

question = "What does low precision do to every norm of a real model?"
SQUARES = plans["all-low"].replace(sum_format="float32")
SCALED = plans["all-low"].replace(prescale="row_max")
# What libraries do, and the plan that each of them is but for the order of its sums.
LIBRARIES = {"hf-llama": "early", "torch-rms-norm": "late", "torch-layer-norm": "late"}
LANES = {
    "late": "float32, cast late",
    "early": "float32, cast early",
    "all-low": "all in the format",
    SQUARES.name: "all but the sums",
    SCALED.name: "all, pre-scaled",
    **{name: name for name in LIBRARIES},
}
words = {
    "float32, cast late": "the plan late: all in float32, one rounding to the format at the end",
    "float32, cast early": "the plan early: the statistic in float32, rounded to the format before "
    "the gain",
    "all in the format": "the plan all-low: every step rounds to the format",
    "all but the sums": "the plan all-low, but the sums of the statistic add in float32",
    "all, pre-scaled": "the plan all-low with each row divided by a power of two near its largest "
    "element first",
    **{name: f"the plan of that name: {plans[name].source}" for name in LIBRARIES},
    "scaled": "inputs times one power of two for the tensor, so that the format just holds the "
    "largest of them",
    "statistic": "the mean of squares (RMSNorm) or the mean and the variance (LayerNorm) of a row",
    "lost row": charts.LOST_ROW,
}
HALVES = ["float16", "bfloat16"]
KINDS = {"inf": "inf", "NaN": "nan", "zero": "zero"}
# Models as they are packaged, as they are named, and the plan of their own code.
MODELS = {"smollm2": ("SmolLM2", "hf-llama"), "minilm": ("MiniLM", "torch-layer-norm")}
# The format and plan in which a model's eps has most to tell.
TELLING = {"smollm2": ("float16", "hf-llama"), "minilm": ("float16", "all-low")}
FINAL = 30  # where the norm after the last layer of SmolLM2 is drawn


def sweep(*, full: bool) -> list[Sweep]:
    """Both captures, and rows of padding under MiniLM's eps."""
    models = {"norm": ("rms", "layer"), "inputs": (captured("smollm2"), captured("minilm"))}
    fp8 = ["float8_e4m3fn", "float8_e5m2"] if full else ["float8_e4m3fn"]
    three = ("late", "early", "all-low")
    return [
        Sweep(**models, formats=HALVES, plans=(*three, SQUARES, SCALED, *LIBRARIES)),
        Sweep(**models, formats=fp8, plans=three, scales="per_tensor"),
        Sweep(norm="layer", inputs="zero", formats=HALVES, plans=three, eps=1e-12, hidden=384),
    ]


def figures(rows: pd.DataFrame) -> list[charts.Chart]:
    """Overflow and error over SmolLM2's layers; both models plan by plan; MiniLM's eps."""
    smollm2, minilm, _ = _parts(surviving(rows))
    own_plan = smollm2[~smollm2["plan"].isin(LIBRARIES)]
    edge = formats["float16"].overflow_edge ** 0.5
    eps = minilm["eps"].min()
    gone = [name for name in rows["format"].unique() if formats[name].round(eps) == 0]
    hit, spared, wide = _overflowing(smollm2)
    ranges = pd.DataFrame(
        [
            {"format": name, "smallest": row.smallest, "tiny": row.tiny, "largest": row.largest}
            for name, row in formats.items()
            if name in {"float32", *rows["format"]}
        ]
    )
    return [
        charts.strips(
            smollm2, name="overflow-by-layer", xlabel="layer", x="at", lane="lane", group="where",
            title=f"SmolLM2-135M: float16 squares overflow in {_places(hit)}, not in "
            f"{_places(spared)}; with a float32 statistic in {_places(wide)}",
            lost={kind: f"lost_{kind}" for kind in KINDS}, above=("largest |x|", "absmax"),
            limits={f"{number(edge)}: float16 squares overflow": edge},
            tick=lambda k: f"{k:.0f}", step=5,
            caption="Above: the largest element that enters each norm; crosses are past what "
            "float16 can square. Below: coloured where rows of the layer are lost, by format and "
            "plan; the paler, the fewer. The last column is the norm after the last layer. "
            "All but the sums was measured in 16 bits only.",
        ),
        charts.lines(
            own_plan, name="error-by-layer", xlabel="layer", ylabel="worst error, ulp", x="at",
            y="arithmetic_ulp_max", series="lane", panel="where", bound="bound_ulp",
            lost=LOST,
            title="SmolLM2-135M: how wrong is the worst output of each layer's norms?",
            caption="Error against the exact norm of the inputs as stored, and the largest that "
            "the plan can make on them. Crosses at the top: norms that lose rows, whose errors are "
            "not drawn. A bound at the top edge: there is none. All but the sums, and pre-scaled, "
            "in 16 bits only.",
        ),
        charts.dots(
            smollm2[smollm2["format"].isin(HALVES)], name="smollm2", by="where", series="lane",
            title=_losing_norms(smollm2, briefly=True), value="arithmetic_ulp_p99", lost=LOST,
            beside="arithmetic_ulp_max", meaning=("99 % of outputs", "the worst"),
            xlabel="error, ulp of the format", limits={"½ ulp: correctly rounded": 0.5},
            caption="Error against the exact norm of the inputs as stored, the largest of all 61 "
            "norms that lose no row; and how many rows the others lose.",
        ),
        charts.dots(
            minilm, name="minilm", by="where", series="lane", xlabel="error, ulp of the format",
            title="MiniLM: how wrong are its 13 LayerNorms?", value="arithmetic_ulp_p99",
            beside="arithmetic_ulp_max", meaning=("99 % of outputs", "the worst"),
            bound="bound_ulp", lost=LOST,
            caption="Error against the exact norm of the inputs as stored, and the largest that "
            "the plan can make on them; of a norm that loses rows, no error but how many it loses. "
            "The worst outputs are those that bias and value cancel in.",
        ),
        charts.ranges(
            ranges, name="eps", by="format", smallest="smallest", normal="tiny", largest="largest",
            title=f"MiniLM's eps {number(eps)} is 0 in {joined(gone)}", xlabel="magnitude",
            limits={f"eps {number(eps)}": eps},
            caption="What each format can hold, its subnormal values drawn thin. Left of the bar "
            "an eps is 0, and a row of zeros, such as padding, becomes 0 × inf.",
        ),
        *(
            chart
            for model, (format, plan) in TELLING.items()
            if (chart := shrink_chart(advice(model, format, plan), name=f"eps-{model}"))
        ),
    ]  # fmt: skip


def findings(rows: pd.DataFrame) -> list[str]:
    """What the rows say, the headline first."""
    smollm2, minilm, padding = _parts(surviving(rows))
    hit, spared, wide = _overflowing(smollm2)
    eps = minilm["eps"].min()
    first = (
        f"Squares taken in float16 overflow in {_places(hit)} of SmolLM2-135M, not in "
        f"{_places(spared)}; with a float32 statistic they overflow in {_places(wide)}."
    )
    texts = [first]
    parts = (("smollm2", smollm2), ("minilm", minilm))
    for model, part in parts:
        name = MODELS[model][0]
        texts += [_losses(name, part), _errors(name, part)]
    texts += [f"{_losing_norms(smollm2)}.", *_libraries(smollm2, minilm)]
    for name, part in padding.groupby("format", sort=False):
        nan = part.groupby("plan")["arithmetic_rows_nan"].sum()
        if nan.any():
            stored = number(float(formats[str(name)].round(eps)))
            texts.append(
                f"MiniLM's eps {number(eps)} is {stored} in {name}: of {part['rows'].max()} rows "
                f"of padding {nan['all-low']} become NaN with every step in it, {nan['late']} with "
                f"a float32 statistic."
            )
    return [*texts, *(_eps_kept(model, rows) for model, rows in parts)]


@cache
def advice(model: str, format: str, plan: str) -> EpsAdvice:
    """Which eps is right for a packaged model, on its own rows."""
    return recommend_eps(model, format=format, plan=plan)


def _eps_kept(model: str, rows: pd.DataFrame) -> str:
    """Whether a model may keep its eps in float16, beside the rows it was seen to lose there."""
    name, own_plan = MODELS[model]
    half = rows[(rows["format"] == "float16") & (rows["scale"] == "none")]
    clauses = []
    for plan in (own_plan, "all-low"):
        advised = advice(model, "float16", plan)
        ends = f", safe: {_ends(advised)}" if advised.interval else ""
        mine = half[half["plan"] == plan]
        lost, of = mine[LOST[0]].sum(), mine[LOST[1]].sum()
        clauses.append(
            f"{plan} {advised.verdict} ({advised.reason}{ends}; {lost} of {of} rows lost)"
        )
    return f"{name}'s eps in float16: {'; '.join(clauses)}."


def tables(_: pd.DataFrame) -> list[PageTable]:
    """Which eps is right for each model, by format and plan."""
    advised = [
        (name, advice(model, format, plan))
        for model, (name, own_plan) in MODELS.items()
        for format in HALVES
        for plan in (own_plan, "all-low")
    ]
    lines = [
        {
            "model": name, "format": one.format, "plan": Cell(one.plan, "code"), "eps": one.eps,
            "verdict": one.verdict, "safe eps": Cell(_ends(one), "wide"),
            "why": Cell(one.reason, "wide"),
            "recommended": "none" if one.recommended is None else number(one.recommended),
        }
        for name, one in advised
    ]  # fmt: skip
    return [
        PageTable(
            title="Which eps", rows=lines,
            note="Judged on the rows of the capture and a row of zeros in each norm: outputs stay "
            "within half an ulp of the function with the model's eps, and no row is lost.",
        )
    ]  # fmt: skip


def _ends(advised: EpsAdvice) -> str:
    return "none" if not advised.interval else f"{' to '.join(map(number, advised.interval))}"


def _losses(name: str, rows: pd.DataFrame) -> str:
    """How many rows of a model each plan loses, format by format."""
    low = rows[rows["plan"] == "all-low"].groupby("where", sort=False)[list(LOST)].sum()
    late = int(rows.loc[rows["plan"] == "late", LOST[0]].sum())
    counts = [f"{lost} of {of} in {where}" for where, (lost, of) in low.iterrows()]
    return (
        f"Rows that enter {name}'s norms and are lost, as zeros, NaN or infinity, with every step "
        f"in the format: {joined(counts)}; with a float32 statistic, cast late: {late or 'none'}."
    )


def _errors(name: str, rows: pd.DataFrame) -> str:
    """What 99 % of outputs of each norm stay within, for the norms that lose no row."""
    worst = rows.groupby(["plan", "where"], sort=False)["arithmetic_ulp_p99"].max()
    low = rows[rows["plan"] == "all-low"]
    clauses = []
    for where, part in low.groupby("where", sort=False):
        complete, norms = int((part[LOST[0]] == 0).sum()), len(part)
        if not complete:
            clauses.append(f"in {where} each of its {norms} norms loses rows")
        else:
            some = (
                "" if complete == norms else f" in the {complete} of {norms} norms that lose no row"
            )
            clauses.append(f"{at_most(worst['all-low', where])} in {where}{some}")
    return (
        f"In each norm of {name} 99 % of outputs are within {at_most(worst['late'].max())} ulp "
        f"when cast late, {at_most(worst['early'].max())} when cast early; with every step in the "
        f"format, {joined(clauses)}."
    )


def _losing_norms(smollm2: pd.DataFrame, *, briefly: bool = False) -> str:
    """In how many norms each plan loses rows in float16."""
    half = smollm2[smollm2["format"] == "float16"].assign(hit=lambda rows: rows[LOST[0]] > 0)
    counts = half.groupby("lane", sort=False)["hit"].sum()
    clauses = [
        f"in {count or 'none'} by {_quoted(mine.index) if count or not briefly else 'others'}"
        for count, mine in counts.groupby(-counts, sort=True)
        for count in [-int(count)]
    ]
    norms = half["layer"].nunique()
    return f"Of SmolLM2's {norms} norms in float16 rows are lost {'; '.join(clauses)}"


def _libraries(*models: pd.DataFrame) -> list[str]:
    """How far the largest errors of libraries' plans are from those of the plain plans."""
    clauses = []
    for rows in models:
        worst = rows[rows["scale"] == "none"].pivot_table(
            index=["layer", "format"], columns="plan", values="arithmetic_ulp_p99", dropna=False
        )
        for name, plain in LIBRARIES.items():
            if name in worst:
                most = (worst[name] - worst[plain]).abs().max()
                least = "the same" if most == 0 else f"at most {at_most(most)} ulp apart"
                clauses.append(f"{name} and {plain} {least}")
    return [f"What 99 % of outputs stay within, norm by norm: {joined(clauses)}."]


def _quoted(lanes: pd.Index[Any]) -> str:
    """Names of plans that have commas of their own, in a list."""
    return joined(f"“{lane}”" for lane in lanes)


def _overflowing(smollm2: pd.DataFrame) -> tuple[set[int], set[int], set[int]]:
    """Layers whose squares overflow in float16, those that don't, and with a float32 statistic."""
    half = smollm2[(smollm2["format"] == "float16") & (smollm2["plan_square_format"] == "input")]
    wide = smollm2[smollm2["plan_square_format"] == "float32"]
    hit = set(half.loc[half["overflow_square"] > 0, "at"])
    return hit, set(half["at"]) - hit, set(wide.loc[wide["overflow"] > 0, "at"])


def _places(places: set[int]) -> str:
    """Layers, and the norm after them, as people name them."""
    layers = sorted(places - {FINAL})
    named = [f"layer{'s' if len(layers) > 1 else ''} {listed(layers)}"] if layers else []
    return " and ".join([*named, *(["the last norm"] if FINAL in places else [])]) or "none"


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
