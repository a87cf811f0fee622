# SPDX-License-Identifier: Apache-2.0
"""The verdicts of a session of tests, as a JSON file or as one page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from precision_lab.exceptions import InputError
from precision_lab.files import replace_file
from precision_lab.report.page import answer_html
from precision_lab.report.tables import Cell, PageTable
from precision_lab.versions import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SCHEMA = "precision_lab.verdicts/1"


def write_verdicts(
    path: str, verdicts: Sequence[Mapping[str, Any]], *, finished: bool = True
) -> None:
    """Write verdicts to a file, whole or not at all; its folder is made.

    Parameters
    ----------
    path
        Of a page where it ends in ``.html``; else of JSON.
    verdicts
        As `Verdict.to_json` tells them, with the name of the ``test``.
    finished
        Whether these are all of the session.

    Raises
    ------
    InputError
        If it cannot be written there.
    """
    written = verdicts_html if path.endswith(".html") else verdicts_json
    text = written(verdicts, finished=finished)
    folder = Path(path).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be made: {error.strerror or error}") from error
    replace_file(Path(path), [text.encode(errors="backslashreplace")])


def verdicts_json(verdicts: Sequence[Mapping[str, Any]], *, finished: bool = True) -> str:
    """Verdicts as strict JSON."""
    document = {
        "schema": SCHEMA,
        "precision_lab": __version__,
        "finished": finished,
        "passed": sum(bool(one["passed"]) for one in verdicts),
        "failed": sum(not one["passed"] for one in verdicts),
        "verdicts": list(verdicts),
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def verdicts_html(verdicts: Sequence[Mapping[str, Any]], *, finished: bool = True) -> str:
    """Verdicts as a page that stands alone: those that failed, then all of them."""
    failed = [one for one in verdicts if not one["passed"]]
    lines = [_line(one) for one in verdicts]
    return answer_html(
        "verdicts.html",
        verdicts=verdicts,
        failed=failed,
        tables=[PageTable(title="Verdicts", rows=lines)] if lines else [],
        command="",
        finished=finished,
    )


def _line(one: Mapping[str, Any]) -> dict[str, Cell]:
    settings = one["settings"]
    first = one["failures"][0] if one["failures"] else {}
    wrong = f"{first['count']:,} of {first['total']:,}" if first.get("count") else ""
    return {
        "kernel": Cell(one["kernel"]),
        "verdict": Cell("sound" if one["passed"] else "not sound"),
        "norm, format": Cell(f"{settings['norm']}, {settings['output_format']}"),
        "schedule": Cell(one["schedule"] or ""),
        "first failure": Cell(first["probe"] or first["kind"] if first else ""),
        "wrong": Cell(wrong),
        "outputs": Cell(f"{one['outputs']:,}", "number"),
        "test": Cell(one["test"], "code"),
    }
