# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin: probes as fixtures, and a report of all verdicts of a session.

It stands beside the package, not in it, so that a session that asks nothing of it does not import
the package.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

    from precision_lab.validation import Probe, Verdict

FIXTURE = "norm_probe"
KEY = "precision_lab_verdicts"
"""Of the attribute by which verdicts travel with a test's report, between processes too."""
FINISHED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
"""How a session ends that nothing broke off."""
LONG, SHARE = 0.2, 20
"""The report is written after every test. Where that takes longer, in seconds, it is written again
only when so many times as long has passed."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--precision-report``."""
    parser.getgroup("precision_lab").addoption(
        "--precision-report",
        metavar="FILE",
        help="write the verdicts of all assert_norm calls to FILE, .json or .html",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Collect verdicts where a report is asked for."""
    path = config.getoption("--precision-report", default=None)
    if path is None:
        return
    if not str(path).endswith((".json", ".html")):
        raise pytest.UsageError(f"--precision-report is {path!r}: give a file .json or .html")
    config.pluginmanager.register(Collector(str(path)), "precision_lab_collector")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes ``norm_probe`` once for each probe."""
    if FIXTURE not in metafunc.fixturenames:
        return
    for mark in metafunc.definition.iter_markers("parametrize"):
        names = mark.args[0] if mark.args else mark.kwargs.get("argnames", "")
        listed = names.split(",") if isinstance(names, str) else names
        if FIXTURE in [name.strip() for name in listed]:
            return
    from precision_lab.validation import probes

    metafunc.parametrize(FIXTURE, list(probes.values()), ids=list(probes))


@pytest.fixture
def norm_probe(request: pytest.FixtureRequest) -> Probe:
    """One probe of a norm kernel; a test that takes it runs once for each probe."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def norm_probes() -> tuple[Probe, ...]:
    """All probes of norm kernels, in the order in which they are listed."""
    from precision_lab.validation import probes

    return tuple(probes.values())


class Collector:
    """Gathers the verdicts of a session and writes them, so that one that is killed leaves them.

    Parameters
    ----------
    path
        The file to write.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.fresh: list[dict[str, Any]] = []
        self.all: list[dict[str, Any]] = []
        self.due = 0.0
        self.writes = True

    def collect(self, verdict: Verdict) -> None:
        """Note a verdict of the test that runs."""
        self.fresh.append(json.loads(verdict.to_json()))

    def write(self, *, finished: bool = False) -> None:
        """Write what is known, unless this is one of several workers."""
        if not self.writes:
            return
        from precision_lab.report import write_verdicts

        began = time.monotonic()
        write_verdicts(self.path, self.all, finished=finished)
        now = time.monotonic()
        self.due = now + SHARE * (now - began) if now - began > LONG else 0.0

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Watch; a report of an earlier session is not to stand for this one."""
        from precision_lab.exceptions import InputError
        from precision_lab.testing import watchers

        self.writes = not hasattr(session.config, "workerinput")
        try:
            self.write()
        except InputError as error:
            raise pytest.UsageError(f"--precision-report: {error}") from None
        watchers.append(self.collect)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Send the verdicts with the report of the test's phase."""
        report = yield
        if self.fresh:
            setattr(report, KEY, self.fresh)
            self.fresh = []
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take them from it, in the process that writes."""
        verdicts = getattr(report, KEY, ())
        self.all += [{"test": report.nodeid, **verdict} for verdict in verdicts]
        if verdicts and time.monotonic() >= self.due:
            self.write()

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Write the file a last time."""
        from precision_lab.testing import watchers

        if self.collect in watchers:
            watchers.remove(self.collect)
        self.write(finished=exitstatus in FINISHED)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say where it is."""
        count = len(self.all)
        terminalreporter.write_line(
            f"precision_lab: {count} verdict{'s' * (count != 1)} in {self.path}"
        )
