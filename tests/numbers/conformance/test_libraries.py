# SPDX-License-Identifier: Apache-2.0
"""The casts of other libraries, and the list of what is known to be wrong with them."""

from __future__ import annotations

import dataclasses
import importlib.metadata

import ml_dtypes
import numpy as np
import pytest
from conftest import optional
from faulty_rounding import check_of

from precision_lab.numbers.conformance import check, libraries
from precision_lab.numbers.conformance.check import conformance
from precision_lab.numbers.conformance.decision_points import SOURCES
from precision_lab.numbers.conformance.libraries import deviations
from precision_lab.numbers.table import formats

HERE = "precision_lab.numbers.conformance"
INSTALLED = importlib.metadata.version("ml_dtypes")
LISTED = [row for row in formats.values() if row.bits <= 16]


def since(minor):
    """Whether ml_dtypes 0.`minor` or a later one is installed."""
    return (0, minor) <= tuple(map(int, INSTALLED.split(".")[:2]))


def test_ml_dtypes_from_float32_passes():
    """The float32 casts of ml_dtypes have no fault but the one that is listed."""
    report = conformance(f"{HERE}:ml_dtypes_float32")
    assert report.passed
    assert {name for name in formats if name != "tf32"} == {x.format for x in report.checks}
    assert {"float32"} == {found.source for found in report.checks}
    met = {(found.format, known.count) for found in report.checks for known in found.known}
    assert met <= {("float8_e8m0fnu", 4)}
    assert "all formats from float64: TypeError: this one takes float32" in "\n".join(
        report.lines()
    )


def test_ml_dtypes_from_float64_fails_by_double_rounding():
    """Before 0.7 ml_dtypes rounds float64 twice: half the probes beside a midpoint are wrong."""
    if since(7):
        assert conformance(f"{HERE}:ml_dtypes_float64").passed
        return
    report = conformance(f"{HERE}:ml_dtypes_float64")
    assert not report.passed
    faults = {found.format: found for found in report.checks if found.wrong}
    assert {
        row.name for row in LISTED if row.name != "float16"
    } == faults.keys()  # float16 is NumPy's own, and right.
    assert faults["bfloat16"].wrong == 65_280
    assert faults["float8_e4m3fn"].wrong == 254
    for found in faults.values():
        assert ["double rounding through float32"] == [x.diagnosis for x in found.faults]


def test_gfloat_passes():
    """gfloat is right from both sources, but for what is listed of E8M0; ties there are policy."""
    optional("gfloat")
    with np.errstate(all="ignore"):
        report = conformance(f"{HERE}:gfloat")
    assert {found.format for found in report.checks} == set(formats)
    assert {found.format for found in report.checks if found.wrong} <= {"float8_e8m0fnu"}
    listed = [line for line in deviations() if line.function == "gfloat" and line.applies]
    assert report.passed or not listed
    (e8m0,) = [x for x in report.checks if (x.format, x.source) == ("float8_e8m0fnu", "float64")]
    assert "ties: the even code" in e8m0.policies


def test_torch_is_right_from_float32_and_not_from_float64():
    """The casts of torch are right from float32; from float64 they round twice, float16 too."""
    optional("torch")
    single = conformance(f"{HERE}:torch_cast", sources=["float32"])
    assert {found.format for found in single.checks if found.wrong} <= {"float8_e8m0fnu"}
    double = check_of(f"{HERE}:torch_cast", "float16")
    assert ["double rounding through float32"] == [x.diagnosis for x in double.faults]


def test_known_deviations_occur():
    """Each listed deviation whose library is installed is there: the list is strict."""
    for line in deviations():
        if line.applies:
            with np.errstate(all="ignore"):
                report = conformance(line.rounding, formats=[line.format], sources=[line.source])
            assert not report.stale
            assert line.reason in {known.reason for known in report.checks[0].known}


def test_a_listed_deviation_that_is_gone_fails(monkeypatch):
    """A line whose fault no longer occurs is told, and the report fails."""
    (line,) = [line for line in deviations() if line.function == "ml_dtypes_float32"]
    gone = dataclasses.replace(
        line, format="float16", low=1.0, high=2.0, reason="once wrong", last=INSTALLED
    )
    monkeypatch.setattr(check, "deviations", lambda: (line, gone))
    report = conformance(f"{HERE}:ml_dtypes_float32")
    assert report.wrong == 0
    assert not report.passed
    assert report.stale == ("float16 from float32: once wrong",)
    assert "listed, but no longer there: float16 from float32: once wrong" in "\n".join(
        report.lines()
    )


def test_a_deviation_of_another_version_is_not_excused(monkeypatch):
    """Beyond the versions listed a fault counts as one."""
    if since(7):
        pytest.skip("ml_dtypes has this fault no more")
    (line,) = [line for line in deviations() if line.function == "ml_dtypes_float32"]
    monkeypatch.setattr(check, "deviations", lambda: (dataclasses.replace(line, last="0.5.0"),))
    report = conformance(f"{HERE}:ml_dtypes_float32", formats=["e8m0fnu"])
    assert not report.passed
    assert report.wrong == 4


def test_a_function_built_on_a_library_is_excused_its_deviation():
    """Who gives what ml_dtypes gives shares its known deviation; another fault there counts."""

    def built_on_it(values, name):
        return values.astype(getattr(ml_dtypes, name)).astype(np.float64)

    found = check_of(built_on_it, "float8_e8m0fnu", "float32")
    assert found.wrong == 0
    if any(line.applies for line in deviations() if line.function == "ml_dtypes_float32"):
        (known,) = found.known
        assert (known.own, known.count) == (False, 4)

    def worse(values, name):
        lowest = (values > 2.0**-127) & (values < 1.5 * 2.0**-127)
        return np.where(lowest, 2.0**-125, built_on_it(values, name))

    assert check_of(worse, "float8_e8m0fnu", "float32").wrong == 4


def test_the_list_of_deviations_can_be_read():
    """Every line names a function of the module, a format, a source, versions and a reason."""
    assert deviations()
    for line in deviations():
        assert line.rounding is getattr(libraries, line.function)
        assert line.format in formats
        assert line.source in SOURCES
        assert line.low <= line.high
        assert line.reason
