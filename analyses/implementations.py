# SPDX-License-Identifier: Apache-2.0
"""What each known implementation does to the same rows of real models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from precision_lab import Sweep, captured, plans
from precision_lab.plan import DEFINITION, FORMAT_SWITCHES
from precision_lab.report import Cell, PageTable, charts
from precision_lab.report.charts import LOST, at_most, joined, number, surviving

if TYPE_CHECKING:
    import pandas as pd

question = "What does each known implementation make of the same rows?"
# From the first norm to the largest elements; all of a model with the wide grid.
SOME = {
    "smollm2": (
        "model.layers.0.input_layernorm", "model.layers.4.input_layernorm",
        "model.layers.15.input_layernorm", "model.norm",
    ),
    "minilm": (
        "embeddings.LayerNorm", "encoder.layer.2.output.LayerNorm",
        "encoder.layer.5.output.LayerNorm",
    ),
}  # fmt: skip
HALVES = ("bfloat16", "float16")
NORMS = {"rms": ("RMSNorm", "SmolLM2-135M"), "layer": ("LayerNorm", "MiniLM")}
CASTS = {
    "late": "cast at the end",
    "early": "cast before the gain",
    "low": "all in the format",
}
words = {
    "cast at the end": "gain and bias in float32, then one rounding to the format",
    "cast before the gain": "x·r is rounded to the format, then multiplied by the gain in it",
    "all in the format": "every operation in the format of the inputs",
    "compared with the real one": "its outputs were compared bit by bit with the implementation's",
    "from its source alone": "written after the implementation's source, which was not run beside "
    "it",
    "a definition": "nobody's implementation: late, early and all-low",
    "usual error": "what 99 % of outputs stay within, of the implementation in the middle of its "
    "kind",
    "different outputs": "outputs that are not the same in every bit of every row",
    "statistic": "the mean of squares (RMSNorm) or the mean and the variance (LayerNorm) of a row",
    "lost row": charts.LOST_ROW,
}
LETTERS = 26
ERROR, WORST = "arithmetic_ulp_p99", "arithmetic_ulp_max"
RELATIVE, OUTPUT = "arithmetic_relative_max", "output_format"
DEFINED = "a definition"


def sweep(*, full: bool) -> Sweep:
    """Every plan on the rows of its norm, with the model's own gain and eps."""
    inputs = [captured(name, *(() if full else layers)) for name, layers in SOME.items()]
    return Sweep(norm=tuple(NORMS), plans=tuple(plans.values()), formats=HALVES, inputs=inputs)


def figures(rows: pd.DataFrame) -> list[charts.Chart]:
    """The errors of every implementation, by the place of its cast and the bits that it gives."""
    rows = _placed(rows)
    return [
        charts.dots(
            part, name=f"{norm}-{name}", title=_message(part), by="label", series="known",
            panel="cast", value=ERROR, beside=WORST, lost=LOST, xlabel="error, ulp of the format",
            meaning=("99 % of outputs", "the worst"), limits={"½ ulp": 0.5},
            caption=f"Rows of {NORMS[norm][1]} with its own gain and eps. Implementations with the "
            "same letter gave the same bits everywhere; one without a letter stands alone. Errors "
            "are those against the exact norm of the inputs as stored, the largest of all layers "
            "that lose no row; those that multiply by 1 + g are held against that norm. The worst "
            "outputs of LayerNorm are those in which bias and value cancel.",
        )
        for (norm, name), part in rows.groupby(["norm", "format"], sort=False)
    ]  # fmt: skip


def findings(rows: pd.DataFrame) -> list[str]:
    """What the rows say, the headline first."""
    all_rows, rows = rows, _placed(rows)
    first = rows[(rows["norm"] == rows["norm"].iloc[0]) & (rows["format"] == HALVES[0])]
    texts = [f"{_message(first)}; {_usual(first)}."]
    texts += [_worst(part) for _, part in rows.groupby("norm", sort=False)]
    texts += _losses(rows) + _wider(all_rows)
    return [*texts, f"The bound proved beforehand {charts.bound_held(all_rows)}."]


def tables(rows: pd.DataFrame) -> list[PageTable]:
    """Who gives the same outputs, for each norm and format."""
    return [
        PageTable(
            title=f"{_where(part)}: who gives the same outputs",
            note="The letters are those of the figure. In one line all outputs are the same, bit "
            "by bit. The worst error is that of layers that lose no row.",
            rows=[_line(mine) for _, mine in part.groupby("bits", sort=False)],
        )
        for _, part in _placed(rows).groupby(["norm", "format"], sort=False)
    ]


def _line(mine: pd.DataFrame) -> dict[str, Cell]:
    """One output: its letter, who gives it, and what it is worth."""
    one = mine[mine["plan"] == mine["plan"].iloc[0]]
    lost, of = (int(one[name].sum()) for name in LOST)
    worst = one[WORST].max()
    return {
        "outputs": Cell(str(mine["letter"].iloc[0]) or "alone"),
        "implementations": Cell(", ".join(mine["plan"].unique()), "wide"),
        "cast": Cell(", ".join(mine["cast"].unique())),
        "worst error, ulp": Cell(number(worst), "number"),
        "rows lost": Cell(f"{lost} of {of}" if lost else "none", "number", str(lost)),
    }


def _message(part: pd.DataFrame) -> str:
    """How many implementations there are, and how many outputs."""
    known = part[part["known"] != DEFINED]
    return (
        f"{_where(part)}: {known['plan'].nunique()} implementations give {known['bits'].nunique()} "
        "different outputs"
    )


def _usual(part: pd.DataFrame) -> str:
    """What is usual for each cast."""
    known = part[part["known"] != DEFINED]
    errors = known.groupby(["kind", "plan"], sort=False)[ERROR].max().dropna()
    usual = errors.groupby("kind", sort=False).median()
    clauses = joined(f"{at_most(error)} ulp {CASTS[str(cast)]}" for cast, error in usual.items())
    return f"the usual error is {clauses}"


def _worst(part: pd.DataFrame) -> str:
    """How many outputs a norm has in each format, and the worst error of each cast."""
    known = part[part["known"] != DEFINED]
    counts = joined(
        f"{mine['bits'].nunique()} in {name}" for name, mine in known.groupby("format", sort=False)
    )
    clauses = []
    for cast, mine in known.groupby("kind", sort=False):
        errors = mine.groupby("plan", sort=False)[WORST].max().dropna()
        if len(errors):
            clauses.append(f"{number(errors.max())} ulp {CASTS[str(cast)]} ({errors.idxmax()})")
    return (
        f"Different outputs of {NORMS[part['norm'].iloc[0]][0]}: {counts}; the worst error is "
        f"{joined(clauses)}."
    )


def _losses(rows: pd.DataFrame) -> list[str]:
    """Which implementations lose rows, if any does."""
    clauses = []
    for _, part in rows.groupby(["norm", "format"], sort=False):
        counts = part.groupby("plan", sort=False)[list(LOST)].sum()
        clauses += [
            f"{lost} of {of} rows of {_where(part)} by {joined(mine.index)}"
            for (lost, of), mine in counts.groupby(list(LOST), sort=False)
            if lost
        ]
    return [f"Lost are {'; '.join(clauses)}."] if clauses else []


def _wider(all_rows: pd.DataFrame) -> list[str]:
    """Who leaves outputs in another format than that of the inputs, and how near they are."""
    all_rows = surviving(all_rows[all_rows["format"] == HALVES[0]])
    wide = all_rows[_other(all_rows)]
    if wide.empty:
        return []
    clauses = []
    for norm, part in wide.groupby("norm", sort=False):
        late = all_rows.loc[
            (all_rows["norm"] == norm) & (all_rows["plan"] == "late"), RELATIVE
        ].max()
        clauses.append(
            f"{joined(part['plan'].unique())} ({at_most(part[RELATIVE].max())}; late "
            f"{at_most(late)})"
        )
    formats = joined(wide[OUTPUT].unique())
    text = (
        f"Not in the figures, for they write {formats} whatever comes in: {'; '.join(clauses)}, "
        f"relative error of the worst output of inputs in {HALVES[0]}."
    )
    return [text]


def _other(rows: pd.DataFrame) -> pd.Series[bool]:
    """Which outputs are in another format than the inputs: an ulp is not the same there."""
    return rows[OUTPUT] != rows["format"]


def _where(part: pd.DataFrame) -> str:
    return f"{NORMS[part['norm'].iloc[0]][0]} in {part['format'].iloc[0]}"


def _placed(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with the place of their cast and the letter of their bits, in order of error.

    Outputs in another format than that of the inputs are not among them.
    """
    rows = surviving(rows[~_other(rows)])
    low = (rows[[f"plan_{switch}" for switch in FORMAT_SWITCHES]] == "input").all(axis=1)
    # Gains have the format of the inputs here, and so have the outputs: the casts are one.
    casts = rows["plan_cast"].replace("input", "early")
    rows = rows.assign(kind=casts.mask(low, "low"))
    rows = rows.assign(cast=rows["kind"].map(CASTS), known=rows["plan"].map(_known))
    keys = ["norm", "format", "plan"]
    of = rows.groupby(keys, sort=False)
    results = of["outputs_digest"].agg(" ".join).rename("bits")
    rows = rows.join(results, on=keys).join(of[WORST].max().rename("most"), on=keys)
    shared = rows.groupby(["norm", "format", "bits"])["plan"].transform("nunique") > 1
    order = {name: at for at, name in enumerate((*NORMS, *HALVES, *CASTS))}
    places = {f"{name}_at": rows[name].map(order) for name in ("norm", "format", "kind")}
    rows = rows.assign(shared=shared, **places)
    rows = rows.sort_values([*places, "most", "bits"], kind="stable")
    letters = (
        rows[rows["shared"]]
        .groupby(["norm", "format"], sort=False)["bits"]
        .transform(
            lambda bits: bits.map({name: _letter(at) for at, name in enumerate(bits.unique())})
        )
    )
    letters = letters.reindex(rows.index)
    label = (letters + "  " + rows["plan"]).fillna(rows["plan"])
    return rows.assign(label=label, letter=letters.fillna(""))


def _known(plan: str) -> str:
    """How it is known that a plan is what its implementation does."""
    verified = plans[plan].verified
    if verified == DEFINITION:
        return DEFINED
    return "compared with the real one" if verified else "from its source alone"


def _letter(at: int) -> str:
    """A to Z, then AA, AB and so on."""
    more, last = divmod(at, LETTERS)
    return (_letter(more - 1) if more else "") + chr(ord("A") + last)
