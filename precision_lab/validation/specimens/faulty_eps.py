# SPDX-License-Identifier: Apache-2.0
"""Faults of eps: its place, its value and its format."""

from __future__ import annotations

from functools import partial

import numpy as np

from precision_lab.validation.specimens.specimen import HALF, Array
from precision_lab.validation.specimens.steps import (
    ALL,
    F32,
    inverted,
    reciprocal_root,
    rounded,
    variants,
)

eps_fault = partial(variants, fault="eps")


def machine_epsilon(ms: Array, _eps: float, x: Array) -> Array:
    """The spacing at 1 of the input's format."""
    above = (np.ones(1, x.dtype).view(f"u{x.itemsize}") + 1).astype(f"u{x.itemsize}")
    return inverted(np.sqrt(ms + (above.view(x.dtype).astype(F32) - F32(1))))


def of_the_scaled_row(ms: Array, eps: float, x: Array) -> Array:
    """Rows divided by their largest value, and eps not."""
    top = np.abs(x.astype(F32)).max(axis=-1, keepdims=True, initial=0)
    top = np.where((top > 0) & np.isfinite(top), top, F32(1))
    return inverted(top * np.sqrt(ms / top / top + F32(eps)))


ROWS = (
    *eps_fault(
        "eps-outside", "Eps is added to the root.", into=ALL,
        inverse=lambda ms, eps, _x: inverted(np.sqrt(ms) + F32(eps)),
        source="NVIDIA/apex#1295, NVIDIA/TransformerEngine#364, pytorch/pytorch#136597",
    ),
    *eps_fault(
        "eps-outside-root", "The root of eps is added to the root of the mean square.",
        inverse=lambda ms, eps, _x: inverted(np.sqrt(ms) + np.sqrt(F32(eps))), into=("rms",),
    ),
    *eps_fault(
        "eps-inside-and-outside", "Eps is added inside the root and once more outside.",
        inverse=lambda ms, eps, _x: inverted(np.sqrt(ms + F32(eps)) + F32(eps)), into=("rms",),
    ),
    *eps_fault(
        "eps-missing", "No eps: 0/0 on a row of zeros.", into=ALL,
        inverse=lambda ms, _eps, _x: inverted(np.sqrt(ms)),
        source="tensorflow/tensorflow#61287",
    ),
    *eps_fault(
        "eps-for-zero-rows", "Eps is added where the mean square is 0 and nowhere else.",
        inverse=lambda ms, eps, x: np.where(
            ms > 0, inverted(np.sqrt(ms)), reciprocal_root(ms, eps, x)
        ),
        into=("rms",),
    ),
    *eps_fault(
        "eps-times-10", "Ten times the eps.", into=ALL,
        inverse=lambda ms, eps, x: reciprocal_root(ms, 10.0 * eps, x),
        source="accepted by the tests of most projects",
    ),
    *eps_fault(
        "eps-times-100", "A hundred times the eps.",
        inverse=lambda ms, eps, x: reciprocal_root(ms, 100.0 * eps, x),
        source="accepted by the tests of most projects",
    ),
    *eps_fault(
        "eps-twice", "Eps is added twice.", into=("rms",),
        inverse=lambda ms, eps, x: reciprocal_root(ms, 2.0 * eps, x),
    ),
    *eps_fault(
        "eps-fixed", "Eps is 1e-6 whatever is asked for.",
        inverse=lambda ms, _eps, x: reciprocal_root(ms, 1e-6, x),
        source="apache/tvm#15856, ggml-org/llama.cpp#2373",
    ),
    *eps_fault(
        "eps-of-the-format", "Eps is the spacing at 1 of the input's format.",
        inverse=machine_epsilon, source="pytorch/pytorch#155527", into=("rms",),
    ),
    *eps_fault(
        "eps-largest", "The larger of the mean square and eps, in place of their sum.",
        inverse=lambda ms, eps, _x: inverted(np.sqrt(np.maximum(ms, F32(eps)))),
        source="huggingface/diffusers#13316, pytorch/pytorch#192017",
    ),
    *eps_fault(
        "eps-in-sum", "Eps is added to the sum, before the division by n.",
        inverse=lambda ms, eps, x: inverted(np.sqrt(ms + F32(eps) / F32(x.shape[-1]))),
    ),
    *eps_fault(
        "eps-in-float16", "Eps is rounded to float16.", source="tensorflow/tensorflow#24979",
        inverse=lambda ms, eps, x: reciprocal_root(ms, float(np.float16(F32(eps))), x),
    ),
    *eps_fault(
        "eps-in-input-format", "Eps is rounded to the input's format.",
        inverse=lambda ms, eps, x: reciprocal_root(ms, F32(eps).astype(x.dtype), x),
        into=("rms",), formats=HALF,
    ),
    *eps_fault(
        "radicand-in-input-format",
        "The mean square and eps are added, and the sum is stored in the input's format.",
        inverse=lambda ms, eps, x: inverted(np.sqrt(rounded(ms + F32(eps), x))),
        source="DeepSpeed#581", formats=HALF,
    ),
    *eps_fault(
        "eps-of-scaled-row",
        "Rows are divided by their largest value against overflow, and eps is not.",
        inverse=of_the_scaled_row, into=("rms",),
    ),
)  # fmt: skip
