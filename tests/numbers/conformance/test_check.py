# SPDX-License-Identifier: Apache-2.0
"""The check as a whole: this package's rounding, the report, what is asked of a function."""

from __future__ import annotations

import json

import numpy as np
import pytest
from faulty_rounding import right, ties_away

from precision_lab.exceptions import InputError
from precision_lab.numbers.conformance import check
from precision_lab.numbers.conformance.check import conformance
from precision_lab.numbers.conformance.decision_points import SOURCES
from precision_lab.numbers.format import MODES, OVERFLOW_POLICIES
from precision_lab.numbers.table import formats


def test_own_rounding_has_nothing_wrong_in_any_mode():
    """`Format.round` is right at every decision point, in all modes, policies and formats."""
    report = conformance()
    assert report.passed
    assert report.wrong == 0
    assert {
        (row, source, mode, overflow)
        for row in formats
        for source in SOURCES
        for mode in MODES
        for overflow in OVERFLOW_POLICIES
    } == {(found.format, found.source, found.mode, found.overflow) for found in report.checks}
    assert min(found.points for found in report.checks) > 100
    text = "\n".join(report.lines())
    assert "0 wrong of 52,613,712" in text
    assert all(mode in text for mode in MODES)


def test_own_rounding_would_be_found_wrong(monkeypatch):
    """With one wrong value in one mode the report fails, and shows it in hex with its count."""
    real = check.formats["float8_e5m2"].__class__.round

    def faulty(self, values, *, mode="nearest_even", **options):
        found = real(self, values, mode=mode, **options)
        return np.where((values == 1.0) & (mode == "up"), 1.25, found)

    monkeypatch.setattr(check.formats["float8_e5m2"].__class__, "round", faulty)
    report = conformance(formats=["e5m2"], sources=["float32"])
    assert not report.passed
    assert report.wrong == 2
    assert {"up"} == {found.mode for found in report.checks if found.wrong}
    text = "\n".join(report.lines())
    assert "FAILED: 2 wrong of" in text
    assert "worst, value: 0x1.0000000000000p+0 (1) gives 1.25, right is 1" in text


def test_reports_are_json_and_text():
    """A report turns into JSON with floats in hex, and into text that names the worst point."""
    report = conformance(ties_away, formats=["e4m3fn", "bf16"])
    data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert data["passed"] is False
    assert data["wrong"] == report.wrong
    fault = data["checks"][0]["faults"][0]
    assert fault["diagnosis"] == "ties away from zero"
    assert float.fromhex(fault["value"]) == report.checks[0].faults[0].value
    text = "\n".join(report.lines())
    assert "faulty_rounding:ties_away at the decision points" in text
    assert f"FAILED: {report.wrong:,} wrong of {report.points:,}" in text
    assert "float8_e4m3fn from float64, nearest_even: ties away from zero, 128 of 4,488" in text


def test_formats_are_taken_by_name_alias_or_record():
    """Names, aliases and records are formats alike, each checked once; switches are refused."""
    report = conformance(right, formats=["fp16", formats["float16"], "float16"])
    assert ["float16", "float16"] == [found.format for found in report.checks]
    with pytest.raises(InputError, match="without switches"):
        conformance(right, formats=[formats["float16"].flushed])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"formats": ["float17"]}, "unknown format 'float17'"),
        ({"modes": ["nearest"]}, "unknown rounding mode 'nearest'"),
        ({"sources": ["bfloat16"]}, "unknown source 'bfloat16'"),
        ({"sources": []}, "nothing to check"),
        ({"modes": []}, "nothing to check"),
        ({"formats": []}, "nothing to check"),
        ({"modes": ["stochastic"]}, "told no random bits"),
    ],
)
def test_arguments_are_checked(options, message):
    """Names that are in no table, and checks of nothing, are refused in one sentence."""
    with pytest.raises(InputError, match=message):
        conformance(right, **options)


def test_the_function_gets_a_copy_of_its_own():
    """A function that spoils its input spoils nothing."""

    def spoils(values, name):
        found = right(values, name)
        values[:] = 7
        return found

    assert conformance(spoils, formats=["e5m2"]).passed
    assert conformance(right, formats=["e5m2"]).passed


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (lambda values: values.astype(np.float32), "float32 of shape"),
        (lambda values: values.astype(np.float64)[:-1], "float64 of shape"),
        (lambda values: values.astype(np.float64)[:, None], r"float64 of shape \(1, 1\)"),
        (lambda values: values.tolist(), "a list"),
        (lambda values: None, "a NoneType"),
    ],
)
def test_answers_of_another_type_or_shape_are_refused(answer, what):
    """The answer must be a float64 array of the values' shape; the message says what came."""
    with pytest.raises(InputError, match=f"for float16 the function gave {what}"):
        conformance(lambda values, name: answer(values), formats=["float16"], sources=["float64"])


def test_formats_that_a_function_does_not_take_are_listed():
    """Who raises at the value 1 declines a format: it is listed, and the rest is checked."""

    def picky(values, name):
        if name != "float16":
            raise KeyError(name)
        return right(values, name)

    report = conformance(picky)
    assert report.passed
    assert {"float16"} == {found.format for found in report.checks}
    assert len(report.declined) == 2 * (len(formats) - 1)
    assert "bfloat16: KeyError: 'bfloat16'" in "\n".join(report.lines())
    with pytest.raises(InputError, match="does not take bfloat16 from float32: KeyError"):
        conformance(picky, formats=["float16", "bfloat16"])
    with pytest.raises(InputError, match="does not take float64 from float32: ZeroDivisionError"):
        conformance(lambda values, name: 1 / 0)


def test_a_function_that_raises_at_some_point_is_told():
    """Raising at decision points of a format that was taken is an error with what was said."""

    def brittle(values, name):
        if not np.isfinite(values).all():
            message = "no infinities, please"
            raise OverflowError(message)
        return right(values, name)

    message = "raised OverflowError: no infinities, please at decision points of float16"
    with pytest.raises(InputError, match=message):
        conformance(brittle, formats=["float16"])


def test_what_is_no_function_is_refused():
    """A record or a number is nothing to call."""
    with pytest.raises(InputError, match="is no function to check"):
        conformance(3)
