# SPDX-License-Identifier: Apache-2.0
"""Norms that have no weight, no bias, or neither."""

from __future__ import annotations

import numpy as np
import pytest

from precision_lab.validation.examination import validate

F32 = np.float32
SIZES = {"hidden": [8, 64, 130], "diagnose": False}


def layer(x, eps):
    """A plain float32 LayerNorm of rows, cast once."""
    f = x.astype(F32)
    d = f - np.mean(f, -1, keepdims=True, dtype=F32)
    return (d / np.sqrt(np.mean(d * d, -1, keepdims=True, dtype=F32) + F32(eps))).astype(x.dtype)


def rms(x, eps):
    """A plain float32 RMSNorm of rows, cast once."""
    f = x.astype(F32)
    return (f / np.sqrt(np.mean(f * f, -1, keepdims=True, dtype=F32) + F32(eps))).astype(x.dtype)


def weighted(x, weight, eps):
    """An RMSNorm of three arguments."""
    y = rms(x.astype(F32), eps)
    return (y if weight is None else y * weight.astype(F32)).astype(x.dtype)


def refusing(x, weight, bias, eps):
    """A LayerNorm that raises where it is given a weight or a bias."""
    if weight is not None or bias is not None:
        raise ValueError("neither weight nor bias")
    return layer(x, eps)


@pytest.mark.parametrize(("kernel", "norm"), [(layer, "layer"), (rms, "rms"), (refusing, "layer")])
def test_a_sound_norm_without_affine_passes_all_probes(kernel, norm):
    """Every probe that a kernel with a weight is judged on is judged without, too."""
    verdict = validate(kernel, norm=norm, **SIZES)
    assert verdict.passed
    assert any(limit.startswith("a weight") for limit in verdict.unsupported)
    full = validate(weighted, norm="rms", **SIZES)
    assert {row.probe for row in verdict.errors} >= {row.probe for row in full.errors}
    assert verdict.outputs > full.outputs / 4


def test_a_fault_of_a_norm_without_affine_is_found():
    """Not only a call with no weight by chance: eps matters near it alone."""
    verdict = validate(lambda x, eps: rms(x, eps / 2), norm="rms", **SIZES)
    assert any(failure.probe.startswith("near-eps") for failure in verdict.failures)


def test_a_function_of_x_weight_and_eps_is_an_rms_norm():
    """A kernel without a place for the bias is called without it, and refuses one."""
    verdict = validate(weighted, norm="rms", **SIZES)
    assert verdict.passed
    assert not verdict.unsupported
    verdict = validate(lambda x, weight, eps: layer(x, eps) * weight, norm="layer", **SIZES)
    assert any(limit.startswith("a bias") for limit in verdict.unsupported)


def test_the_plan_of_a_norm_without_affine_is_found():
    """And a batch is tried without a weight."""
    verdict = validate(
        rms, norm="rms", hidden=[64], require=["batch-invariant"], probes=["normal", "exact"]
    )
    assert verdict.passed
    assert "its outputs are those of" in verdict.diagnosis

    def switches(x, eps):
        y = rms(x, eps)
        return y if len(x) < 300 else np.nextafter(y, np.zeros_like(y))

    required = {"probes": ["normal"], "hidden": [64], "require": ["batch-invariant"]}
    assert not validate(switches, norm="rms", diagnose=False, **required).passed


@pytest.mark.parametrize("options", [{"elementwise_affine": False}, {"bias": False}])
def test_torch_layer_norms_without_affine_pass(options):
    """Both of torch's ways to leave out parameters."""
    torch = pytest.importorskip("torch")
    verdict = validate(torch.nn.LayerNorm(64, **options), diagnose=False)
    assert verdict.passed
    assert "many-rows" in {row.probe for row in verdict.errors}


def test_a_module_of_rows_alone_passes():
    """An RMSNorm without parameters."""
    torch = pytest.importorskip("torch")

    class PlainRMSNorm(torch.nn.Module):
        def forward(self, x):
            f = x.float()
            return (f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)

    verdict = validate(PlainRMSNorm(), eps=1e-6, **SIZES)
    assert verdict.passed
    assert {"near-eps-1", "every-kind"} <= {row.probe for row in verdict.errors}
