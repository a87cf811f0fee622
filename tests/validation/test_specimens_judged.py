# SPDX-License-Identifier: Apache-2.0
"""Kernels of which it is known whether they are right."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import wide

from precision_lab.kernels.running.claim import Claim
from precision_lab.validation.calls import default_calls
from precision_lab.validation.examination import validate
from precision_lab.validation.specimens.late import late, late_forms
from precision_lab.validation.specimens.table import specimens
from precision_lab.validation.standards import Sound

ALL = [(row, format) for row in specimens.values() for format in row.formats]
FIRST = {(row.fault, row.norm): row for row in reversed(list(specimens.values()))}
FEW = ("rms-late", "layer-late", "rms-half-for-all")
CLASSES = [row if row.name in FEW else wide(row) for row in FIRST.values()]


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


@pytest.mark.parametrize("name", ["layer-welford", "layer-scale-and-shift"])
def test_looser_statistics_of_rows_that_float32_cannot_hold_are_sound(name):
    """Rows of two neighbours near 2^23, and of one number past 2^115: any mean and root there."""
    verdict = judged(specimens[name], "float32", probes=["every-kind"], hidden=[1, 2])
    assert verdict.passed, str(verdict)


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


BASES = {(row.norm, row.weight_offset): row
         for row in reversed(list(specimens.values())) if row.sound}  # fmt: skip
FAULTY = [row for row in specimens.values() if not row.sound]
LATE = [
    (row, form, row.formats[(place + turn) % len(row.formats)])
    for place, row in enumerate(FAULTY)
    for turn, form in enumerate(late_forms.values())
]
"""Every faulty specimen in every late form, each in one of its formats."""


def late_verdict(row, form, format):
    """The verdict on a late form of a specimen."""
    specimen = late(row, form, sound=BASES[row.norm, row.weight_offset])
    return judged(specimen, format)


SAMPLE = [one if one[0].name in FEW else wide(*one) for one in LATE[:: len(LATE) // 9]]


@pytest.mark.parametrize(
    ("row", "form", "format"), SAMPLE, ids=lambda one: getattr(one, "name", one)
)
def test_late_forms_of_a_few_specimens(row, form, format):
    """A fault of some sizes, rows or eps alone is caught."""
    assert not late_verdict(row, form, format).passed


@pytest.mark.slow
@pytest.mark.parametrize(("row", "form", "format"), LATE, ids=lambda one: getattr(one, "name", one))
def test_every_late_form(row, form, format):
    """Caught; or told as what only the wider bound of a looser statistic explains; or no fault.

    No fault: all outputs where the form applies are within the bound of a direct statistic. Most of
    those are the sound kernel's own, such as of a tail that is dropped where there is none.
    """
    verdict = late_verdict(row, form, format)
    if verdict.passed and outside_direct_bound(row, form, format):
        assert any("needs the wider bound" in note for note in verdict.notes), str(verdict)


def outside_direct_bound(row, form, format):
    """A call with outputs where the form applies that no direct statistic explains, if any."""
    specimen = late(row, form, sound=BASES[row.norm, row.weight_offset])
    claim = Claim.of(norm=row.norm, format=format, weight_offset=row.weight_offset)
    kernel = specimen.fresh()
    for call in default_calls(claim):
        if form.applies(call.hidden, call.inputs.eps) and call.rows > form.first_row:
            arguments = [None if one is None else one.copy() for one in call.inputs.arguments()]
            with np.errstate(all="ignore"):
                y = np.asarray(kernel(*arguments, call.inputs.eps)).astype(np.float64)
            against = Sound(claim)
            against.alive = [one for one in against.alive if one.statistic == "direct"]
            if against.rejected(call.inputs, y) is not None:
                return str(call)
    return ""


@pytest.mark.slow
@pytest.mark.wide
def test_a_late_form_is_right_elsewhere():
    """Where a form does not apply, the sound kernel answers: such calls raise no alarm."""
    row = FAULTY[0]
    base = BASES[row.norm, row.weight_offset]
    for form, elsewhere in (
        ("hidden from 1024 on", {"hidden": [64, 769]}),
        ("hidden 4096", {"hidden": [1024, 4095]}),
        ("row 512 on", {"hidden": [64], "rows": [400]}),
        ("eps 1e-12", {"hidden": [64], "eps": [1e-6, 1e-5]}),
    ):
        verdict = judged(late(row, late_forms[form], sound=base), row.formats[0], **elsewhere)
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
