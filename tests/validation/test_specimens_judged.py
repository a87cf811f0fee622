# SPDX-License-Identifier: Apache-2.0
"""Kernels of which it is known whether they are right."""

from __future__ import annotations

import pytest
from conftest import wide

from precision_lab.validation.examination import validate
from precision_lab.validation.specimens.table import specimens

ALL = [(row, format) for row in specimens.values() for format in row.formats]
FIRST = {(row.fault, row.norm): row for row in reversed(list(specimens.values()))}
CLASSES = [
    # A class that both norms have is tried with one of them.
    wide(row) if norm == "layer" and fault and (fault, "rms") in FIRST else row
    for (fault, norm), row in FIRST.items()
]


def judged(specimen, format, **given):
    """The verdict on a specimen."""
    return validate(
        specimen.fresh(),
        norm=specimen.norm,
        format=format,
        weight_offset=specimen.weight_offset,
        name=specimen.name,
        diagnose=False,
        **given,
    )


@pytest.mark.parametrize("specimen", CLASSES, ids=lambda row: row.name)
def test_a_specimen_of_each_class(specimen):
    """A specimen of each class of faults is caught, and a sound one passes, for both norms."""
    verdict = judged(specimen, specimen.formats[-1])
    assert specimen.sound == verdict.passed, str(verdict)


@pytest.mark.slow
@pytest.mark.parametrize(("specimen", "format"), ALL, ids=lambda one: getattr(one, "name", one))
def test_every_specimen(specimen, format):
    """All faulty ones are caught and all sound ones pass, in every format."""
    verdict = judged(specimen, format)
    assert specimen.sound == verdict.passed, str(verdict)


@pytest.mark.slow
@pytest.mark.parametrize("specimen", [row for row in specimens.values() if row.sound],
                         ids=lambda row: row.name)  # fmt: skip
@pytest.mark.parametrize("seed", range(2, 6))
def test_sound_specimens_raise_no_alarm(specimen, seed):
    """Whatever the inputs, a sound specimen passes."""
    for format in specimen.formats:
        verdict = judged(specimen, format, seed=seed)
        assert verdict.passed, str(verdict)


@pytest.mark.parametrize("name", ["rms-output-saturated", "rms-output-held-at-448"])
def test_outputs_past_the_largest_value_are_tried(name):
    """What is held at a largest value is caught in every format, by the probe made for it."""
    for format in specimens[name].formats:
        assert not judged(specimens[name], format, probes=["overflow"]).passed
        sound = judged(specimens["rms-lanes"], format, probes=["overflow"])
        assert sound.passed, str(sound)


LONG = [
    f"{norm}{fault}"
    for fault in ("last-dropped", "element-5000-dropped", "rsqrt-14-bits")
    for norm in ("rms-", "rms-early-", "layer-")
] + ["rms-noise", "rms-rsqrt-within-2-ulp", "layer-rsqrt-within-2-ulp"]


@pytest.mark.slow
@pytest.mark.parametrize("format", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("name", LONG)
def test_a_long_row_hides_nothing(name, format):
    """At hidden 16,385 a lost element, a coarse root and noise are caught; sound ones pass."""
    row = specimens[name]
    verdict = judged(row, format, hidden=[16385])
    assert verdict.calls
    assert row.sound == verdict.passed, str(verdict)
