# SPDX-License-Identifier: Apache-2.0
"""The analyses there are, and what each has to say.

An analysis is one file that uses public names only. It defines ``question`` (one sentence),
``sweep(full=…)`` (the cases it needs), ``measure(progress)`` (rows of another kind, kept beside the
file) or ``made_by`` (the command outside the package that leaves its rows there),
``figures(rows)`` (its charts) and ``findings(rows)`` (sentences with their numbers computed, the
first of them the headline), and may define ``needs`` (modules of an extra that it cannot do
without), ``words`` (what the words of its figures and findings mean) and ``tables(rows)`` (its own
tables for people).
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import precision_lab
from precision_lab.exceptions import InputError, unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import ModuleType

    import pandas as pd

    from precision_lab.report.charts.drawing import Chart
    from precision_lab.report.tables import PageTable

# The order in which the index asks them: from one element to a whole model. Others come after.
READING = (
    "error_vs_dtype", "cast_order", "overflow_map", "eps_sweep", "accumulation", "cancellation",
    "attribution", "implementations", "real_model", "eps_models", "kernels", "on_gpu",
    "validators",
)  # fmt: skip
REQUIRED = ("question", "figures", "findings")
SOURCES = ("sweep", "measure", "made_by")


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """One question, and how it is answered.

    Parameters
    ----------
    name
        The stem of its file.
    question
        One sentence.
    sweep
        From ``full``, whether the wide grid is wanted, the sweep to run; None where it measures.
    measure
        From a function that is told how far it is, its rows; None where it sweeps.
    made_by
        The command that makes its rows, where neither of both does: it needs what is seldom there.
    figures, findings
        From the rows, the charts, and the sentences.
    needs
        Modules of an extra, without which there is no answer.
    words
        What a reader may not know, and what it means.
    tables
        From the rows, tables of its own.
    """

    name: str
    question: str
    figures: Callable[[pd.DataFrame], Iterable[Chart]]
    findings: Callable[[pd.DataFrame], Iterable[str]]
    sweep: Callable[..., Any] | None = None
    measure: Callable[..., Iterable[Mapping[str, Any]]] | None = None
    made_by: str = ""
    needs: tuple[str, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    tables: Callable[[pd.DataFrame], Iterable[PageTable]] = lambda _rows: ()


def folder() -> Path:
    """Where the analyses lie: beside the package in a checkout, inside it once installed."""
    package = Path(precision_lab.__file__).parent
    sibling = package.parent / "analyses"
    # A folder of that name beside an installed package would be a stranger's.
    checkout = (package.parent / "pyproject.toml").is_file() and sibling.is_dir()
    return sibling if checkout else package / "analyses"


def analyses() -> dict[str, Path]:
    """The file of each analysis by name, in alphabetical order; none is run."""
    files = sorted(folder().glob("*.py"))
    return {file.stem: file for file in files if not file.stem.startswith("_")}


def reading_order(names: Iterable[str]) -> list[str]:
    """Names of analyses in the order of the index."""
    places = {name: place for place, name in enumerate(READING)}
    return sorted(names, key=lambda name: (places.get(name, len(READING)), name))


def load(name: str) -> Analysis:
    """Run the file of an analysis and collect what it defines.

    Parameters
    ----------
    name
        One of `analyses`.

    Raises
    ------
    InputError
        If there is no such analysis, or it lacks one of the names that an analysis defines.
    """
    known = analyses()
    if name not in known:
        raise unknown("analysis", name, known)
    module = _import_file(name, known[name])
    missing = [word for word in REQUIRED if not hasattr(module, word)]
    if not any(getattr(module, word, None) for word in SOURCES):
        missing.insert(0, "sweep, measure or made_by")
    if missing:
        raise InputError(f"the analysis {name} in {known[name]} lacks {', '.join(missing)}")
    if not isinstance(module.question, str):
        raise InputError(f"the question of the analysis {name} is {module.question!r}: no text")
    names = [one.name for one in fields(Analysis) if hasattr(module, one.name)]
    return Analysis(**{part: getattr(module, part) for part in names} | {"name": name})


def _import_file(name: str, path: Path) -> ModuleType:
    """The module of a file, which stays out of the table of imported modules."""
    spec = importlib.util.spec_from_file_location(f"precision_lab_analysis_{name}", path)
    assert spec is not None  # noqa: S101
    assert spec.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def missing_modules(analysis: Analysis) -> list[str]:
    """What an analysis needs and this environment has not."""
    return [name for name in analysis.needs if importlib.util.find_spec(name.split(".")[0]) is None]
