# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math

import numpy as np
import pytest

from precision_lab import Capture, Layer, recommend_eps
from precision_lab.eps.findings import codes

PROMISED = (
    "eps-vanishes", "eps-rounded", "eps-absorbed", "eps-dominates", "reciprocal-overflows",
    "zero-row-nan", "square-overflows", "sum-overflows", "default-differs-from-release",
    "missing-eps",
)  # fmt: skip


def asked(rows, *, eps, format, plan="all-low", **others):
    """The findings about one rms norm with these rows, by code."""
    x = np.asarray(rows, np.float32)
    layer = Layer(name="norm", x=x, weight=np.ones(x.shape[1], np.float32))
    capture = Capture(model="", norm="rms", eps=eps, layers=(layer,))
    advice = recommend_eps(capture, format=format, plan=plan, **others)
    return {finding.code: finding for finding in advice.findings}


def test_the_promised_codes_are_all_there():
    """What scripts look for."""
    assert set(PROMISED) <= set(codes)


@pytest.mark.parametrize(
    ("code", "severity", "question"),
    [
        ("eps-vanishes", "harm", {"rows": [[1, 2]], "eps": 1e-12, "format": "float16"}),
        ("zero-row-nan", "harm", {"rows": [[1, 2]], "eps": 1e-12, "format": "float16"}),
        ("eps-rounded", "note", {"rows": [[1, 2]], "eps": 1e-6, "format": "float16"}),
        ("eps-rounded", "harm", {"rows": [[3e-4, 3e-4]], "eps": 1e-7, "format": "float16"}),
        ("eps-absorbed", "note", {"rows": [[1, 2]], "eps": 1e-6, "format": "float16"}),
        ("eps-dominates", "note", {"rows": [[1e-3, 1e-4]], "eps": 1e-5, "format": "bfloat16"}),
        ("square-overflows", "harm", {"rows": [[300, 1]], "eps": 1e-5, "format": "float16"}),
        ("row-overflows", "harm", {"rows": [[1e5, 1], [1, 2]], "eps": 1e-5, "format": "float16"}),
        ("sum-overflows", "harm", {"rows": [[200] * 4], "eps": 1e-5, "format": "float16"}),
        ("eps-departs", "harm", {"rows": [[0.1, 0.2]], "eps": 0.01, "format": "float16",
                                 "plan": "rmsnorm-paper-torch"}),
        ("eps-amplifies", "harm", {"rows": [[1, 2]], "eps": 1e-7, "format": "bfloat16",
                                   "new": True}),
        ("eps-shrinks", "harm", {"rows": [[1, 2]], "eps": 0.5, "format": "bfloat16", "new": True}),
    ],
)  # fmt: skip
def test_each_finding_is_made_where_it_is_true(code, severity, question):
    """With its severity, a norm or the model, and a sentence with a number in it."""
    found = asked(**question)[code]
    assert severity == found.severity
    assert any(letter.isdigit() for letter in found.text)


def test_a_reciprocal_past_the_range_is_found():
    """float8_e4m3fn holds 2^-9 but a reciprocal format of 4 bits not 1/√2^-9."""
    from precision_lab import plans

    plan = plans["late"].replace(reciprocal_format="float4_e2m1fn")
    found = asked([[1, 2]], eps=1e-3, format="float16", plan=plan)
    assert "harm" == found["reciprocal-overflows"].severity


def test_harmless_eps_have_no_harm_among_their_findings():
    """float32 statistics and 1e-5: at most notes."""
    found = asked([[1, 2], [0.1, 3]], eps=1e-5, format="bfloat16", plan="late")
    assert {"harm"} & {finding.severity for finding in found.values()} == set()


def test_what_a_rounded_eps_takes_off_is_what_the_sentence_says():
    """1e-6 becomes 1.0133e-6 in float16."""
    text = asked([[1, 2]], eps=1e-6, format="float16")["eps-rounded"].text
    becomes = float(np.float16(1e-6))
    assert f"{becomes:.6g}" in text
    assert f"{(becomes - 1e-6) / 1e-6:.2g}" in text
    assert math.isclose(becomes, 1.0133e-6, rel_tol=1e-4)
