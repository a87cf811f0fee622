# SPDX-License-Identifier: Apache-2.0
"""The folder of a report: what stands in it, and what may be written and removed there."""

from __future__ import annotations

import errno
import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from precision_lab.exceptions import InputError
from precision_lab.files import replace_file
from precision_lab.report.charts.drawing import Chart, svg
from precision_lab.report.page import page_html
from precision_lab.report.twin import SCHEMA, twin
from precision_lab.sweeps.results import OtherResultsError, check_path, reader

if TYPE_CHECKING:
    from collections.abc import Iterable

    from precision_lab.report.page import Page

# Names that are safe in a path and in an address.
_FIGURE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\.svg")
_ENTRY = ("name", "headline", "question", "status")


def make_folder(out: str | os.PathLike[str]) -> Path:
    """The folder to write to, made and found to be writable.

    Raises
    ------
    InputError
        It is no name of a folder, or it cannot be made or written.
    """
    text = os.fspath(out)
    # A lone surrogate has no UTF-8.
    if not text or "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise InputError(f"the report cannot be written to {text!r}: that names no folder in UTF-8")
    return _make(Path(text))


def _make(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise
        standing = next((p for p in (path, *path.parents) if os.path.lexists(p)), path)
        why = f"{standing} is a file" if standing.is_file() else ""
        why = why or f"it cannot be made: {error.strerror}"
        raise InputError(f"the report cannot be written to {path}: {why}") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise InputError(f"the report cannot be written to {path}: no permission")
    return path


def check_folder(folder: Path, names: Iterable[str]) -> None:
    """Refuse what stands where a page, a figure or results must go, before any time is spent.

    Raises
    ------
    InputError
        A folder, another program's file or a damaged results file stands there.
    """
    files, results = [folder / "index.html"], []
    for name in names:
        figures = folder / name
        if figures.exists():
            if not figures.is_dir():
                raise InputError(f"the report cannot be written to {folder}: {figures} is a file")
            _make(figures)
        files += [folder / file for file in _figures(name, _read_twin(folder, name))]
        results.append(folder / f"{name}.sqlite")
        files += [results[-1], folder / f"{name}.html", folder / f"{name}.json"]
    for path in files:
        if path.is_dir():
            raise InputError(f"the report cannot be written to {folder}: {path} is a folder")
    for path in results:
        # Results of another sweep are moved aside when their analysis is run.
        with suppress(OtherResultsError):
            if check_path(path, writing=True):
                with reader.open_results(path):
                    pass


def has_page(folder: Path, name: str) -> bool:
    """Whether the page of an analysis that ran is there."""
    status = _read_twin(folder, name).get("status")
    return status == "done" and (folder / f"{name}.html").is_file()


def draw_files(page: Page, *, errors: str = "strict") -> dict[str, bytes]:
    """The files of a page by name: its figures, its twin and its HTML.

    Raises
    ------
    InputError
        A figure is no chart, or its name is no plain one.
    """
    files = {}
    for chart in page.charts:
        if not isinstance(chart, Chart):
            raise InputError(f"a figure is {chart!r}, which is no Chart")
        if not _FIGURE.fullmatch(f"{chart.name}.svg"):
            raise InputError(f"a figure is called {chart.name!r}: letters, digits and - only")
        files[f"{page.name}/{chart.name}.svg"] = svg(chart).encode(errors=errors)
    files[f"{page.name}.json"] = twin(page).encode(errors=errors)
    files[f"{page.name}.html"] = page_html(page).encode(errors=errors)
    return files


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    """Write the files of a page; remove figures that its earlier twin names and it has no more."""
    name = next(file for file in files if file.endswith(".html")).removesuffix(".html")
    before = _figures(name, _read_twin(folder, name))
    if any("/" in file for file in files):
        _make(folder / name)
    for file, content in files.items():
        replace_file(folder / file, [content])
    for file in before:
        if file not in files and (folder / file).is_file():
            (folder / file).unlink()


def index_entries(folder: Path, names: Iterable[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """What the index says of each analysis whose page is in the folder, and which are not."""
    entries, absent = [], []
    for name in names:
        twin = _read_twin(folder, name)
        if twin:
            thumbnail, title = next(iter(_figures(name, twin).items()), ("", ""))
            entry = {word: twin[word] for word in _ENTRY}
            entries.append({**entry, "thumbnail": thumbnail, "title": title})
        else:
            absent.append(name)
    return entries, absent


def _read_twin(folder: Path, name: str) -> dict[str, Any]:
    """The twin in the folder; empty where there is none of this analysis and this layout."""
    try:
        twin = json.loads((folder / f"{name}.json").read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(twin, dict) or twin.get("schema") != SCHEMA or twin.get("name") != name:
        return {}
    return twin if all(isinstance(twin.get(word), str) for word in _ENTRY) else {}


def _figures(name: str, twin: dict[str, Any]) -> dict[str, str]:
    """The figures that a twin names, and their titles: those alone that lie in its own folder."""
    listed = twin.get("figures")
    figures: dict[str, str] = {}
    for figure in listed if isinstance(listed, list) else ():
        file = figure.get("file") if isinstance(figure, dict) else None
        if isinstance(file, str) and file.startswith(f"{name}/"):
            if _FIGURE.fullmatch(file.removeprefix(f"{name}/")):
                figures.setdefault(file, str(figure.get("title", "")))
    return figures
