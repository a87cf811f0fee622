# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin: probes as fixtures, and a report of all verdicts of a session.

It stands beside the package, not in it, so that a session that asks nothing of it does not import
the package.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

    from precision_lab.probes import Probe
    from precision_lab.validate import Verdict

FIXTURE = "norm_probe"
KEY = "precision_lab_verdicts"
"""Of the attribute by which verdicts travel with a test's report, between processes too."""


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
    from precision_lab.probes import probes

    metafunc.parametrize(FIXTURE, list(probes.values()), ids=list(probes))


@pytest.fixture
def norm_probe(request: pytest.FixtureRequest) -> Probe:
    """One probe of a norm kernel; a test that takes it runs once for each probe."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def norm_probes() -> tuple[Probe, ...]:
    """All probes of norm kernels, in the order in which they are listed."""
    from precision_lab.probes import probes

    return tuple(probes.values())


class Collector:
    """Gathers the verdicts of a session and writes them at its end.

    Parameters
    ----------
    path
        The file to write.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.fresh: list[dict[str, Any]] = []
        self.all: list[dict[str, Any]] = []

    def seen(self, verdict: Verdict) -> None:
        """Note a verdict of the test that runs."""
        self.fresh.append(json.loads(verdict.to_json()))

    def pytest_sessionstart(self) -> None:
        """Watch."""
        from precision_lab.testing import watchers

        watchers.append(self.seen)

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
        for verdict in getattr(report, KEY, ()):
            self.all.append({"test": report.nodeid, **verdict})

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the file, unless this is one of several workers."""
        from precision_lab.testing import watchers

        if self.seen in watchers:
            watchers.remove(self.seen)
        if not hasattr(session.config, "workerinput"):
            from precision_lab.report.verdicts import write

            write(self.path, self.all)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say where it is."""
        count = len(self.all)
        terminalreporter.write_line(
            f"precision_lab: {count} verdict{'s' * (count != 1)} in {self.path}"
        )
