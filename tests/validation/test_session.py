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


def test_a_cast_that_saturates_is_told():
    """Where nothing else is wrong the verdict says which option to give; with it, it passes."""

    def saturating(x, weight, bias, eps):
        f = x.astype(np.float32)
        y = f / np.sqrt(np.mean(f * f, -1, keepdims=True, dtype=np.float32) + np.float32(eps))
        y = y if weight is None else y * weight.astype(np.float32)
        return np.clip(y, -448, 448).astype(x.dtype)

    def wrong(x, weight, bias, eps):
        return saturating(x, weight, bias, 2 * eps)

    given = {"format": "float8_e4m3fn", "probes": ["normal", "overflow", "near-eps-1"]}
    verdict = validate(saturating, **given, diagnose=False)
    assert not verdict.passed
    assert "--overflow saturate" in verdict.sentence
    assert validate(saturating, **given, overflow="saturate", diagnose=False).passed
    assert "--overflow saturate" not in validate(wrong, **given, diagnose=False).sentence
