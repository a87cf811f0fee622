# SPDX-License-Identifier: Apache-2.0
"""The norms of torch and transformers, run on arrays: what their plans should give."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import optional
from library_inputs import shift

from precision_lab.numbers.table import formats
from precision_lab.plan.table import plans

MODULES = {
    "torch-rms-norm": ("torch.nn", "RMSNorm"),
    "torch-layer-norm": ("torch.nn", "LayerNorm"),
    "hf-llama": ("transformers.models.llama.modeling_llama", "LlamaRMSNorm"),
    "hf-t5": ("transformers.models.t5.modeling_t5", "T5LayerNorm"),
    "hf-gemma": ("transformers.models.gemma.modeling_gemma", "GemmaRMSNorm"),
    "hf-gemma3n": ("transformers.models.gemma3n.modeling_gemma3n", "Gemma3nRMSNorm"),
    "hf-olmo2": ("transformers.models.olmo2.modeling_olmo2", "Olmo2RMSNorm"),
}

WITH_AVX2 = ("AVX2", "AVX512")
"""The code of torch that torch-layer-norm describes: ATEN_CPU_CAPABILITY=avx2 and above."""


def module(plan, hidden, **given):
    """The implementation that a plan is named after."""
    torch = optional("torch")
    if plan == "torch-layer-norm" and torch.backends.cpu.get_cpu_capability() not in WITH_AVX2:
        pytest.skip("this CPU, or ATEN_CPU_CAPABILITY, is below avx2: torch fuses nothing there")
    path, kind = MODULES[plan]
    return getattr(optional(path), kind)(hidden, **given)


def to_torch(array):
    """The same bits as a tensor."""
    torch = optional("torch")
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.uint16).copy()).view(torch.bfloat16)
    return torch.from_numpy(array.copy())


def to_numpy(tensor):
    """The same bits as an array."""
    torch = optional("torch")
    dtype = formats[str(tensor.dtype).removeprefix("torch.")].dtype
    return tensor.view(torch.int32 if dtype.itemsize == 4 else torch.int16).numpy().view(dtype)


def real(plan, x, gain, eps, *, bias=None):
    """What the implementation makes of x, in the type that it gives."""
    torch = optional("torch")
    norm = module(plan, x.shape[-1], eps=eps)
    parts = {"weight": gain} | ({"bias": bias} if plans[plan].norm == "layer" else {})
    for name, part in parts.items():
        setattr(norm, name, None if part is None else torch.nn.Parameter(to_torch(part)))
    with torch.no_grad():
        return to_numpy(norm(to_torch(x)))


def affine(plan, format, hidden):
    """A bias for a layer norm, none for an rms norm."""
    if plans[plan].norm == "rms":
        return None
    return shift(format, hidden)


def parameters(plan, gain, bias):
    """Gains and biases, of which torch's own norms need neither, and transformers' their gain."""
    if plan == "torch-layer-norm":
        return [(gain, bias), (gain, None), (None, bias), (None, None)]
    return [(gain, None), (None, None)] if plan == "torch-rms-norm" else [(gain, None)]
