# SPDX-License-Identifier: Apache-2.0
"""Outputs that are judged less than others: without affine, and beyond float32's range."""

from __future__ import annotations

import numpy as np
import pytest

from precision_lab.validation.examination import validate
from precision_lab.validation.specimens.table import specimens


@pytest.mark.parametrize("refused", ["weight", "bias", "both"])
def test_norms_without_affine_are_judged_as_fully(refused):
    """What takes no weight, no bias or neither is judged on as many calls as any other."""
    plain = specimens["layer-late"].fresh()

    def kernel(x, weight, bias, eps):
        if weight is not None and refused != "bias":
            raise ValueError("it takes no weight")
        if bias is not None and refused != "weight":
            raise ValueError("it takes no bias")
        return plain(x, weight, bias, eps)

    given = {"norm": "layer", "diagnose": False, "probes": ["normal", "gain", "nan"]}
    whole, verdict = validate(plain, **given), validate(kernel, **given)
    assert verdict.passed, str(verdict)
    assert verdict.outputs == whole.outputs
    assert verdict.unsupported


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
        assert verdict.unjudged.outputs > verdict.outputs == 0
        assert "is not known to be a sound RMSNorm" in verdict.sentence
    assert not validate(ones, **given).passed
