# SPDX-License-Identifier: Apache-2.0
"""Kernels whose x, gain and output have formats of their own."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from conftest import optional, wide

from precision_lab.validation.examination import validate

F32, E4M3 = np.float32, ml_dtypes.float8_e4m3fn
FEW = {"hidden": [3, 64, 130], "diagnose": False}


def normalised(x, eps, *, centred=False):
    """(x − m)·r in float32."""
    f = x.astype(F32)
    f = f - f.mean(-1, keepdims=True, dtype=F32) if centred else f
    return f / np.sqrt((f * f).mean(-1, keepdims=True, dtype=F32) + F32(eps))


def scaled(v, weight, bias=None):
    """v·g + b in float32."""
    y = v if weight is None else v * weight.astype(F32)
    return y if bias is None else y + bias.astype(F32)


def early_in_own_format(x, weight, bias, eps):
    """Cast to x's type before a gain that is float32, as transformers' LlamaRMSNorm."""
    return scaled(normalised(x, eps).astype(x.dtype).astype(F32), weight)


def early_in_another_format(x, weight, bias, eps):
    """The same by way of float16, whatever x is."""
    return scaled(normalised(x, eps).astype(np.float16).astype(F32), weight)


def unfused(x, weight, bias, eps):
    """A norm in x's type, and then a cast."""
    return scaled(normalised(x, eps), weight).astype(x.dtype).astype(E4M3)


def unfused_early(x, weight, bias, eps):
    """The same with a cast before the gain."""
    v = normalised(x, eps).astype(x.dtype).astype(F32)
    return scaled(v, weight).astype(x.dtype).astype(E4M3)


def unfused_layer(x, weight, bias, eps):
    """The same of a LayerNorm."""
    return scaled(normalised(x, eps, centred=True), weight, bias).astype(x.dtype).astype(E4M3)


def truncated(x, weight, bias, eps):
    """A norm in x's type, of which the last bits are cut off, and then a cast."""
    y = scaled(normalised(x, eps), weight)
    return (
        (y.view(np.uint32) & F32(-1).view(np.uint32) << 17).view(F32).astype(x.dtype).astype(E4M3)
    )


SOUND = [
    (early_in_own_format, "rms", "float32", "early-in-bfloat16/direct"),
    (unfused, "rms", "float8_e4m3fn", "late-through-bfloat16/direct"),
    wide(unfused_early, "rms", "float8_e4m3fn", "early-through-bfloat16/direct"),
    wide(unfused_layer, "layer", "float8_e4m3fn", "late-through-bfloat16/direct"),
]


@pytest.mark.parametrize(("kernel", "norm", "output", "schedule"), SOUND)
def test_a_second_format_is_a_schedule(kernel, norm, output, schedule):
    """It is sound, and its schedule is named; x is bfloat16 and the gain float32."""
    verdict = validate(kernel, norm=norm, output_format=output, weight_format="float32", **FEW)
    assert verdict.passed, str(verdict)
    assert schedule == verdict.schedule


@pytest.mark.parametrize(
    ("kernel", "output"),
    [(early_in_another_format, "float32"), (truncated, "float8_e4m3fn")],
)
def test_other_formats_and_other_roundings_are_faults(kernel, output):
    """A format that neither x nor y has; a cast that cuts off."""
    verdict = validate(kernel, output_format=output, weight_format="float32", **FEW)
    assert not verdict.passed


def test_a_saturating_cast_is_named_beside_a_second_format():
    """What it saturates at is told, and how to ask for it."""

    def held(x, weight, bias, eps):
        y = scaled(normalised(x, eps), weight).astype(x.dtype).astype(F32)
        return np.clip(y, F32(-448), F32(448)).astype(E4M3)

    options = {
        "output_format": "float8_e4m3fn",
        "diagnose": False,
        "probes": ["normal", "overflow"],
    }
    verdict = validate(held, **options)
    assert "give --overflow saturate" in verdict.sentence
    assert validate(held, overflow="saturate", **options).passed


@pytest.mark.parametrize(
    "name", ["llama.modeling_llama:LlamaRMSNorm", "t5.modeling_t5:T5LayerNorm"]
)
def test_a_module_has_weights_of_the_format_that_is_claimed(name):
    """Where a call has none, too: a gain of float32 makes float32 of all outputs."""
    optional("transformers")
    verdict = validate(
        f"transformers.models.{name}", weight_format="float32", output_format="float32",
        hidden=[3, 64], probes=["normal", "gain", "zero"], diagnose=False,
    )  # fmt: skip
    assert verdict.passed, str(verdict)
