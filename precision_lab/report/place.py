# SPDX-License-Identifier: Apache-2.0
"""The folder of a report: what stands in it, and what may be written and removed there."""

from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from precision_lab.exceptions import InputError
from precision_lab.files import replace_file
from precision_lab.report import page as pages
from precision_lab.report import twin as twins
from precision_lab.report.charts.drawing import Chart, svg
from precision_lab.sweeps.results import OtherResultsError, check_path, reader

if TYPE_CHECKING:
    from collections.abc import Iterable

    from precision_lab.report.page import Page

# Names that are safe in a path and in an address.
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\.svg")
_TOLD = ("name", "headline", "question", "status")


def folder(out: str | os.PathLike[str]) -> Path:
    """The folder to write to, made and found to be writable.

    Raises
    ------
    InputError
        It is no name of a folder, or it cannot be made or written.
    """
    text = os.fspath(out)
    try:
        named = text and "\0" not in text and text.encode()
    except UnicodeEncodeError:
        named = b""
    if not named:
        raise InputError(f"the report cannot be written to {text!r}: that names no folder in UTF-8")
    return _made(Path(text))


def _made(path: Path) -> Path:
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


def check(place: Path, names: Iterable[str]) -> None:
    """Refuse what stands where a page, a figure or results must go, before any time is spent.

    Raises
    ------
    InputError
        A folder, another program's file or a damaged results file stands there.
    """
    files, results = [place / "index.html"], []
    for name in names:
        figures = place / name
        if figures.exists():
            if not figures.is_dir():
                raise InputError(f"the report cannot be written to {place}: {figures} is a file")
            _made(figures)
        files += [place / file for file in _figures(name, _twin(place, name))]
        results.append(place / f"{name}.sqlite")
        files += [results[-1], place / f"{name}.html", place / f"{name}.json"]
    for path in files:
        if path.is_dir():
            raise InputError(f"the report cannot be written to {place}: {path} is a folder")
    for path in results:
        _check_results(path)


def _check_results(path: Path) -> None:
    try:
        if check_path(path, writing=True):
            with reader.open_results(path):
                pass
    except OtherResultsError:
        # Whole, so it is moved aside when its analysis is run.
        return


def good(place: Path, name: str) -> bool:
    """Whether the page of an analysis that ran is there."""
    twin = _twin(place, name)
    return twin.get("status") == "done" and (place / f"{name}.html").is_file()


def drawn(page: Page, *, errors: str = "strict") -> dict[str, bytes]:
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
        if not _PLAIN.fullmatch(f"{chart.name}.svg"):
            raise InputError(f"a figure is called {chart.name!r}: letters, digits and - only")
        files[f"{page.name}/{chart.name}.svg"] = svg(chart).encode(errors=errors)
    files[f"{page.name}.json"] = twins.twin(page).encode(errors=errors)
    files[f"{page.name}.html"] = pages.page_html(page).encode(errors=errors)
    return files


def write(place: Path, files: dict[str, bytes]) -> None:
    """Write the files of a page; remove figures that its earlier twin names and it has no more."""
    name = next(file for file in files if file.endswith(".html")).removesuffix(".html")
    before = _figures(name, _twin(place, name))
    if any("/" in file for file in files):
        _made(place / name)
    for file, content in files.items():
        save(place / file, content)
    for file in before:
        if file not in files and (place / file).is_file():
            (place / file).unlink()


def save(path: Path, content: bytes) -> None:
    """Write one file, whole or not at all."""
    replace_file(path, [content])


def entries(place: Path, known: Iterable[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """What the index says of each analysis whose page is in the folder, and which are not."""
    found, absent = [], []
    for name in known:
        twin = _twin(place, name)
        if twin:
            thumbnail = next(iter(_figures(name, twin)), "")
            told = {word: twin[word] for word in _TOLD}
            found.append({**told, "thumbnail": thumbnail, "title": _title(twin, thumbnail)})
        else:
            absent.append(name)
    return found, absent


def _twin(place: Path, name: str) -> dict[str, Any]:
    """The twin in the folder; empty where there is none of this analysis and this layout."""
    try:
        twin = json.loads((place / f"{name}.json").read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(twin, dict) or twin.get("schema") != twins.SCHEMA or twin.get("name") != name:
        return {}
    return twin if all(isinstance(twin.get(word), str) for word in _TOLD) else {}


def _title(twin: dict[str, Any], file: str) -> str:
    """What the figure of a file says."""
    for part in twin["figures"] if file else ():
        if isinstance(part, dict) and part.get("file") == file:
            return str(part.get("title", ""))
    return ""


def _figures(name: str, twin: dict[str, Any]) -> list[str]:
    """The figures that a twin names, those only that are plain files of its own folder."""
    listed = twin.get("figures")
    files = [
        figure.get("file") for figure in listed if isinstance(figure, dict)
    ] if isinstance(listed, list) else []  # fmt: skip
    return [
        file
        for file in files
        if isinstance(file, str)
        and file.startswith(f"{name}/")
        and _PLAIN.fullmatch(file.removeprefix(f"{name}/"))
    ]
