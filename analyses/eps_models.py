# SPDX-License-Identifier: Apache-2.0
"""The eps of known models, in the formats and plans that they may be moved to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from precision_lab import recommend_eps
from precision_lab.models import known_models
from precision_lab.report import Cell, PageTable, charts
from precision_lab.report.charts import joined, number

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from precision_lab.models import KnownModel

question = "Which released models may keep their eps, and in which format and plan?"
OWN, LOW = "own", "all-low"
WIDE, SMALL = (0.01, 100.0), (0.1, 1.0)
# What is asked of each model: the format, the plan, and the root mean squares of the rows.
COLUMNS = {
    "bf16 own": ("bfloat16", OWN, WIDE),
    "fp16 own": ("float16", OWN, WIDE),
    "fp8 own": ("float8_e4m3fn", OWN, WIDE),
    "bf16 low": ("bfloat16", LOW, WIDE),
    "fp16 low": ("float16", LOW, WIDE),
    "fp16 low, RMS ≤ 1": ("float16", LOW, SMALL),
    "fp8 low": ("float8_e4m3fn", LOW, WIDE),
}
KINDS = {"impossible": "none: no eps is safe", "change": "change: another eps is safe"}
SHORT = {"impossible": "none", "keep": "keep", "change": "change"}
HARMS = {"eps-vanishes": "eps becomes 0", "zero-row-nan": "a row of zeros gives NaN"}
NORMS = {"rms": "RMSNorm", "layer": "LayerNorm"}
words = {
    "own": "the model's own plan, as transformers computes it: the statistic in float32",
    "low": "the plan all-low: every step rounds to the format",
    "RMS ≤ 1": "rows whose root mean square is at most 1, not 100: squares and sums then fit "
    "float16 and eps alone decides",
    "keep": "outputs stay within half an ulp of the function with the model's eps",
    "change": "the model's eps does harm, and another does none",
    "none": "every eps does harm, for what overflows does so whatever eps is",
}  # fmt: skip


def measure(progress: Callable[[int, int], None]) -> list[dict[str, Any]]:
    """A verdict for each model and column; the same question is asked once."""
    answers: dict[tuple[Any, ...], dict[str, Any]] = {}
    lines: list[dict[str, Any]] = []
    total = len(known_models) * len(COLUMNS)
    progress(0, total)
    for model in known_models.values():
        for column in COLUMNS:
            key = (subject_key(model), column)
            if key not in answers:
                answers[key] = describe_advice(model, column)
            lines.append({**describe_model(model), "column": column, **answers[key]})
        progress(len(lines), total)
    return lines


def subject_key(model: KnownModel) -> tuple[Any, ...]:
    """What the answer depends on: models that share it share the answer."""
    sizes = tuple(sorted(model.other_sizes.items()))
    latents = model.model_type if sizes else ""
    return (
        model.plan, model.norm, model.eps, model.hidden_size, sizes, model.type.weight_offset,
        latents,
    )  # fmt: skip


def describe_model(model: KnownModel) -> dict[str, Any]:
    """What is known of a model."""
    default = model.type.eps_default
    return {
        "model": model.name,
        "norm": model.norm,
        "own_plan": model.plan,
        "hidden": model.hidden_size,
        "eps": model.eps,
        "default": float("nan") if default is None else default,
        "released": model.released,
        "source": model.source,
    }


def describe_advice(model: KnownModel, column: str) -> dict[str, Any]:
    """What is advised for a model in one column."""
    format, plan, rms = COLUMNS[column]
    advice = recommend_eps(
        model.name, format=format, plan=model.plan if plan == OWN else plan, rms=rms
    )
    lo, hi = advice.interval or (float("nan"), float("nan"))
    harms = dict.fromkeys(one.code for one in advice.findings if one.severity == "harm")
    return {
        "verdict": advice.verdict,
        "harms": ", ".join(harms),
        "reason": advice.reason,
        "effective": float("nan") if advice.effective_eps is None else advice.effective_eps,
        "lo": lo,
        "hi": hi,
        "recommended": float("nan") if advice.recommended is None else advice.recommended,
    }


def figures(rows: pd.DataFrame) -> list[charts.Chart]:
    """A map of groups of models and columns."""
    drawn = group_models(rows)
    names = [name.replace(", RMS ≤ 1", "≤1").replace(" ", "\n") for name in COLUMNS]
    places = {name: at for at, name in enumerate(COLUMNS)}
    drawn = drawn.assign(
        at=drawn["column"].map(places),
        title=drawn["norm"].map(NORMS),
        text=drawn["verdict"].map(SHORT),
    )
    return [
        charts.tiles(
            drawn, name="verdicts", x="at", y="who", panel="title", kind="verdict", kinds=KINDS,
            text="text", blank="keep the model's own eps", title=headline(rows, briefly=True),
            xlabel="", tick=lambda place: names[int(place)], step=1,
            caption="A line for each eps that models were released with, and how many have it. "
            "own: the model's own plan, with its statistic in float32; low: every step in the "
            "format. Rows have a root mean square of 0.01 to 100, in the column low≤1 of 0.1 "
            "to 1. The table below has each model.",
        )
    ]  # fmt: skip


def group_models(rows: pd.DataFrame) -> pd.DataFrame:
    """One line for models of one norm and eps that fare alike in all columns."""
    fates = rows.groupby("model", sort=False)["verdict"].agg(" ".join)
    each = rows.assign(fate=rows["model"].map(fates))
    keys = ["norm", "eps", "fate"]
    counts = each.groupby(keys, sort=False)["model"].agg(["nunique", "first"]).reset_index()
    counts["who"] = [
        f"{number(eps)}: {first}" if many == 1 else f"{number(eps)}: {many} models"
        for eps, first, many in counts[["eps", "first", "nunique"]].itertuples(index=False)
    ]
    lines = each.drop_duplicates([*keys, "column"]).merge(counts[[*keys, "who"]], on=keys)
    return lines.sort_values(["norm", "eps"], ascending=False, kind="stable")


def headline(rows: pd.DataFrame, *, briefly: bool = False) -> str:
    """How many keep, by their own plan and with every step in the format."""
    models = rows["model"].nunique()
    kept_counts = rows[rows["verdict"] == "keep"].groupby("column")["model"].nunique()
    own_plans = [name for name, (_, plan, _) in COLUMNS.items() if plan == OWN]
    least = min(int(kept_counts.get(name, 0)) for name in own_plans)
    low = int(kept_counts.get("fp16 low", 0))
    first = f"{least} of {models} known models may keep their eps by their own plan"
    if briefly:
        return f"{first}; with every step in float16 {low or 'none'}"
    return (
        f"{first}, in bfloat16, float16 and float8_e4m3fn alike; with every step in bfloat16 "
        f"{int(kept_counts.get('bf16 low', 0))}, in float16 {low or 'none'}, in float8_e4m3fn "
        f"{int(kept_counts.get('fp8 low', 0)) or 'none'}"
    )


def findings(rows: pd.DataFrame) -> list[str]:
    """What the rows say, the headline first."""
    texts = [f"{headline(rows)}."]
    lost = rows[rows["verdict"] == "impossible"]
    for column, part in lost.groupby("column", sort=False):
        for reason, mine in part.groupby("reason", sort=False):
            models = f"{len(mine)} of {rows['model'].nunique()} models"
            texts.append(
                f"{phrase(str(column))}, {models}: {reason}; rows of RMS up to {WIDE[1]:g}."
            )
    for (column, eps), part in rows[rows["verdict"] == "change"].groupby(
        ["column", "eps"], sort=False
    ):
        one = part.iloc[0]
        harm = joined(HARMS.get(code, code) for code in one["harms"].split(", "))
        texts.append(
            f"{phrase(str(column))}, {len(part)} models must change, all with eps {number(eps)} "
            f"({joined(part['model'])}): {harm}; safe are "
            f"{number(one['lo'])} to {number(one['hi'])}, recommended "
            f"{number(one['recommended'])}."
        )
    return [*texts, *rounded_eps(rows), *ported_defaults(rows)]


def rounded_eps(rows: pd.DataFrame) -> list[str]:
    """Which eps is changed most where it is kept all the same, and why it may be."""
    low = rows[(rows["column"] == "fp16 low, RMS ≤ 1") & (rows["verdict"] == "keep")]
    change = (low["effective"] / low["eps"] - 1).abs()
    if not change.any():
        return []
    most = low[change >= change.max() / 2].assign(change=change)
    listed = joined(
        f"{number(eps)} of {joined(mine['model'])} becomes {number(mine['effective'].iloc[0])}, "
        f"{charts.percent(mine['change'].iloc[0])} off"
        for eps, mine in most.groupby("eps", sort=False)
    )
    text = (
        f"What float16 changes most and may be kept all the same: {listed}; even so no output of "
        f"a row of RMS {SMALL[0]:g} or more moves by half an ulp."
    )
    return [text]


def ported_defaults(rows: pd.DataFrame) -> list[str]:
    """Where the class default in place of the released eps does harm."""
    texts = []
    own_plans = rows[rows["released"] & (rows["default"] != rows["eps"]) & rows["default"].notna()]
    for column, part in own_plans[own_plans["column"].isin(["bf16 own", "fp16 own"])].groupby(
        "column", sort=False
    ):
        harmed = part[(part["default"] < part["lo"]) | (part["default"] > part["hi"])]
        listed = "; ".join(
            f"{number(default)} for {number(eps)}: {joined(mine['model'])}"
            for (eps, default), mine in harmed.groupby(["eps", "default"], sort=False)
        )
        texts.append(
            f"Of {len(part)} models released with another eps than their config class takes, the "
            f"class default would depart by more than half an ulp of an output in "
            f"{len(harmed) or 'none'}, {phrase(str(column)).lower()}, on rows down to RMS "
            f"{WIDE[0]:g}{f' ({listed})' if listed else ''}."
        )
    return texts + siblings(rows)


def siblings(rows: pd.DataFrame) -> list[str]:
    """A model with another eps than those beside it, and whether either bears the other's."""
    half = rows[rows["column"] == "fp16 own"].set_index("model")
    large, small = half.loc["Qwen2.5-72B"], half.loc["Qwen2.5-7B"]
    fits = [
        one["lo"] <= other["eps"] <= one["hi"] for one, other in ((large, small), (small, large))
    ]
    text = (
        f"Qwen2.5-72B has {number(large['eps'])} and Qwen2.5-7B {number(small['eps'])}: each keeps "
        f"its own, and in float16 {sum(fits) or 'neither'} of the two bears the other's "
        f"({number(large['lo'])} to {number(large['hi'])} are safe for the large one, up to "
        f"{number(small['hi'])} for the small one)."
    )
    return [text]


def phrase(column: str) -> str:
    """A column in a sentence."""
    format, plan, (_, most) = COLUMNS[column]
    how = f"In {format} by their own plan" if plan == OWN else f"With every step in {format}"
    return how if (most == WIDE[1] or plan == OWN) else f"{how} and rows of RMS up to {most:g}"


def tables(rows: pd.DataFrame) -> list[PageTable]:
    """Every model with its verdicts."""
    return [
        PageTable(
            title="Known models",
            rows=[table_line(part) for _, part in rows.groupby("model", sort=False)],
            note="Class default: what the config class takes where a config names no eps. Where "
            "the source is the config class, the released eps was not read. A verdict of change "
            "names the eps recommended.",
        )
    ]


def table_line(part: pd.DataFrame) -> dict[str, Any]:
    """A line of the table of models."""
    one = part.iloc[0]
    default = number(one["default"]) if one["default"] == one["default"] else "unknown"
    verdicts = {
        row["column"]: SHORT[row["verdict"]]
        + (f" to {number(row['recommended'])}" if row["verdict"] == "change" else "")
        for row in part.to_dict("records")
    }
    return {
        "model": Cell(one["model"]),
        "norm": NORMS[one["norm"]],
        "own plan": Cell(one["own_plan"], "code"),
        "width": int(one["hidden"]),
        "eps": float(one["eps"]),
        "class default": default,
        **verdicts,
        "source": Cell(one["source"], "wide"),
    }
