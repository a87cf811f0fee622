# SPDX-License-Identifier: Apache-2.0
"""`precision-lab report`: what it prints, and every way in which it ends."""

from __future__ import annotations

import errno
import io
import os
import signal
import subprocess
import sys
import time

import pytest

from precision_lab import report as room
from precision_lab.report.build import ReportResult
from precision_lab.report.page import Page
from precision_lab.sweeps.progress_display import show_progress
from precision_lab.sweeps.results.file import StoppedError


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


class Broken(io.StringIO):
    """A stream whose reader has gone."""

    def write(self, _text):
        """Fail, as a pipe does."""
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")


class BrokenTerminal(Broken):
    """The same, as a terminal."""

    def isatty(self):
        """Say that it is a terminal."""
        return True


@pytest.mark.parametrize("stream", [None, Broken(), BrokenTerminal()])
def test_progress_that_cannot_be_shown_is_no_error(monkeypatch, stream):
    """A closed, absent or broken stream leaves what is measured alone."""
    monkeypatch.setattr(sys, "stderr", None)
    with show_progress("label", stream=stream) as progress:
        progress(1, 3)
        progress(3, 3)
    if stream is not None:
        closed = io.StringIO()
        closed.close()
        with show_progress("label", stream=closed) as progress:
            progress(1, 1)


TINY = """
import sys
from precision_lab import cli
from precision_lab.report import library
from pathlib import Path
library.folder = lambda: Path(sys.argv[1])
sys.exit(cli.run(["report", "--jobs", "1", "--out", sys.argv[2]]))
"""
ANALYSIS = """
from precision_lab.sweeps import Sweep
question = "Why?"
def sweep(*, full):
    return Sweep(plans="late", formats="float16", hidden=4, rows=1)
def figures(rows):
    return []
def findings(rows):
    return [f"{len(rows)} case"]
"""


def test_a_run_without_standard_error_or_backend(tmp_path):
    """A broken or closed standard error and a notebook's MPLBACKEND change nothing."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a/one.py").write_text(ANALYSIS, encoding="utf-8")
    command = [sys.executable, "-c", TINY, str(tmp_path / "a")]
    for backend in ("no such thing", "module://no_such.backend"):
        out = tmp_path / backend[:2]
        environment = {**os.environ, "MPLBACKEND": backend}
        reader, writer = os.pipe()
        os.close(reader)
        ran = subprocess.run(
            [*command, str(out)], check=False, env=environment, stdout=subprocess.PIPE,
            stderr=writer, text=True,
        )  # fmt: skip
        os.close(writer)
        assert (0, f"one: 1 case\n\n{out}/index.html\n") == (ran.returncode, ran.stdout)
    shell = ["sh", "-c", 'exec "$@" 2>&-', "sh", *command, str(tmp_path / "closed")]
    assert 0 == subprocess.run(shell, check=False, stdout=subprocess.DEVNULL).returncode


def test_a_folder_s_name_that_is_no_text(lab):
    """Empty or not UTF-8: code 2 and one sentence."""
    for name in ("", os.fsdecode(b"a\xffb")):
        ran = lab("report", "--out", name)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)


def test_a_folder_that_the_system_refuses(lab):
    """What cannot be made is named, and so is the reason."""
    ran = lab("report", "--out", "/proc/none/below")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "/proc/none/below: it cannot be made: " in ran.err
