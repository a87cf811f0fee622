# SPDX-License-Identifier: Apache-2.0
"""Who races whom: each task with this package's way and the ways of others, on the same arrays.

A contender is a function without arguments. Packages that are not installed drop out, and
`missing` names them.
"""

from __future__ import annotations

import importlib.util
from functools import partial
from typing import TYPE_CHECKING, Any

import ml_dtypes
import mpmath
import numpy as np

from precision_lab import emulate, formats, truth

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[Any]

OURS = "precision_lab"
ROWS, HIDDEN, EPS = 64, 4096, 1e-6
ROUNDED = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")

OPTIONAL = {
    "gfloat": ("gfloat", 'pip install -e ".[test]"'),
    "python-flint balls": ("flint", 'pip install -e ".[flint]"'),
    "torch F.rms_norm": ("torch", 'pip install -e ".[torch]"'),
    "transformers LlamaRMSNorm": ("transformers", "pip install transformers"),
}
"""Contenders by the package that they need, and how it is installed."""

Contenders = dict[str, "Callable[[], object]"]


def has(package: str) -> bool:
    """Whether a package is installed, without importing it."""
    return importlib.util.find_spec(package) is not None


def missing() -> dict[str, str]:
    """Contenders whose packages are not installed, and the command that installs them."""
    return {name: command for name, (needs, command) in OPTIONAL.items() if not has(needs)}


def tasks() -> dict[str, Contenders]:
    """Every task by name; in each, this package first."""
    return {
        **{f"round 1e6 float32 to {name}": rounding(name) for name in ROUNDED},
        "RMSNorm truth, bf16 [64, 4096] to bf16": norm_truth("rms"),
        "LayerNorm truth, bf16 [64, 4096] to bf16": norm_truth("layer"),
        "hf-llama, bf16 [64, 4096]": llama(),
    }


def rounding(name: str) -> Contenders:
    """float32 values to a format, back as float64."""
    rng = np.random.default_rng(1)
    values = rng.standard_normal(10**6, np.float32)
    row = formats[name]
    dtype = row.dtype
    contenders: Contenders = {
        OURS: lambda: row.round(values),
        "ml_dtypes": lambda: values.astype(dtype).astype(np.float64),
    }
    if has("gfloat"):
        import gfloat.formats

        info = getattr(gfloat.formats, GFLOAT[name])
        contenders["gfloat"] = lambda: gfloat.round_ndarray(info, values)
    return contenders


GFLOAT = {
    "float16": "format_info_binary16",
    "bfloat16": "format_info_bfloat16",
    "float8_e4m3fn": "format_info_ocp_e4m3",
    "float8_e5m2": "format_info_ocp_e5m2",
}


def arrays() -> tuple[Array, Array]:
    """Inputs and a gain, bfloat16."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal((ROWS, HIDDEN)).astype(ml_dtypes.bfloat16)
    return x, (1 + 0.1 * rng.standard_normal(HIDDEN)).astype(ml_dtypes.bfloat16)


def norm_truth(norm: str) -> Contenders:
    """The exact norm, correctly rounded; beside it what proves less, or the same more slowly."""
    x, weight = arrays()
    contenders: Contenders = {
        OURS: lambda: truth(norm, x, weight, eps=EPS).round("bfloat16"),
        "plain float64": partial(plain_float64, norm, x, weight),
        "mpmath, 200 bits": partial(with_mpmath, norm, x, weight),
    }
    if has("flint"):
        contenders["python-flint balls"] = partial(with_flint, norm, x, weight)
    return contenders


def plain_float64(norm: str, x: Array, weight: Array) -> Array:
    """The textbook formula, nothing proved and nothing rounded to bf16."""
    wide, gain = x.astype(np.float64), weight.astype(np.float64)
    if norm == "layer":
        wide = wide - wide.mean(-1, keepdims=True)
    normalised: Array = wide / np.sqrt(np.square(wide).mean(-1, keepdims=True) + EPS)
    return normalised * gain


def with_mpmath(norm: str, x: Array, weight: Array) -> list[list[mpmath.mpf]]:
    """The textbook formula at 200 bits."""
    gain = [mpmath.mpf(g) for g in weight.astype(np.float64).tolist()]
    outputs = []
    with mpmath.workprec(200):
        for row in x.astype(np.float64).tolist():
            values = [mpmath.mpf(value) for value in row]
            if norm == "layer":
                mean = mpmath.fsum(values) / HIDDEN
                values = [value - mean for value in values]
            squares = mpmath.fsum(value * value for value in values)
            root = 1 / mpmath.sqrt(squares / HIDDEN + EPS)
            outputs.append([value * root * g for value, g in zip(values, gain, strict=True)])
    return outputs


def with_flint(norm: str, x: Array, weight: Array) -> list[list[object]]:
    """The textbook formula over Arb's balls at 200 bits."""
    from flint import arb, ctx

    gain = [arb(g) for g in weight.astype(np.float64).tolist()]
    outputs: list[list[object]] = []
    before, ctx.prec = ctx.prec, 200
    for row in x.astype(np.float64).tolist():
        values = [arb(value) for value in row]
        if norm == "layer":
            mean = sum(values, arb(0)) / HIDDEN
            values = [value - mean for value in values]
        root = (sum((value * value for value in values), arb(0)) / HIDDEN + arb(EPS)).rsqrt()
        outputs.append([value * root * g for value, g in zip(values, gain, strict=True)])
    ctx.prec = before
    return outputs


def llama() -> Contenders:
    """One plan, emulated; beside it kernels that compute the norm and show no step."""
    x, weight = arrays()
    contenders: Contenders = {OURS: lambda: emulate(x, weight, eps=EPS, plan="hf-llama")}
    if has("torch"):
        import torch

        torch.set_num_threads(1)
        tensor, gain = (
            torch.from_numpy(one.view(np.uint16)).view(torch.bfloat16) for one in (x, weight)
        )
        contenders["torch F.rms_norm"] = lambda: torch.nn.functional.rms_norm(
            tensor, (HIDDEN,), gain, EPS
        )
    if has("torch") and has("transformers"):
        from transformers.models.llama.modeling_llama import LlamaRMSNorm

        module = LlamaRMSNorm(HIDDEN, eps=EPS).to(torch.bfloat16)
        module.weight.data.copy_(gain)
        module.requires_grad_(requires_grad=False)
        contenders["transformers LlamaRMSNorm"] = lambda: module(tensor)
    return contenders
