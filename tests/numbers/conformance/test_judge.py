# SPDX-License-Identifier: Apache-2.0
"""Faults are found and named, and policies are told from them."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import wide
from faulty_rounding import (
    check_of,
    drops_nan,
    far,
    flips,
    flushes,
    flushes_first,
    loses_signs,
    off_grid,
    overflows_early,
    overflows_either_way,
    right,
    through_float16,
    through_float32,
    ties_away,
    truncates,
)

from precision_lab.numbers.conformance.check import conformance
from precision_lab.numbers.conformance.decision_points import SOURCES, points, same_values
from precision_lab.numbers.conformance.judge import INTERMEDIATES, MODE_NAMES
from precision_lab.numbers.format import MODES
from precision_lab.numbers.table import formats

each_source = pytest.mark.parametrize("source", SOURCES)


@pytest.mark.parametrize(
    ("function", "diagnosis"),
    [
        (truncates, "truncation"),
        (ties_away, "ties away from zero"),
        (flushes, "subnormals flushed"),
        (flushes_first, "subnormals flushed"),
        (loses_signs, "the sign of zero lost"),
        (through_float16, "double rounding through float16"),
        (through_float32, "double rounding through float32"),
        (overflows_early, "infinity or NaN within the range"),
        (overflows_either_way, "no one answer past the largest value"),
        (flips, "wrong sign"),
        (off_grid, "not a value of the format"),
        (far, "neither neighbour"),
        (drops_nan, "NaN taken for a number"),
    ],
)
@pytest.mark.parametrize("name", ["float8_e4m3", "float8_e5m2"])
def test_faults_are_found_and_named(function, diagnosis, name):
    """Each way to go wrong is a fault, and is told for what it is."""
    with np.errstate(all="ignore"):
        found = check_of(function, name)
    assert found.wrong == sum(fault.count for fault in found.faults) > 0
    assert diagnosis == found.faults[0].diagnosis


FEW = ["float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn"]
SMALL = [row.name for row in formats.values() if row.bits <= 8 and row.name not in FEW]
DETERMINISTIC = MODES[:-1]


def diagnoses(function, name, mode):
    """What is said of a function in one format held to a mode, from either source, if wrong."""
    report = conformance(function, formats=[name], modes=[mode])
    return [[fault.diagnosis for fault in found.faults] for found in report.checks if found.wrong]


@pytest.mark.parametrize("mode", DETERMINISTIC)
@pytest.mark.parametrize("way", INTERMEDIATES)
@pytest.mark.parametrize("name", [*FEW, *(wide(each) for each in [*SMALL, "tf32"])])
def test_the_intermediate_is_named_that_gave_the_wrong_codes(name, way, mode):
    """Rounding through float32, float16 or bfloat16 first is named as that alone, in each mode."""

    def twice(values, format):
        return right(formats[way].round(values), format, mode=mode)

    found = diagnoses(twice, name, mode)
    assert [[f"double rounding through {way}"]] * len(found) == found
    # float32 holds its own numbers.
    assert len(found) == (1 if way == "float32" else 2)


@pytest.mark.parametrize("mode", DETERMINISTIC)
@pytest.mark.parametrize("name", [*FEW, *(wide(each) for each in [*SMALL, "bfloat16"])])
def test_the_mode_is_named_that_a_function_keeps(name, mode):
    """A function of another mode than it is held to is named by its mode, and by nothing else."""

    def directed(values, format):
        return right(values, format, mode=mode)

    values = points(name, "float64").values
    # At precision 1 all are odd and positive: some modes are one.
    codes = {one: right(values, name, mode=one) for one in DETERMINISTIC}
    coded = ~np.any([np.isnan(each) for each in codes.values()], axis=0)
    alike = [one for one, each in codes.items() if same_values(each, codes[mode])[coded].all()]
    assert name == "float8_e8m0fnu" or alike == [mode]
    for wanted in DETERMINISTIC:
        found = diagnoses(directed, name, wanted)
        assert all(one in [[MODE_NAMES[kept]] for kept in alike] for one in found), wanted
        assert bool(found) == (wanted not in alike)


@pytest.mark.parametrize("way", INTERMEDIATES)
@pytest.mark.parametrize("name", ["float8_e4m3fn", "float4_e2m1fn", "float8_e5m2"])
def test_mode_and_intermediate_are_named_together(name, way):
    """A cast to nearest through another format, where rounding up is wanted, is both."""

    def cast(values, format):
        return right(formats[way].round(values), format)

    both = [f"ties to even, and double rounding through {way}"]
    first = ["ties to even"] if way == "float32" else both
    assert [first, both] == diagnoses(cast, name, "up")


def test_what_fits_no_intermediate_and_no_mode_is_named_by_its_looks():
    """Nearest for half of the numbers where rounding up is wanted is no known way to go wrong."""

    def half(values, format):
        return np.where(values > 0, right(values, format), right(values, format, mode="up"))

    for found in diagnoses(half, "float8_e4m3fn", "up"):
        assert found[0] == "wrong neighbour"


def test_mixed_faults_are_told_apart():
    """Double rounding and flushing in one function are two findings, each with its count."""

    def mixed(values, name):
        return flushes(through_float32(values, name).astype(np.float64), name)

    found = check_of(mixed, "bfloat16")
    assert {"double rounding through float32", "subnormals flushed"} == {
        fault.diagnosis for fault in found.faults
    }
    assert found.wrong == sum(fault.count for fault in found.faults)


def test_one_wrong_tie_is_found():
    """A single point that is wrong among thousands is found and shown."""

    def slips(values, name):
        return np.where(values == 1.0625, 1.125, right(values, name))

    found = check_of(slips, "float8_e4m3fn")
    (fault,) = found.faults
    assert (fault.count, fault.diagnosis, fault.kind) == (1, "wrong neighbour", "midpoint")
    assert (fault.value, fault.got, fault.right) == (1.0625, 1.125, 1.0)


@pytest.mark.parametrize("mode", MODES[:-1])
def test_a_function_can_be_held_to_any_mode(mode):
    """A function is right in the mode that it keeps and wrong in every other."""

    def directed(values, name):
        return right(values, name, mode=mode)

    report = conformance(directed, formats=["e4m3fn"], modes=MODES[:-1])
    assert {mode} == {found.mode for found in report.checks if not found.wrong}


@pytest.mark.parametrize(
    ("name", "function", "policies"),
    [
        (
            "float8_e4m3fn",
            lambda x, name: right(x, name, overflow="saturate"),
            {"past the largest value: the largest value", "infinity: the largest value"},
        ),
        (
            "float16",
            lambda x, name: np.where(np.isinf(x), x, right(x, name, overflow="saturate")),
            {"past the largest value: the largest value"},
        ),
        (
            "float8_e5m2",
            lambda x, name: np.where(np.isinf(right(x, name)), np.nan, right(x, name)),
            {"past the largest value: NaN", "infinity: NaN"},
        ),
        (
            "float8_e4m3fnuz",
            lambda x, name: np.where(right(x, name) == 0, np.copysign(0.0, x), right(x, name)),
            {"the sign of zero: kept"},
        ),
        (
            "float6_e2m3fn",
            lambda x, name: np.where(np.isnan(x), -0.0, right(x, name, overflow="saturate")),
            {
                "past the largest value: the largest value",
                "infinity: the largest value",
                "NaN: 0",
            },
        ),
        (
            "float8_e8m0fnu",
            lambda x, name: np.where(x == 0, 2.0**-127, right(abs(x), name)),
            {"zero: 5.87747e-39", "negative numbers: the magnitude's"},
        ),
        (
            "float8_e8m0fnu",
            lambda x, name: np.where((x >= 0) & (x <= 2.0**-128), 0.0, right(x, name)),
            {"zero: 0", "below the smallest value: zero up to half of it"},
        ),
    ],
)
@each_source
def test_policies_are_no_faults(name, function, policies, source):
    """What a standard leaves open is told, and passes, if it is answered alike everywhere."""
    found = check_of(function, name, source)
    assert found.wrong == 0, found.faults
    assert policies <= set(found.policies)


def test_refusing_what_has_no_code_is_policy():
    """A function may raise for NaN and overflow in a format that has no code for them."""

    def refuses(values, name):
        return formats[name].cast(values).astype(np.float64)

    found = check_of(refuses, "float4_e2m1fn")
    assert found.wrong == 0
    assert found.policies[0].startswith("values without a code: refused (InputError: float4")


def test_own_policies_are_not_listed():
    """What this package does too is no line in a report."""
    report = conformance(right)
    assert report.passed
    assert {()} == {found.policies for found in report.checks}
