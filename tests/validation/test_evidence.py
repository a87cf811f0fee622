# SPDX-License-Identifier: Apache-2.0
"""Outputs beyond what float32 can do: not counted, and not free."""

from __future__ import annotations

import json

import numpy as np
import pytest

from precision_lab.validation.examination import validate
from precision_lab.validation.probe_table import Probe

F32 = np.float32
BEYOND = {"probes": ["near-largest", "normal"], "hidden": [8, 64], "diagnose": False}


def rms_in(wide):
    """An RMSNorm that computes in a type, cast once."""

    def kernel(x, weight, bias, eps):
        f = x.astype(wide)
        y = f / np.sqrt(np.mean(f * f, -1, keepdims=True, dtype=wide) + wide(eps))
        return (y if weight is None else y * weight.astype(wide)).astype(F32).astype(x.dtype)

    return kernel


def scaled(x, weight, bias, eps):
    """A float32 RMSNorm that divides rows by their largest value before squaring."""
    f = x.astype(F32)
    top = np.maximum(np.abs(f).max(-1, keepdims=True), F32(1e-30))
    z = f / top
    y = z / np.sqrt(np.mean(z * z, -1, keepdims=True, dtype=F32) + F32(eps) / top / top)
    return (y if weight is None else y * weight.astype(F32)).astype(x.dtype)


def sequential(x, weight, bias, eps):
    """A float32 LayerNorm that adds one element after another."""
    f, n = x.astype(F32), F32(x.shape[1])
    d = f - np.cumsum(f, -1, dtype=F32)[:, -1:] / n
    y = d / np.sqrt(np.cumsum(d * d, -1, dtype=F32)[:, -1:] / n + F32(eps))
    y = y if weight is None else y * weight.astype(F32)
    return (y if bias is None else y + bias.astype(F32)).astype(x.dtype)


def replaced(change):
    """A wide RMSNorm, but rows whose squares overflow float32 are as `change` makes them."""
    sound = rms_in(np.float64)

    def kernel(x, weight, bias, eps):
        y, f = sound(x, weight, bias, eps), x.astype(np.float64)
        rows = np.isfinite(f).all(-1) & (np.sum(f * f, -1) >= 2.0**128)
        y[rows] = change(y[rows])
        return y

    return kernel


@pytest.mark.parametrize("format", ["bfloat16", "float32"])
@pytest.mark.parametrize(
    "kernel", [rms_in(F32), rms_in(np.float64), scaled], ids=["narrow", "wide", "scaled"]
)
def test_rows_past_the_range_may_be_0_or_exact_and_are_not_counted(kernel, format):
    """Float32 squares overflow, wider and scaled ones do not; both are sound."""
    verdict = validate(kernel, format=format, **BEYOND)
    assert verdict.passed
    # One call of 4 rows at each size.
    assert verdict.unjudged.out_of_range == 4 * (8 + 64)
    alone = validate(kernel, format=format, **{**BEYOND, "probes": ["normal"]})
    assert verdict.outputs == alone.outputs
    assert f"all {verdict.outputs:,} outputs" in verdict.sentence
    assert "working range: rows whose squares sum to less than 2^128; 288 outputs" in str(verdict)
    assert json.loads(verdict.to_json())["unjudged"]["outputs"] == 288


@pytest.mark.parametrize("format", ["bfloat16", "float32"])
@pytest.mark.parametrize(
    "change",
    [
        np.ones_like,
        lambda y: np.full_like(y, 1e30),
        # Zeros among exact values.
        lambda y: y * (np.arange(y.shape[1]) % 2).astype(y.dtype),
    ],
    ids=["ones", "huge", "half"],
)
def test_rows_past_the_range_are_not_free(change, format):
    """What no float32 kernel gives is a fault there too."""
    verdict = validate(replaced(change), format=format, **BEYOND)
    assert "near-largest" in {one.probe for one in verdict.failures}


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0])
def test_rows_past_the_range_may_be_lost(value):
    """By another order of summation, or an infinite mean."""
    assert validate(replaced(lambda y: np.full_like(y, value)), **BEYOND).passed


def test_a_run_of_rows_past_the_range_alone_shows_nothing():
    """It passes, and is not called sound."""
    verdict = validate(rms_in(F32), probes=["near-largest"], diagnose=False)
    assert verdict.passed
    assert (verdict.outputs, verdict.schedule) == (0, None)
    assert "is not known to be a sound RMSNorm" in verdict.sentence


def test_rows_with_a_large_mean_are_told_as_beyond_float32():
    """The error is the kernel's, as measured in extended precision; another kernel has none."""
    far = Probe(
        "far", "", lambda a: 1e7 + a.family("normal"), hidden=(4096,), rows=8, gains=("none",)
    )
    settings = {"norm": "layer", "format": "float32", "eps": 1e-5, "diagnose": False}
    measured = []

    def observed(x, weight, bias, eps):
        y = sequential(x, weight, bias, eps)
        if x.shape == (8, 4096):
            wide = x.astype(np.longdouble)
            d = wide - wide.mean(-1, keepdims=True)
            right = d / np.sqrt((d * d).mean(-1, keepdims=True) + eps)
            right = right if bias is None else right + bias
            measured.append(float(np.abs(y - right).max()))
        return y

    verdict = validate(observed, probes=[far, "exact"], **settings)
    assert verdict.passed
    assert verdict.unjudged.coarse == 8 * 4096
    assert measured[0] > 4
    assert verdict.unjudged.error == pytest.approx(measured[0], rel=1e-6)
    assert "with a note" in verdict.sentence
    assert "beyond float32: 32,768 outputs of rows whose mean" in str(verdict)

    def wide(x, weight, bias, eps):
        f = x.astype(np.float64)
        d = f - f.mean(-1, keepdims=True)
        y = d / np.sqrt((d * d).mean(-1, keepdims=True) + eps)
        y = y if weight is None else y * weight
        return (y if bias is None else y + bias).astype(x.dtype)

    verdict = validate(wide, probes=[far, "exact"], **settings)
    assert verdict.passed
    assert verdict.unjudged.coarse == 8 * 4096
    assert verdict.unjudged.error < 1e-5
    assert "with a note" not in verdict.sentence
