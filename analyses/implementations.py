# SPDX-License-Identifier: Apache-2.0
"""What each known implementation does to the same rows of real models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from precision_lab import charts
from precision_lab.charts import at_most, joined, number, surviving
from precision_lab.plans import DEFINITION, plans
from precision_lab.sweep import Sweep, capture
from precision_lab.switches import FORMAT_SWITCHES

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
    "usual error": "what 99 % of outputs stay within, of the plan in the middle of its kind",
    "statistic": "the mean of squares (RMSNorm) or the mean and the variance (LayerNorm) of a row",
    "lost row": "one that came out with infinity or NaN, or as zeros alone, though the exact norm "
    "rounds to none of these",
}
LETTERS = 26
LOST = ("arithmetic_rows_lost", "rows")
ERROR, WORST = "arithmetic_ulp_p99", "arithmetic_ulp_max"


def sweep(*, full: bool) -> Sweep:
    """Every plan on the rows of its norm, with the model's own gain and eps."""
    inputs = [capture(name, *(() if full else layers)) for name, layers in SOME.items()]
    return Sweep(norm=tuple(NORMS), plans=tuple(plans.values()), formats=HALVES, inputs=inputs)


def figures(rows: pd.DataFrame) -> list[charts.Chart]:
    """The errors of every implementation, by the place of its cast and the bits that it gives."""
    rows = _placed(surviving(rows))
    return [
        charts.dots(
            part, name=f"{norm}-{name}", title=_message(part), by="label", series="known",
            panel="cast", value=ERROR, beside=WORST, lost=LOST, xlabel="error, ulp of the format",
            meaning=("99 % of outputs", "the worst"), limits={"½ ulp": 0.5},
            caption=f"Rows of {NORMS[norm][1]} with its own gain and eps. Implementations with the "
            "same letter gave the same bits everywhere; one without a letter stands alone. Errors "
            "are those against the exact norm of the inputs as stored, the largest of all layers "
            "that lose no row; those that multiply by 1 + g are held against that norm.",
        )
        for (norm, name), part in rows.groupby(["norm", "format"], sort=False)
    ]  # fmt: skip


def findings(rows: pd.DataFrame) -> list[str]:
    """What the rows say, the headline first."""
    every, rows = rows, _placed(surviving(rows))
    said = []
    for _, part in rows.groupby(["norm", "format"], sort=False):
        said += [f"{_message(part)}.", _split(part), *_losses(part)]
    for norm, part in rows.groupby("norm", sort=False):
        groups = part.groupby("plan", sort=False)["outputs_digest"].agg(tuple)
        worst = part.groupby("plan", sort=False)[WORST].max()
        same = [
            f"{joined(mine.index)} (the worst {number(worst[mine.index].max())} ulp)"
            for _, mine in groups.groupby(groups, sort=False)
            if len(mine) > 1
        ]
        where = joined(part["format"].unique())
        said.append(
            f"{NORMS[norm][0]}, the same bits in {where}: {'; '.join(same) or 'none, 0 groups'}."
        )
    past = int(every["bound_exceeded"].sum())
    said.append(
        f"The bound proved beforehand held for {'all' if not past else f'all but {past}'} of "
        f"{int(every['arithmetic_measured'].sum()):,} outputs."
    )
    return said


def _message(part: pd.DataFrame) -> str:
    """How many implementations there are, how many results, and what is usual for each cast."""
    errors = part.groupby(["kind", "plan"], sort=False)[ERROR].max().dropna()
    usual = errors.groupby("kind", sort=False).median()
    told = joined(f"{at_most(error)} ulp {CASTS[str(cast)]}" for cast, error in usual.items())
    return (
        f"{_where(part)}: {part['plan'].nunique()} plans, {part['bits'].nunique()} "
        f"results; the usual error is {told}"
    )


def _split(part: pd.DataFrame) -> str:
    """The nearest and the farthest implementation of each cast."""
    told = []
    for cast, mine in part.groupby("kind", sort=False):
        errors = mine.groupby("plan", sort=False)[WORST].max().dropna()
        said = "nothing to measure"
        if len(errors):
            least, most = number(errors.min()), number(errors.max())
            said = f"{least} ({errors.idxmin()}) to {most} ({errors.idxmax()})"
            said = said if least != most else f"{most} each"
        counts = f"{mine['plan'].nunique()} plans, {mine['bits'].nunique()} different"
        told.append(f"{CASTS[str(cast)]} ({counts}) {said}")
    return f"The worst output of {_where(part)}, in ulp: {'; '.join(told)}."


def _losses(part: pd.DataFrame) -> list[str]:
    """Which implementations lose rows, if any does."""
    counts = part.groupby("plan", sort=False)[list(LOST)].sum()
    told = [f"{plan} ({lost} of {of})" for plan, (lost, of) in counts.iterrows() if lost]
    return [f"{_where(part)} loses rows in {joined(told)}."] if told else []


def _where(part: pd.DataFrame) -> str:
    return f"{NORMS[part['norm'].iloc[0]][0]} in {part['format'].iloc[0]}"


def _placed(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with the place of their cast and the letter of their bits, in order of error."""
    low = (rows[[f"plan_{switch}" for switch in FORMAT_SWITCHES]] == "input").all(axis=1)
    rows = rows.assign(kind=rows["plan_cast"].mask(low, "low"))
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
    return rows.assign(label=(letters + "  " + rows["plan"]).fillna(rows["plan"]))


def _known(plan: str) -> str:
    """How it is known that a plan is what its implementation does."""
    verified = plans[plan].verified
    if verified == DEFINITION:
        return "a definition"
    return "compared with the real one" if verified else "from its source alone"


def _letter(at: int) -> str:
    """A to Z, then AA, AB and so on."""
    more, last = divmod(at, LETTERS)
    return (_letter(more - 1) if more else "") + chr(ord("A") + last)
