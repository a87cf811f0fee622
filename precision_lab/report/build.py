# SPDX-License-Identifier: Apache-2.0
"""Run analyses and write their pages.

A page that fails says so in one sentence and the others are written all the same. Every file is
written whole or not at all, and what an earlier run measured is used again.
"""

from __future__ import annotations

import errno
import json
import os
import shlex
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from precision_lab import canonical
from precision_lab.charts import svg
from precision_lab.files import replace_file
from precision_lab.report import library
from precision_lab.report import page as pages
from precision_lab.report.page import Page
from precision_lab.results_file import OtherResultsError, StoppedError
from precision_lab.sweep import sweep
from precision_lab.table import InputError, unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from precision_lab.progress import Progress
    from precision_lab.report.library import Analysis

    Show = Callable[[str], AbstractContextManager[Progress]]


@dataclass(frozen=True, kw_only=True)
class ReportResult:
    """What a report run wrote.

    Parameters
    ----------
    out
        The folder.
    pages
        The pages of this run, in order.
    """

    out: Path
    pages: tuple[Page, ...]

    @property
    def index(self) -> Path:
        """The page to open first."""
        return self.out / "index.html"

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the analyses that failed; a missing extra is no failure."""
        return tuple(page.name for page in self.pages if page.status == "failed")

    @property
    def exit_code(self) -> int:
        """0, or 1 if an analysis failed."""
        return int(bool(self.failed))


def report(
    names: Iterable[str] = (),
    *,
    out: str | os.PathLike[str] = "reports/latest",
    full: bool = False,
    jobs: int | None = None,
    progress: Show | None = None,
    notice: Callable[[str], None] | None = None,
) -> ReportResult:
    """Run analyses and write a folder of pages that work without a network.

    Parameters
    ----------
    names
        The analyses to run; all by default. Pages of others in the folder stay in its index.
    out
        The folder, made where there is none. A rerun goes on from the results files in it; one
        that holds other results than are wanted is moved aside, never overwritten.
    full
        The wide grids.
    jobs
        Processes that measure; by default one a core.
    progress
        From a label, a context that shows progress: `precision_lab.progress.show`.
    notice
        Called with one line where earlier results are moved aside.

    Returns
    -------
    ReportResult

    Raises
    ------
    InputError
        There is no such analysis, or the folder or a file in it cannot be made or written; that is
        found before anything is measured.
    StoppedError, OSError
        The disk is full: what was measured is saved, and the same call goes on from it.
    """
    known = library.analyses()
    wanted = tuple(dict.fromkeys(names)) or tuple(known)
    for name in wanted:
        if name not in known:
            raise unknown("analysis", name, known)
    folder = _folder(Path(out))
    _check_paths(folder, wanted)
    show = progress or (lambda _label: nullcontext(lambda _done, _total: None))
    tell = notice or (lambda _line: None)
    jobs = jobs or os.cpu_count() or 1
    done = []
    for name in wanted:
        command = _command(name, out, full=full)
        page = _page(name, folder, command, full=full, jobs=jobs, show=show, tell=tell)
        _write(folder, page)
        done.append(page)
    entries, absent = _entries(folder, known)
    index = pages.index_html(entries, [_command(name, out, full=full) for name in absent])
    _save(folder / "index.html", index)
    return ReportResult(out=folder, pages=tuple(done))


def _folder(path: Path) -> Path:
    """The folder to write to, made and found to be writable."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise
        standing = next((p for p in (path, *path.parents) if p.exists()), path)
        why = "is a file" if standing.is_file() else (error.strerror or "cannot be made")
        raise InputError(f"the report cannot be written to {path}: {standing} {why}") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise InputError(f"the report cannot be written to {path}: no permission")
    return path


def _check_paths(folder: Path, names: Iterable[str]) -> None:
    """Refuse what stands where a page, a figure or results must go, before any time is spent."""
    files = [folder / "index.html"]
    for name in names:
        figures = folder / name
        if figures.exists():
            if not figures.is_dir():
                raise InputError(f"the report cannot be written to {folder}: {figures} is a file")
            _folder(figures)
            files += figures.glob("*.svg")
        files += [folder / f"{name}.{kind}" for kind in ("html", "json", "sqlite")]
    for path in files:
        if path.is_dir():
            raise InputError(f"the report cannot be written to {folder}: {path} is a folder")


def _command(name: str, out: str | os.PathLike[str], *, full: bool) -> str:
    """What makes one page again."""
    words = ["precision-lab", "report", name, *(["--full"] if full else [])]
    if os.fspath(out) != "reports/latest":
        words += ["--out", os.fspath(out)]
    return shlex.join(words)


def _page(
    name: str,
    folder: Path,
    command: str,
    *,
    full: bool,
    jobs: int,
    show: Show,
    tell: Callable[[str], None],
) -> Page:
    """Run one analysis; whatever goes wrong in it is told on its page."""
    page = Page(name=name, question=name.replace("_", " "), status="failed", command=command)
    try:
        analysis = library.load(name)
        page = replace(page, question=analysis.question)
        lacking = library.lacking(analysis)
        if lacking:
            return _without(page, lacking)
        return _measured(page, analysis, folder, full=full, jobs=jobs, show=show, tell=tell)
    except ModuleNotFoundError as error:
        return _without(page, [str(error.name)])
    except StoppedError:
        raise
    except InputError as error:
        return replace(page, note=f"This analysis failed: {error}.")
    except Exception as error:
        if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise
        return replace(page, note=f"This analysis failed: {type(error).__name__}: {error}.")


def _without(page: Page, lacking: list[str]) -> Page:
    """The page of an analysis whose extra is not installed."""
    note = (
        f"This analysis needs {' and '.join(lacking)}, which is not installed here: install it, "
        f"then run: {page.command}"
    )
    return replace(page, status="missing", note=note)


def _measured(
    page: Page,
    analysis: Analysis,
    folder: Path,
    *,
    full: bool,
    jobs: int,
    show: Show,
    tell: Callable[[str], None],
) -> Page:
    """The page of an analysis that ran."""
    results = folder / f"{page.name}.sqlite"
    config = analysis.sweep(full=full)
    note = ""
    try:
        with show(page.name) as progress:
            rows = sweep(config, path=results, jobs=jobs, progress=progress)
    except OtherResultsError:
        aside = _aside(results)
        note = (
            f"The results file that was here is of another version or another sweep: it was "
            f"kept as {aside.name}, and all was measured afresh."
        )
        tell(f"{page.name}: {results} is of another version or another sweep: kept as {aside.name}")
        with show(page.name) as progress:
            rows = sweep(config, path=results, jobs=jobs, progress=progress)
    return replace(
        page,
        status="done",
        note=note,
        findings=tuple(analysis.findings(rows)),
        charts=tuple(analysis.figures(rows)),
        words=analysis.words,
        rows=rows,
        results=results.name,
        versions=_versions(rows),
    )


def _aside(path: Path) -> Path:
    """Move a results file out of the way, to a name that is free."""
    number = 1
    while (free := path.with_name(f"{path.stem}.older-{number}{path.suffix}")).exists():
        number += 1
    path.rename(free)
    return free


def _versions(rows: Any) -> dict[str, str]:
    """The versions that measured the rows; several of one package stand beside each other."""
    found: dict[str, dict[str, None]] = {}
    for text in rows["versions"].unique() if len(rows) else ():
        for name, version in canonical.decode(text).items():
            found.setdefault(name, {})[str(version)] = None
    return {name: " and ".join(several) for name, several in found.items()}


def _write(folder: Path, page: Page) -> None:
    """Write a page, its twin and its figures; remove figures that it no longer has."""
    figures = folder / page.name
    if page.charts:
        _folder(figures)
    for chart in page.charts:
        _save(figures / f"{chart.name}.svg", svg(chart))
    _save(folder / f"{page.name}.json", pages.twin(page))
    _save(folder / f"{page.name}.html", pages.page_html(page))
    names = {f"{chart.name}.svg" for chart in page.charts}
    for old in figures.glob("*.svg"):
        if old.name not in names:
            old.unlink()


def _save(path: Path, text: str) -> None:
    replace_file(path, [text.encode()])


def _entries(folder: Path, known: Iterable[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """What the index says of each analysis whose page is in the folder, and which are not."""
    entries, absent = [], []
    for name in known:
        try:
            twin = json.loads((folder / f"{name}.json").read_text("utf-8"))
            entry = {
                word: twin[word] for word in ("schema", "name", "headline", "question", "status")
            }
            entry["thumbnail"] = next((figure["file"] for figure in twin["figures"]), "")
        except (OSError, ValueError, KeyError, TypeError):
            entry = {}
        # A page of another version's layout is as good as none.
        if entry.get("schema") == pages.SCHEMA:
            entries.append(entry)
        else:
            absent.append(name)
    return entries, absent
