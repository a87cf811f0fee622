# SPDX-License-Identifier: Apache-2.0
"""Run analyses and write their pages.

A page that fails says so in one sentence and the others are written all the same; an earlier page
of the same analysis is better than that sentence, so it stays. Every file is written whole or not
at all, and what an earlier run measured is used again.
"""

from __future__ import annotations

import errno
import os
import shlex
import sys
from contextlib import nullcontext, redirect_stdout, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from precision_lab import canonical_json
from precision_lab.exceptions import InputError, StoppedError, check_integer, unknown
from precision_lab.files import replace_file
from precision_lab.report import library, measured, report_folder
from precision_lab.report.page import Page, index_html
from precision_lab.sweeps import MOST_JOBS, sweep
from precision_lab.sweeps.results import OtherResultsError, set_aside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from precision_lab.report.library import Analysis
    from precision_lab.sweeps import Progress

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
        The analyses to run; all by default. Pages of others in the folder stay in its index. Those
        that measure, and do not sweep, measure afresh when they are named or with `full`; else
        their pages show the rows that were measured before.
    out
        The folder, made where there is none. A rerun goes on from the results files in it; one
        that holds other results than are wanted is moved aside, never overwritten.
    full
        The wide grids.
    jobs
        Processes that measure; by default one a core.
    progress
        From a label, a context that shows progress: `precision_lab.sweeps.show_progress`.
    notice
        Called with one line where earlier results are moved aside.

    Returns
    -------
    ReportResult

    Raises
    ------
    InputError
        There is no such analysis, jobs is out of range, the folder or a file in it cannot be made
        or written, or a results file in it is damaged or a stranger's; that is found before
        anything is measured or changed.
    StoppedError, OSError
        The disk is full: what was measured is saved, and the same call goes on from it.
    """
    known = library.analyses()
    named = tuple(dict.fromkeys(names))
    wanted = named or tuple(known)
    for name in wanted:
        if name not in known:
            raise unknown("analysis", name, known)
    cores = min(os.cpu_count() or 1, MOST_JOBS)
    jobs = check_integer("jobs", cores if jobs is None else jobs, 1, MOST_JOBS)
    folder = report_folder.make_folder(out)
    report_folder.check_folder(folder, wanted)
    show = progress or (lambda _label: nullcontext(lambda _done, _total: None))

    def tell(line: str) -> None:
        # That nobody can be told is no failure of the analysis.
        with suppress(OSError, ValueError):
            (notice or (lambda _line: None))(line)

    pages, notes = [], {}
    for name in wanted:
        command = _command(name, out, full=full)
        fresh = full or name in named
        page = _page(name, folder, command, full=full, fresh=fresh, jobs=jobs, show=show, tell=tell)
        if page.status != "done" and report_folder.has_page(folder, name):
            notes[name] = page.note
            page = replace(page, note=f"{page.note} The earlier page is still there.")
        elif page.status != "done":
            files = report_folder.draw_files(page, errors="backslashreplace")
            report_folder.write_files(folder, files)
        pages.append(page)
    entries, absent = report_folder.index_entries(folder, library.reading_order(known))
    entries = [{**entry, "note": notes.get(entry["name"], "")} for entry in entries]
    index = index_html(entries, [_command(name, out, full=full) for name in absent])
    replace_file(folder / "index.html", [index.encode(errors="backslashreplace")])
    return ReportResult(out=folder, pages=tuple(pages))


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
    fresh: bool,
    jobs: int,
    show: Show,
    tell: Callable[[str], None],
) -> Page:
    """Run one analysis and write its page; whatever goes wrong in that is told by its note."""
    page = Page(name=name, question=name.replace("_", " "), status="failed", command=command)
    try:
        # Standard output is for what the command has to say.
        with redirect_stdout(sys.stderr):
            analysis = library.load(name)
            page = replace(page, question=analysis.question)
            missing = library.missing_modules(analysis)
            if missing:
                return _without_extra(page, missing)
            if analysis.sweep is not None:
                done = _page_of_sweep(
                    page, analysis, folder, full=full, jobs=jobs, show=show, tell=tell
                )
            else:
                done = _page_of_rows(page, analysis, fresh=fresh, show=show)
            # All of it is drawn before any file is touched.
            report_folder.write_files(folder, report_folder.draw_files(done))
            return done
    except ModuleNotFoundError as error:
        return _without_extra(page, [str(error.name)])
    except StoppedError:
        raise
    except InputError as error:
        return replace(page, note=f"This analysis failed: {error}.")
    except (Exception, SystemExit) as error:
        if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise
        return replace(page, note=f"This analysis failed: {type(error).__name__}: {error}.")


def _without_extra(page: Page, missing: list[str]) -> Page:
    """The page of an analysis whose extra is not installed."""
    note = (
        f"This analysis needs {' and '.join(missing)}, which is not installed here: install it, "
        f"then run: {page.command}"
    )
    return replace(page, status="missing", note=note)


def _page_of_rows(page: Page, analysis: Analysis, *, fresh: bool, show: Show) -> Page:
    """The page of an analysis that measures, from rows measured now or before."""
    source = analysis.made_by
    stored = None if fresh and not source else measured.read_rows(analysis)
    page = replace(page, command=source or page.command)
    if stored is not None:
        rows, versions = stored
        note = "These rows were measured before, with the versions below; the command measures"
        return _answered(page, analysis, rows, note=f"{note} anew.", versions=versions)
    if source:
        raise InputError(f"its rows are not there: {source} makes them")
    with show(page.name) as progress:
        rows, versions = measured.measure(analysis, progress)
    return _answered(page, analysis, rows, versions=versions)


def _answered(page: Page, analysis: Analysis, rows: Any, **others: Any) -> Page:
    """The page with what an analysis says of its rows."""
    return replace(
        page,
        status="done",
        findings=tuple(analysis.findings(rows)),
        charts=tuple(analysis.figures(rows)),
        words=analysis.words,
        tables=tuple(analysis.tables(rows)),
        rows=rows,
        **others,
    )


def _page_of_sweep(
    page: Page,
    analysis: Analysis,
    folder: Path,
    *,
    full: bool,
    jobs: int,
    show: Show,
    tell: Callable[[str], None],
) -> Page:
    """The page of an analysis that sweeps."""
    path = folder / f"{page.name}.sqlite"
    assert analysis.sweep is not None  # noqa: S101
    config = analysis.sweep(full=full)

    def measure() -> Any:
        with show(page.name) as progress:
            return sweep(config, path=path, jobs=jobs, progress=progress)

    note = ""
    try:
        rows = measure()
    except OtherResultsError:
        aside = set_aside(path)
        other = "is of another version or another sweep"
        note = (
            f"The results file that was here {other}: it was kept as {aside.name}, and all was "
            "measured afresh."
        )
        tell(f"{page.name}: {path} {other}: kept as {aside.name}")
        rows = measure()
    return _answered(page, analysis, rows, note=note, results=path.name, versions=_versions(rows))


def _versions(rows: Any) -> dict[str, str]:
    """The versions that measured the rows; several of one package stand beside each other."""
    versions: dict[str, dict[str, None]] = {}
    for text in rows["versions"].unique() if len(rows) else ():
        for name, version in canonical_json.decode(text).items():
            versions.setdefault(name, {})[str(version)] = None
    return {name: " and ".join(several) for name, several in versions.items()}
