# SPDX-License-Identifier: Apache-2.0
"""Sound kernels that no specimen is like."""

from __future__ import annotations

import pytest
from sound_kernels import KERNELS

from precision_lab.validation.examination import validate

FORMATS = ("bfloat16", "float32", "float16", "float8_e4m3fn")
BY_NAME = {row.name: row for row in KERNELS}


def judged(row, format, **options):
    """The verdict on a kernel."""
    return validate(
        row.kernel, norm=row.norm, format=format, name=row.name, diagnose=False,
        **row.options, **options,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "format", "hidden", "kind"),
    [
        ("rms-tree", "float32", 16385, "direct"),
        ("rms-divided-first-first-to-last", "bfloat16", 16385, "scaled"),
        ("rms-by-largest-first-to-last", "float32", 16385, "scaled"),
        ("rms-running-weights", "float32", 16385, "running"),
        ("layer-tree", "float32", 64, "direct"),
        ("layer-shifted-by-first", "float32", 64, "shifted"),
    ],
)
def test_a_wider_kind_is_chosen_only_where_it_is_needed(name, format, hidden, kind):
    """The kernel passes with the narrowest kind that explains it; a wider one has a note."""
    # What no order rounds in the narrowest kind; means of rows that a shift rounds.
    verdict = judged(BY_NAME[name], format, probes=["exact", "sparse", "gain"], hidden=[hidden])
    assert verdict.passed, str(verdict)
    assert verdict.schedule.split("/")[1] == kind
    assert len(verdict.notes) == (kind != "direct")


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("row", KERNELS, ids=lambda row: row.name)
def test_sound_kernels_raise_no_alarm(row, format):
    """All of them pass in every format."""
    if row.narrow and format == "float32":
        pytest.skip("float64 does not hold the squares of float32 inputs")
    verdict = judged(row, format)
    assert verdict.passed, str(verdict)
