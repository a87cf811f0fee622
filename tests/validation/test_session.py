# SPDX-License-Identifier: Apache-2.0
"""Outputs that no verdict counts: rows beyond float32's range."""

from __future__ import annotations

import numpy as np

from precision_lab.validation.examination import validate
from precision_lab.validation.specimens.table import specimens


def test_rows_beyond_float32_are_counted_and_asked_for_a_possible_value():
    """Of rows whose sum overflows 0 and the exact value pass, 1 does not; none is "explained"."""
    given = {"probes": ["near-largest"], "format": "float32", "diagnose": False}
    single = specimens["rms-late"].fresh()

    def ones(x, weight, bias, eps):
        y = single(x, weight, bias, eps)
        y[np.square(x.astype(np.float64)).sum(-1) > 2.0**128] = 1
        return y

    for name in ("rms-late", "rms-double"):
        verdict = validate(specimens[name].fresh(), **given)
        assert verdict.passed, str(verdict)
        assert verdict.outputs == 0 < verdict.unjudged.outputs
        assert "is not known to be a sound" in verdict.sentence
    assert not validate(ones, **given).passed
