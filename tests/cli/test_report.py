# SPDX-License-Identifier: Apache-2.0
"""`precision-lab report`: what it prints, and every way in which it ends."""

from __future__ import annotations

import errno
import signal
import subprocess
import sys
import time

import pytest

from precision_lab import report as room
from precision_lab.report import Page, ReportResult
from precision_lab.results_file import StoppedError


def page(name, status="done", note="", findings=("Rows overflow.", "Some more.")):
    """A page of an analysis."""
    return Page(name=name, question="Why?", status=status, command="", note=note, findings=findings)


@pytest.fixture
def pretend(monkeypatch, tmp_path):
    """Let the report be these pages, or this error; give the calls."""

    def install(*pages, error=None):
        calls = []

        def report(names, **options):
            calls.append((tuple(names), options))
            if error is not None:
                raise error
            return ReportResult(out=tmp_path, pages=pages)

        monkeypatch.setattr(room, "report", report)
        return calls

    return install


def test_findings_and_the_page_to_open(lab, pretend, tmp_path):
    """A line for each analysis with its headline, and the index last."""
    pretend(page("first"), page("second"))
    ran = lab("report")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "first: Rows overflow.",
        "second: Rows overflow.",
        "",
        str(tmp_path / "index.html"),
    ]
    data = lab("report", "--json").data
    assert data["index"] == str(tmp_path / "index.html")
    assert data["pages"][0]["findings"] == ["Rows overflow.", "Some more."]


def test_options_reach_the_report(lab, pretend):
    """Names, folder, width and processes are handed on."""
    calls = pretend()
    assert lab("report", "real_model", "--out", "there", "--full", "--jobs", 2).code == 0
    ((names, options),) = calls
    assert names == ("real_model",)
    assert (options["out"], options["full"], options["jobs"]) == ("there", True, 2)


def test_a_missing_extra_is_no_failure(lab, pretend):
    """An analysis without its optional package says so and the code stays 0."""
    pretend(page("first"), page("second", status="missing", note="This analysis needs torch."))
    ran = lab("report")
    assert ran.code == 0
    assert "second: This analysis needs torch." in ran.out


def test_a_failed_analysis_is_a_failure(lab, pretend):
    """An analysis that failed says why, the others are there, and the code is 1."""
    pretend(page("first"), page("second", status="failed", note="This analysis failed: so."))
    ran = lab("report")
    assert ran.code == 1
    assert "first: Rows overflow.\nsecond: This analysis failed: so." in ran.out


@pytest.mark.parametrize(
    "error",
    [StoppedError("the disk is full"), OSError(errno.ENOSPC, "No space left on device", "x.svg")],
)
def test_a_full_disk_is_resumable(lab, pretend, error):
    """A full disk ends with 3 and one sentence."""
    pretend(error=error)
    ran = lab("report")
    assert (ran.code, ran.out, ran.err.count("\n")) == (3, "", 1)


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_folder_that_cannot_be_made(lab, tmp_path, place):
    """Where a file stands in the folder's place: one sentence names it, and nothing is written."""
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    ran = lab("report", "--out", tmp_path / place)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert f"{tmp_path / 'file'} is a file" in ran.err
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


def test_an_interrupt_ends_with_130(tmp_path):
    """Ctrl-C in the middle: code 130, one sentence, no traceback, and results to go on from."""
    command = [sys.executable, "-m", "precision_lab", "report", "real_model", "--out", tmp_path]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        results = tmp_path / "real_model.sqlite"
        deadline = time.monotonic() + 60
        while not results.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        told = process.stderr.read()
        assert process.wait(timeout=60) == 130
    assert "interrupted" in told
    assert "Traceback" not in told
    assert results.exists()
