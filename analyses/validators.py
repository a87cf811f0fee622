# SPDX-License-Identifier: Apache-2.0
"""Kernels of which it is known whether they are right, before this validator and other tests."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from precision_lab.kernels.running import Claim, run
from precision_lab.report import Cell, PageTable, charts
from precision_lab.report.charts import joined, percent
from precision_lab.validation import default_calls, examine
from precision_lab.validation.specimens import specimens
from precision_lab.validation.specimens.other_tests import accepts, settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from precision_lab import Verdict
    from precision_lab.validation import Call
    from precision_lab.validation.specimens import Specimen

question = "Which faulty kernels does a validator or a project's own test catch?"
OURS = "precision_lab"
# Who runs which settings.
PROJECTS = {
    OURS: "this validator",
    "torch": "torch.testing",
    "vllm": "vLLM",
    "flashinfer": "FlashInfer",
    "liger": "Liger",
    "apex": "Apex",
    "transformer": "TransformerEngine",
    "quack": "quack",
    "xformers": "xformers",
    "triton": "Triton's tutorial",
    "kernelbench": "KernelBench",
    "backendbench": "BackendBench",
    "tensara": "Tensara",
    "gpucheck": "gpucheck",
    "gpucheck-mixed": "gpucheck (mixed inputs)",
    "gpuemu": "gpuemu",
    "gpuemu-calibrated": "gpuemu (calibrated)",
    "gpuemu-recommended": "gpuemu (recommended)",
    "torchtitan": "torchtitan",
    "ggml": "ggml",
}
FAULTS = {
    "eps": "eps missing, misplaced or of another size",
    "statistic": "another statistic",
    "root": "an inexact root",
    "casts": "casts and low formats",
    "gain": "gain and bias",
    "elements": "elements left out or taken twice",
    "rows": "whole rows, NaN and limits",
}
COLUMNS = {
    "eps": "eps",
    "statistic": "stat-\nistic",
    "root": "root",
    "casts": "casts",
    "gain": "gain",
    "elements": "ele-\nments",
    "rows": "rows",
}
NORMS = {"rms": "RMS", "layer": "Layer"}
HIT = "rejected"
FEW = 80
WRONG = ("value", "root", "special")
words = {
    "specimen": "a small kernel, sound or with one known fault, that a validator is tried on",
    "caught": "a faulty specimen that at least one call of the test rejects",
    "missed": "a faulty specimen that the whole test accepts",
    "false alarm": "a sound specimen that the test rejects; a test that demands one cast order has "
    "such by its design",
    "not tested": "specimens of a norm or a format that none of the project's settings has",
    "setting": "inputs, gain, eps, shapes and tolerance of one test, as the project has them",
    "sound": "statistic in float32 or wider, in any order of summation; eps under the root; each "
    "cast to nearest; x·r rounded before the gain or not",
}  # fmt: skip


def measure(progress: Callable[[int, int], None]) -> list[dict[str, Any]]:
    """What each setting and this validator say of every specimen, a row for each of its formats."""
    pairs = [(row, format) for row in specimens.values() for format in row.formats]
    tests_of: dict[tuple[str, str], list[str]] = {(row.name, format): [] for row, format in pairs}
    accepted: dict[tuple[str, str], list[str]] = {key: [] for key in tests_of}
    tests = [
        (setting, norm, format)
        for setting in settings.values()
        for norm in setting.norms
        for format in setting.tolerances
    ]
    total = len(tests) + len(pairs)
    progress(0, total)
    # Setting by setting, for a setting's inputs are drawn once and kept.
    for done, (setting, norm, format) in enumerate(tests):
        for row in (one for one, own_format in pairs if one.norm == norm and own_format == format):
            tests_of[row.name, format].append(setting.name)
            offset = row.weight_offset
            if accepts(setting, row.fresh(), norm, format, weight_offset=offset):
                accepted[row.name, format].append(setting.name)
        progress(done + 1, total)
    lines = []
    for done, (row, format) in enumerate(pairs):
        verdict = judge_specimen(row, format)
        key = row.name, format
        lines.append(
            {
                "specimen": row.name,
                "norm": row.norm,
                "fault": row.fault,
                "format": format,
                "tried": " ".join([OURS, *tests_of[key]]),
                "accepted": " ".join([*([OURS] if verdict.passed else []), *accepted[key]]),
                "probe": verdict.failures[0].probe if verdict.failures else "",
            }
        )
        progress(len(tests) + done + 1, total)
    return lines


def judge_specimen(row: Specimen, format: str) -> Verdict:
    """This validator's verdict; what plan is behind the outputs is not asked."""
    claimed, calls = default_claim(row.norm, format, row.weight_offset)
    # The first calls are the smallest, and what they refute no later call makes right.
    for some in (calls[:FEW], calls):
        kernel = row.fresh()
        verdict = examine(partial(run, kernel, claim=claimed), claimed, some, name=row.name)
        if any(failure.kind in WRONG for failure in verdict.failures):
            break
    return verdict


@cache
def default_claim(norm: str, format: str, offset: float) -> tuple[Claim, list[Call]]:
    """What specimens claim, and the calls to be made, which are the same for many of them."""
    claimed = Claim.of(
        norm=norm, format=format, weight_format=None, output_format=None, eps=(1e-6, 1e-5),
        weight_offset=offset, overflow="ieee", seed=1,
    )  # fmt: skip
    return claimed, default_calls(claimed)


def figures(rows: pd.DataFrame) -> list[charts.Chart]:
    """Two tables of projects: the faults that they catch, and the sound kernels they reject."""
    each = by_project(rows)
    each = each.assign(who=each["project"].map(PROJECTS))
    faulty, sound = each[each["fault"] != ""], each[each["fault"] == ""]
    caught = pd.concat(
        [faulty.assign(column=faulty["fault"].map(COLUMNS)), faulty.assign(column="all")]
    )
    caught = in_order(in_order(caught, "column", (*COLUMNS.values(), "all")), "project", PROJECTS)
    alarms = sound.assign(column=sound["format"] + "\n" + sound["norm"].map(NORMS))
    tested = alarms.groupby("column")["project"].transform("nunique") > 1
    return [
        charts.shares(
            shares(caught), name="caught", x="column", y="who", value=HIT,
            title=headline(rows, briefly=True),
            caption="The share of faulty specimens, each in each of its formats, that a project's "
            "tests reject, of those whose norm and format they test; a blank: none is tested. A "
            "project catches what one of its settings rejects. Inputs, gain, eps and tolerances "
            f"are the project's, the draws this package's. {fault_classes()}",
        ),
        charts.shares(
            shares(alarms[tested]), name="false-alarms", x="column", y="who", value=HIT,
            title=alarms_text(rows),
            caption="The share of sound specimens that a project's tests reject, of those that "
            "they test; a blank: none is tested. Formats that no project tests are left out.",
        ),
    ]  # fmt: skip


def shares(each: pd.DataFrame) -> pd.DataFrame:
    """The share that is rejected, of each cell of a figure."""
    return each.groupby(["who", "column"], sort=False)[HIT].mean().reset_index()


def fault_classes() -> str:
    """What the columns are."""
    classes = "; ".join(f"{name}: {what}" for name, what in FAULTS.items())
    return f"The classes are: {classes}."


def findings(rows: pd.DataFrame) -> list[str]:
    """What the rows say, the headline first."""
    each = by_project(rows)
    faulty = each[each["fault"] != ""]
    texts = [f"{headline(rows)}."]
    for project, part in each.groupby("project", sort=False):
        if project != OURS:
            texts.append(f"{PROJECTS[str(project)]}: {counts_text(part)}.")
    others = faulty[faulty["project"] != OURS].groupby(["fault", "specimen", "format"], sort=False)
    missed = others[HIT].agg(["any", "size"]).reset_index()
    alone = missed[~missed["any"]]
    classes = alone.groupby("fault", sort=False).size().sort_values(ascending=False)
    listed = joined(f"{count} of {FAULTS[str(fault)]}" for fault, count in classes.items())
    texts.append(
        f"Of {len(missed)} faulty specimens, counted by format, that another project tests, "
        f"{len(alone)} are caught by this validator alone{f' ({listed})' if listed else ''}."
    )
    texts.append(f"{alarms_text(rows)}.")
    return texts


def tables(rows: pd.DataFrame) -> list[PageTable]:
    """Projects and settings with their counts, and every specimen with those who accept it."""
    each = by_project(rows)
    total = len(rows)
    projects = [
        count_line(PROJECTS[str(name)], part, total)
        for name, part in each.groupby("project", sort=False)
    ]
    single = by_setting(rows)
    single = single[single["setting"] != OURS]
    tests = [
        count_line(str(name), part, total)
        | {
            part: Cell(getattr(settings[str(name)], part) if name in settings else "", "wide")
            for part in ("source", "cut")
        }
        for name, part in single.groupby("setting", sort=False)
    ]
    return [
        PageTable(
            title="Projects", rows=projects,
            note="A specimen counts once for each of its formats. Not tested are those of a norm "
            "or a format that the project's settings lack.",
        ),
        PageTable(
            title="Settings", rows=tests,
            note="Each test by itself, where it stands, and what was made smaller here or had to be"
            " assumed.",
        ),
        PageTable(
            title="Specimens", rows=[specimen_line(row) for row in rows.to_dict("records")],
            note="Every specimen and format, the probe that shows its fault best, and the "
            "settings that accept it.",
        ),
    ]  # fmt: skip


def by_setting(rows: pd.DataFrame) -> pd.DataFrame:
    """A line for each specimen, format and setting that tests it."""
    each = rows.assign(setting=rows["tried"].str.split()).explode("setting")
    taken = [
        one in names.split() for one, names in zip(each["setting"], each["accepted"], strict=True)
    ]
    return each.assign(**{HIT: [not one for one in taken]})


def by_project(rows: pd.DataFrame) -> pd.DataFrame:
    """A line for each specimen, format and project: rejected if one of its settings does."""
    each = by_setting(rows)
    each = each.assign(project=each["setting"].map(project_of))
    keys = ["project", "specimen", "norm", "fault", "format"]
    return in_order(each.groupby(keys, sort=False)[HIT].any().reset_index(), "project", PROJECTS)


def in_order(rows: pd.DataFrame, column: str, names: Iterable[str]) -> pd.DataFrame:
    """Rows sorted by a column, in the order of these names."""
    order = {name: at for at, name in enumerate(names)}
    return rows.sort_values(column, key=lambda values: values.map(order), kind="stable")


def project_of(setting: str) -> str:
    """Whose test a setting is: of a project whose tests exclude one another, which of these."""
    fitting = [name for name in PROJECTS if f"{setting}-".startswith(f"{name}-")]
    return max(fitting, key=len)


def alarms_text(rows: pd.DataFrame) -> str:
    """Who rejects sound specimens, and how many."""
    each = by_project(rows)
    alarms = each[(each["fault"] == "") & each[HIT]]
    where = alarms.groupby("project", sort=False)["specimen"].nunique()
    listed = joined(f"{PROJECTS[str(project)]} {count}" for project, count in where.items())
    of = each[each["fault"] == ""]["specimen"].nunique()
    return f"Of {of} sound specimens are rejected in some format: {listed or 'none'}"


def counts_text(part: pd.DataFrame) -> str:
    """Caught, missed and false alarms in words."""
    faulty, sound = part[part["fault"] != ""], part[part["fault"] == ""]
    caught, alarms = int(faulty[HIT].sum()), int(sound[HIT].sum())
    missed = len(faulty) - caught or "none"
    return (
        f"{caught} of {len(faulty)} faulty kernels caught, {missed} missed, "
        f"{alarms or 'no'} false alarm{'s' * (alarms != 1)} on {len(sound)} sound ones"
    )


def headline(rows: pd.DataFrame, *, briefly: bool = False) -> str:
    """This validator, and the best and worst of the others."""
    each = by_project(rows)
    faulty = each[each["fault"] != ""]
    share = faulty.groupby("project", sort=False)[HIT].mean()
    others = share.drop(OURS)
    ends = " to ".join(
        f"{percent(others[project])} ({PROJECTS[str(project)]})"
        for project in (others.idxmin(), others.idxmax())
    )
    range_ = f"other projects' tests catch {ends} of those that they test"
    mine = each[each["project"] == OURS]
    if briefly:
        return f"This validator catches {percent(share[OURS])}; {range_}"
    names = rows[rows["fault"] != ""]["specimen"].nunique()
    sound = rows[rows["fault"] == ""]["specimen"].nunique()
    return (
        f"This validator, on {names} faulty and {sound} sound specimens in their formats: "
        f"{counts_text(mine)}; {range_}"
    )


def count_line(name: str, part: pd.DataFrame, total: int) -> dict[str, Any]:
    """A line of a table of counts."""
    faulty, sound = part[part["fault"] != ""], part[part["fault"] == ""]
    caught = int(faulty[HIT].sum())
    return {
        "test": Cell(name),
        "faulty": len(faulty),
        "caught": caught,
        "missed": len(faulty) - caught,
        "sound": len(sound),
        "false alarms": int(sound[HIT].sum()),
        "not tested": total - len(part),
    }


def specimen_line(row: Any) -> dict[str, Any]:
    """A line of the table of specimens."""
    known = specimens[row["specimen"]].summary if row["specimen"] in specimens else ""
    names = [name for name in row["accepted"].split() if name != OURS]
    tests_of = len(row["tried"].split()) - 1
    return {
        "specimen": Cell(row["specimen"], "code"),
        "format": Cell(row["format"]),
        "fault": Cell(FAULTS.get(row["fault"], "sound")),
        "what it does": Cell(known, "wide"),
        "here": Cell(
            "accepted" if OURS in row["accepted"].split() else f"rejected: {row['probe']}"
        ),
        "accepted by": Cell(
            f"{len(names)} of {tests_of}: {', '.join(names)}" if tests_of else "", "wide"
        ),
    }
