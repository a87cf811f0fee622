# SPDX-License-Identifier: Apache-2.0
"""The assertion and the pytest plugin."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import unittest

import numpy as np
import pytest
from conftest import optional, wide

from precision_lab import InputError, emulate
from precision_lab.report.verdicts import verdicts_html, verdicts_json
from precision_lab.testing import assert_norm, watchers
from precision_lab.validation.probe_table import probes
from precision_lab.validation.specimens.table import specimens

pytest_plugins = ["pytester"]

KERNELS = """
    import numpy as np
    from precision_lab.testing import assert_norm

    def good(x, weight, bias, eps, right=True):
        wide = x.astype(np.float32)
        eps = np.float32(eps if right else 0)
        y = wide / np.sqrt(np.mean(wide * wide, -1, keepdims=True) + eps)
        return (y if weight is None else y * weight.astype(np.float32)).astype(x.dtype)

    def bad(x, weight, bias, eps):
        return good(x, weight, bias, eps, right=False)
"""


def good(x, weight, bias, eps):
    """A sound RMSNorm."""
    return emulate(x, weight, bias, eps=eps, plan="late")


def faulty(x, weight, bias, eps):
    """One that forgets eps."""
    with np.errstate(all="ignore"):
        return good(x, weight, bias, 0.0)


def test_a_sound_kernel_passes_in_one_line():
    """Nothing but the kernel is needed."""
    assert "late/direct" == assert_norm(good, hidden=[3, 64]).schedule


def test_a_failure_says_what_to_look_at():
    """Probe, count, worst element in hexadecimal, a small input, diagnosis."""
    with pytest.raises(AssertionError) as caught:
        assert_norm(faulty, hidden=[3, 64])
    text = str(caught.value)
    first, *lines = text.splitlines()
    assert "faulty is not a sound RMSNorm in bfloat16" == first
    said = {line.split(":")[0].strip() for line in lines}
    assert {"probe", "wrong", "worst", "small", "diagnosis"} <= said
    assert lines[0].startswith("  diagnosis: its outputs are those of")
    assert "eps is missing" in text
    assert " 0x1." in text
    assert " outputs" in text


def test_the_plan_is_looked_for_where_something_is_wrong():
    """A kernel that passes is not searched, unless that is asked for or a plan is the standard."""
    few = {"hidden": [64], "probes": "normal"}
    assert assert_norm(good, **few).plan is None
    assert "late" == assert_norm(good, **few, diagnose=True).plan
    assert "late" == assert_norm(good, **few, plan="late").plan
    with pytest.raises(AssertionError) as caught:
        assert_norm(faulty, hidden=[64], probes="near-eps-0.1", diagnose=False)
    assert "diagnosis" not in str(caught.value)
    with pytest.raises(InputError, match="diagnose is 'failure': give True, False or 'failures'"):
        assert_norm(good, **few, diagnose="failure")


def test_what_a_kernel_does_beside_computing_is_told():
    """A kernel that raises is told with the error."""

    def raising(x, weight, bias, eps):
        raise KeyError("lost")

    with pytest.raises(AssertionError, match="raised KeyError: 'lost'"):
        assert_norm(raising, probes="normal", hidden=[3])


def test_options_go_to_the_verdict():
    """What is refused there is refused here, and properties can be required."""
    with pytest.raises(InputError, match="unknown format"):
        assert_norm(good, format="bfloat61")
    with pytest.raises(InputError, match="framework"):
        assert_norm(good, framework="jxa")
    assert assert_norm(good, hidden=[8], require=["deterministic"]).passed


def test_a_probe_that_means_nothing_is_a_skip():
    """A probe of means says nothing about a norm that subtracts none."""
    with pytest.raises(unittest.SkipTest, match="tail means nothing"):
        assert_norm(good, probes="tail")


def test_watchers_see_every_verdict():
    """Those that pass and those that fail."""
    seen = []
    watchers.append(seen.append)
    try:
        assert_norm(good, probes="normal", hidden=[3])
        with pytest.raises(AssertionError):
            assert_norm(faulty, probes="near-eps-0.1", hidden=[3])
    finally:
        watchers.remove(seen.append)
    assert [True, False] == [verdict.passed for verdict in seen]


def test_tensors():
    """A kernel of torch's takes tensors."""
    torch = optional("torch")

    def norm(x, weight, bias, eps):
        return torch.nn.functional.rms_norm(x, x.shape[-1:], weight, eps)

    assert assert_norm(norm, framework="torch", hidden=[3, 64]).passed
    assert "norm" == assert_norm(norm, framework="torch", probes="normal", hidden=[3]).kernel


@pytest.mark.parametrize("name", ["rms-eps-missing", wide("rms-gain-ignored")])
def test_specimens_fail(name):
    """The assertion fails for kernels that are known to be wrong."""
    if name not in specimens:
        pytest.skip(f"there is no specimen {name}")
    with pytest.raises(AssertionError):
        assert_norm(specimens[name].fresh(), format="float16")


@pytest.fixture
def plugin(pytester):
    """A session with the plugin, and kernels to test."""
    # No name that a folder of tests has: modules of both may live in one process.
    pytester.makepyfile(judged_kernels=KERNELS)

    def run(text, *options):
        pytester.makepyfile(test_it=f"from judged_kernels import *\n{text}")
        return pytester.runpytest("-p", "pytest_precision_lab", "-p", "no:cacheprovider", *options)

    return run


def test_a_test_runs_once_for_each_probe(plugin):
    """`norm_probe` gives every probe; those without meaning are skipped."""
    test = """
def test_good(norm_probe):
    assert_norm(good, probes=norm_probe, hidden=[8])
"""
    outcomes = plugin(test).parseoutcomes()
    assert len(probes) == outcomes["passed"] + outcomes["skipped"]
    assert 1 == outcomes["skipped"]


def test_probes_can_be_chosen(plugin):
    """Who parametrises `norm_probe` gets no other; `norm_probes` are all of them."""
    result = plugin("""
import pytest
@pytest.mark.parametrize("norm_probe", ["normal", "exact"])
def test_good(norm_probe): assert_norm(good, probes=norm_probe, hidden=[8])
def test_all(norm_probes): assert len(norm_probes) > 20
""")
    result.assert_outcomes(passed=3)


def test_failures_are_read_in_the_session(plugin):
    """The message of the assertion is what pytest shows."""
    result = plugin("def test_bad(): assert_norm(bad, hidden=[3])")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*bad is not a sound RMSNorm in bfloat16*", "*diagnosis: its outputs*", "*probe:*"]
    )
    result.stdout.no_fnmatch_line("*verdict.passed*")


BOTH = """
def test_good(): assert_norm(good, probes="normal", hidden=[3])
def test_bad(): assert_norm(bad, hidden=[3], name="<b>")
"""


def test_the_report_of_a_session(plugin, pytester):
    """All verdicts with their tests, as JSON."""
    result = plugin(BOTH, "--precision-report=out/verdicts.json")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["precision_lab: 2 verdicts in out/verdicts.json"])
    told = json.loads((pytester.path / "out/verdicts.json").read_text("utf-8"))
    assert (True, 1, 1) == (told["finished"], told["passed"], told["failed"])
    expected = ["test_it.py::test_good", "test_it.py::test_bad"]
    assert expected == [one["test"] for one in told["verdicts"]]
    assert [] == watchers


def test_the_report_of_a_session_as_a_page(plugin, pytester):
    """The page stands alone, and escapes names."""
    plugin(BOTH, "--precision-report=verdicts.html")
    text = (pytester.path / "verdicts.html").read_text("utf-8")
    assert "1 of 2 verdicts: sound.</p>" in text
    assert "&lt;b&gt; is not a sound RMSNorm" in text
    assert "<b>" not in text
    assert "://" not in text


KILLED = """
import os, pathlib, signal, time
def test_good(): assert_norm(good, probes="normal", hidden=[3])
def test_killed():
    until = time.monotonic() + 60
    while "test_good" not in pathlib.Path(REPORT).read_text("utf-8"):
        assert time.monotonic() < until
        time.sleep(0.05)
    os.kill(os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid(), signal.SIGKILL)
    time.sleep(60)
"""


WORKER = ("-p", "xdist", "-n", "1")


@pytest.mark.parametrize(
    ("ending", "options"),
    [("json", WORKER), ("html", ()), wide("json", ()), wide("html", WORKER)],
)
def test_a_session_that_is_killed_leaves_what_was_seen(pytester, monkeypatch, ending, options):
    """The report is up to date after each test, and says that the session did not finish."""
    if options:
        optional("xdist")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    # Where these tests run in workers themselves, the session must not think that it is one.
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    report = pytester.path / f"verdicts.{ending}"
    pytester.makepyfile(judged_kernels=KERNELS)
    pytester.makepyfile(test_it=f"from judged_kernels import *\nREPORT = {str(report)!r}\n{KILLED}")
    report.write_text("test_good, as an earlier session left it", "utf-8")
    result = pytester.runpytest_subprocess(
        "-p", "pytest_precision_lab", f"--precision-report={report}", *options
    )
    assert -signal.SIGKILL == result.ret
    text = report.read_text("utf-8")
    if ending == "json":
        told = json.loads(text)
        assert (False, ["test_it.py::test_good"]) == (
            told["finished"], [one["test"] for one in told["verdicts"]]
        )  # fmt: skip
    else:
        assert "1 of 1 verdicts: sound. The session had not finished" in text


def test_a_report_that_cannot_be_written_is_told_first(plugin, pytester):
    """Before any test has run."""
    (pytester.path / "file").write_text("", "utf-8")
    result = plugin("def test_one(): pass", "--precision-report=file/verdicts.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--precision-report: file cannot be made: *"])
    assert [] == watchers


def test_a_report_of_no_kind_is_refused(plugin):
    """The file's name says what is written."""
    result = plugin("def test_one(): pass", "--precision-report=verdicts.txt")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*'verdicts.txt': give a file .json or .html"])


def test_a_session_without_verdicts_has_a_report(plugin, pytester):
    """It says that there were none."""
    plugin("def test_one(): pass", "--precision-report=verdicts.json")
    assert [] == json.loads((pytester.path / "verdicts.json").read_text("utf-8"))["verdicts"]
    assert "0 of 0 verdicts" in verdicts_html([])
    assert '"passed": 0' in verdicts_json([])


def test_the_plugin_imports_nothing_heavy():
    """pytest imports it in every session."""
    code = (
        "import sys, pytest; before = set(sys.modules); import pytest_precision_lab;"
        "print({name.partition('.')[0] for name in set(sys.modules) - before}"
        " - {'pytest_precision_lab'} - sys.stdlib_module_names)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert "set()" == run.stdout.strip()
