# SPDX-License-Identifier: Apache-2.0
"""Sound kernels as their authors write them: float32 or better throughout, one cast at the end.

They were written before the bounds of `precision_lab.validation.soundness` were looked at. Each is
a way to the statistic, a reciprocal root and a way to the outputs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from sound_mean_squares import (
    by_largest,
    by_largest_reciprocal,
    by_power,
    divided_first,
    double_mean_square,
    fused_mean_square,
    growing_scale,
    mean_square,
    means_of_blocks,
    reciprocal_first,
    root_first,
    running_blocks,
    running_mean_square,
    running_weights,
    scaled_norm,
    scaled_sum_of_squares,
    squares_divided,
    three_accumulators,
)
from sound_roots import (
    chunks,
    corrected,
    double_mean,
    double_moments,
    double_one_pass,
    double_root,
    eps_first,
    eps_in_the_sum,
    layer,
    mean_divided_first,
    mean_of,
    newton,
    refined_mean,
    residual,
    rms,
    root,
    root_of_reciprocal,
    root_of_the_count,
    running_mean,
    scaled_layer,
    scaled_row,
    scaled_row_by_power,
    shifted,
    welford_lanes,
)
from sound_sums import (
    F32,
    F64,
    blocks,
    compensated_squares,
    first_to_last,
    kahan,
    lanes,
    last_to_first,
    neighbours,
    neumaier_lanes,
    shuffled,
    split,
    strided,
    tree,
)

# Outputs ------------------------------------------------------------------------------------------


def cast(y, to):
    """The last cast."""
    return np.asarray(y, F32).astype(to)


def late(D, r, gain, shift, to):
    """One cast at the end."""
    y = D * r
    y = y if gain is None else y * gain
    return cast(y if shift is None else y + shift, to)


def early(D, r, gain, shift, to):
    """Cast before the gain, as Llama's does."""
    y = cast(D * r, to)
    y = y if gain is None else cast(y.astype(F32) * gain, to)
    return y if shift is None else cast(y.astype(F32) + shift, to)


def fused(D, r, gain, shift, to):
    """The shift by fused multiply-add."""
    y = D * r
    if gain is None or shift is None:
        return late(D, r, gain, shift, to)
    return cast((y.astype(F64) * gain + shift).astype(F32), to)


def folded(D, r, gain, shift, to):
    """d·(r·g)."""
    y = D * (r if gain is None else r * gain)
    return cast(y if shift is None else y + shift, to)


def gain_first(D, r, gain, shift, to):
    """(d·g)·r."""
    y = (D if gain is None else D * gain) * r
    return cast(y if shift is None else y + shift, to)


def divided(D, r, gain, shift, to):
    """d/σ; for these `r` is σ."""
    y = D / r
    y = y if gain is None else y * gain
    return cast(y if shift is None else y + shift, to)


def double_outputs(D, r, gain, shift, to):
    """Products and sum in float64."""
    y = D.astype(F64) * r
    y = y if gain is None else y * gain
    return cast((y if shift is None else y + shift).astype(F32), to)


def standard_deviation(ms, eps):
    """√(ms + eps)."""
    return np.sqrt(ms + F32(eps))


# Kernels ------------------------------------------------------------------------------------------


def norm_kernel(x, weight, bias, eps, *, rows_root, output, offset=0.0, to=None):
    """The kernel of a way to the root and one to the outputs."""
    to = x.dtype if to is None else np.dtype(to)
    if x.size == 0:
        return np.zeros(x.shape, to)
    gain, shift = (None if part is None else part.astype(F32) for part in (weight, bias))
    if gain is not None and offset:
        gain = gain + F32(offset)
    with np.errstate(all="ignore"):
        D, r = rows_root(x.astype(F32), eps)
        return output(D, r, gain, shift, to)


def by_rows(x, weight, bias, eps, *, few, many, rows):
    """Another kernel from a number of rows on."""
    return (few if len(x) < rows else many)(x, weight, bias, eps)


@dataclass(frozen=True)
class SoundKernel:
    """A kernel, and what it is validated with."""

    name: str
    norm: str
    kernel: object
    options: dict = field(default_factory=dict)
    narrow: bool = False
    """Whether its inputs must have 11 bits at most."""


WAYS = {
    "first-to-last": first_to_last,
    "last-to-first": last_to_first,
    "shuffled": shuffled,
    "tree": tree,
    "neighbours": neighbours,
    "lanes-4": partial(lanes, count=4, then=first_to_last),
    "lanes-8": partial(lanes, count=8, then=neighbours),
    "warp": partial(lanes, count=32),
    "blocks-128": partial(blocks, size=128),
    "split-4": partial(split, ways=4, within=tree),
    "split-7": partial(split, ways=7, within=last_to_first),
    "strided": strided,
    "kahan": kahan,
    "neumaier": neumaier_lanes,
}


def rms_kernel(name, square=None, inverse=root, output=late, rows_root=None, **options):
    """An RMSNorm."""
    to, offset = options.get("output_format"), options.get("weight_offset", 0.0)
    given = rows_root or partial(rms, square=square, inverse=inverse)
    kernel = partial(norm_kernel, rows_root=given, output=output, offset=offset, to=DTYPES.get(to))
    return SoundKernel(f"rms-{name}", "rms", kernel, options)


def layer_kernel(name, rows_root=None, *, mean=mean_of, variance=mean_square, inverse=root,
                 output=late, narrow=False, **options):  # fmt: skip
    """A LayerNorm."""
    given = rows_root or partial(layer, mean=mean, variance=variance, inverse=inverse)
    to, offset = options.get("output_format"), options.get("weight_offset", 0.0)
    kernel = partial(norm_kernel, rows_root=given, output=output, offset=offset, to=DTYPES.get(to))
    return SoundKernel(f"layer-{name}", "layer", kernel, options, narrow)


DTYPES = {"float8_e4m3fn": "float8_e4m3fn", "float8_e5m2": "float8_e5m2", "float32": "float32"}


def first_element(X):
    """A row's first element."""
    return X[:, :1]


def block_mean(X):
    """The mean of the first 16 elements."""
    return mean_of(X[:, :16])


SCALED = {
    "divided-first": divided_first,
    "reciprocal-first": reciprocal_first,
    "squares-divided": squares_divided,
    "root-first": root_first,
    "by-largest": by_largest,
    "by-largest-reciprocal": by_largest_reciprocal,
    "by-power": by_power,
}

ORDERED = [
    rms_kernel(name, partial(mean_square, total=total, reciprocal=k % 2 == 1))
    for k, (name, total) in enumerate(WAYS.items())
]
SCALED_FIRST = [
    rms_kernel(f"{name}-{way}", partial(square, total=WAYS[way]))
    for name, square in SCALED.items()
    for way in ("first-to-last", "warp")
]
OTHER_STATISTICS = [
    rms_kernel("slassq", scaled_sum_of_squares),
    rms_kernel("slassq-norm", scaled_norm),
    rms_kernel("running", running_mean_square),
    rms_kernel("running-weights", running_weights),
    rms_kernel("running-blocks", running_blocks),
    rms_kernel("means-of-blocks", means_of_blocks),
    rms_kernel("growing-scale", growing_scale),
    rms_kernel("three-accumulators", three_accumulators),
    rms_kernel("fused", fused_mean_square),
    rms_kernel("compensated-dot", partial(fused_mean_square, squares=compensated_squares)),
    rms_kernel("double", double_mean_square, double_root),
    rms_kernel("scaled-row", rows_root=scaled_row),
    rms_kernel("scaled-row-in-order", rows_root=partial(scaled_row, total=first_to_last)),
    rms_kernel("scaled-row-by-power", rows_root=scaled_row_by_power),
    rms_kernel("eps-in-the-sum", rows_root=eps_in_the_sum),
    rms_kernel("eps-first", rows_root=eps_first),
    rms_kernel("root-of-the-count", rows_root=root_of_the_count),
]
OTHER_STEPS = [
    rms_kernel("newton", mean_square, newton),
    rms_kernel("newton-twice", mean_square, partial(newton, bits=8, steps=3)),
    rms_kernel("residual", mean_square, residual),
    rms_kernel("root-of-reciprocal", mean_square, root_of_reciprocal),
    rms_kernel("divided", partial(mean_square, total=neighbours), standard_deviation, divided),
    rms_kernel("early", partial(mean_square, total=WAYS["lanes-4"]), output=early),
    rms_kernel("folded", mean_square, output=folded),
    rms_kernel("gain-first", mean_square, output=gain_first),
    rms_kernel("double-outputs", double_mean_square, double_root, double_outputs),
    rms_kernel("one-plus", mean_square, output=folded, weight_offset=1.0),
    rms_kernel("to-e4m3", mean_square, output_format="float8_e4m3fn"),
    rms_kernel("to-e5m2", divided_first_tree := partial(divided_first, total=tree),
               output_format="float8_e5m2"),
    rms_kernel("to-float32", mean_square, output_format="float32"),
    rms_kernel("early-divided-first", divided_first_tree, output=early),
    rms_kernel("running-folded", running_blocks, newton, folded),
    SoundKernel(
        "rms-other-from-100-rows", "rms",
        partial(by_rows, few=ORDERED[0].kernel, many=ORDERED[7].kernel, rows=100),
    ),
]  # fmt: skip
LAYERS = [
    *(
        layer_kernel(name, mean=partial(mean_of, total=total, reciprocal=k % 2 == 0),
                     variance=partial(mean_square, total=total, reciprocal=k % 2 == 1))
        for k, (name, total) in enumerate(WAYS.items())
    ),
    *(
        layer_kernel(name, mean=mean_divided_first, variance=partial(square, total=tree))
        for name, square in SCALED.items()
    ),
    layer_kernel("running-mean", mean=running_mean, variance=running_mean_square),
    layer_kernel("refined-mean", mean=refined_mean, variance=mean_square),
    layer_kernel("slassq", variance=scaled_sum_of_squares),
    layer_kernel("double-mean", mean=double_mean, variance=double_mean_square),
    layer_kernel("double", double_moments),
    layer_kernel("double-one-pass", double_one_pass, narrow=True),
    layer_kernel("shifted-by-first", partial(shifted, by=first_element)),
    layer_kernel("shifted-by-block", partial(shifted, by=block_mean)),
    layer_kernel("corrected", corrected),
    layer_kernel("chunks-4", partial(chunks, size=4)),
    layer_kernel("chunks-64", partial(chunks, size=64)),
    layer_kernel("chunks-1000", partial(chunks, size=1000)),
    layer_kernel("welford-lanes", welford_lanes),
    layer_kernel("scaled-by-power", scaled_layer),
    layer_kernel("fused", variance=fused_mean_square, output=fused),
    layer_kernel("compensated-dot", variance=partial(fused_mean_square,
                                                     squares=compensated_squares)),
    layer_kernel("newton", inverse=newton),
    layer_kernel("residual", inverse=residual, output=fused),
    layer_kernel("divided", inverse=standard_deviation, output=divided),
    layer_kernel("folded", output=folded),
    layer_kernel("gain-first", output=gain_first),
    layer_kernel("to-e4m3", output_format="float8_e4m3fn"),
]  # fmt: skip

KERNELS = [*ORDERED, *SCALED_FIRST, *OTHER_STATISTICS, *OTHER_STEPS, *LAYERS]
