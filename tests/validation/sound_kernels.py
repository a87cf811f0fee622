# SPDX-License-Identifier: Apache-2.0
"""Sound kernels as their authors write them: float32 or better throughout, one cast at the end.

They were written before the bounds of `precision_lab.validation.soundness` were looked at. Each is
a way to the statistic, a reciprocal root and a way to the outputs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

F32, F64 = np.float32, np.float64
ONE, HALF = F32(1), F32(0.5)


# Sums of [rows, n] along the row, as [rows, 1] ----------------------------------------------------


def padded(X, size):
    """X with masked lanes of 0 up to a multiple of a size."""
    return np.pad(X, [(0, 0), (0, -X.shape[1] % size)])


def first_to_last(X):
    return np.add.accumulate(X, axis=1)[:, -1:]


def last_to_first(X):
    return first_to_last(X[:, ::-1])


def shuffled(X):
    return first_to_last(X[:, np.random.default_rng(X.shape[1]).permutation(X.shape[1])])


def tree(X):
    """Halves added to each other, as threads of a block do in shared memory."""
    X = padded(X, 1 << (X.shape[1] - 1).bit_length())
    while X.shape[1] > 1:
        half = X.shape[1] // 2
        X = X[:, :half] + X[:, half:]
    return X


def neighbours(X):
    """Neighbours added to each other."""
    while X.shape[1] > 1:
        X = padded(X, 2)
        X = X[:, ::2] + X[:, 1::2]
    return X


def lanes(X, count, then=tree):
    """Each lane over its columns, `count` apart, and then across lanes."""
    X = padded(X, count)
    steps = X.reshape(len(X), -1, count)
    return then(np.ascontiguousarray(np.add.accumulate(steps, axis=1)[:, -1]))


def blocks(X, size, within=first_to_last, across=first_to_last):
    """Contiguous blocks, each summed on its own."""
    X = padded(X, size)
    parts = within(X.reshape(-1, size)).reshape(len(X), -1)
    return across(parts)


def split(X, ways, within):
    """Split-K: each program a contiguous part, the parts then added in order."""
    size = max(1, -(-X.shape[1] // ways))
    return blocks(X, size, within)


def strided(X):
    """Columns 0, 3, 6, …, then 1, 4, …, then 2, 5, …"""
    return first_to_last(np.concatenate([X[:, k::3] for k in range(3)], axis=1))


def kahan(X):
    total = lost = np.zeros(len(X), F32)
    for column in np.ascontiguousarray(X.T):
        part = column - lost
        new = total + part
        lost = (new - total) - part
        total = new
    return total[:, None]


def neumaier_lanes(X, count=64):
    """Neumaier's sum in lanes: what is lost is added at the end."""
    X = padded(X, count)
    total = lost = np.zeros((len(X), count), F32)
    for part in X.reshape(len(X), -1, count).transpose(1, 0, 2):
        new = total + part
        first = np.where(np.abs(total) >= np.abs(part), total, part)
        second = np.where(np.abs(total) >= np.abs(part), part, total)
        lost = lost + ((first - new) + second)
        total = new
    return tree(total + lost)


def in_double(X):
    return X.astype(F64).sum(axis=1, keepdims=True)


def fused_squares(X, count=16):
    """Σx² by fused multiply-add in lanes."""
    X = padded(X, count)
    total = np.zeros((len(X), count), F32)
    for part in X.reshape(len(X), -1, count).transpose(1, 0, 2).astype(F64):
        total = (part * part + total).astype(F32)
    return tree(total)


def compensated_squares(X, count=32):
    """Ogita, Rump and Oishi's dot product of a row with itself, in lanes."""
    X = padded(X, count)
    total = lost = np.zeros((len(X), count), F32)
    for part in X.reshape(len(X), -1, count).transpose(1, 0, 2):
        square = part * part
        error = (part.astype(F64) ** 2 - square).astype(F32)
        new = total + square
        back = new - total
        error = error + ((total - (new - back)) + (square - back))
        total, lost = new, lost + error
    return tree(total + lost)


# Mean squares of RMSNorm, as [rows, 1] ------------------------------------------------------------


def count_of(X):
    return F32(X.shape[1])


def mean_square(X, total=tree, *, reciprocal=False):
    squares = total(X * X)
    return squares * (ONE / count_of(X)) if reciprocal else squares / F64(X.shape[1]).astype(F32)


def fused_mean_square(X, squares=fused_squares):
    return squares(X) / count_of(X)


def divided_first(X, total):
    """Σ x·(x/n)."""
    return total(X * (X / count_of(X)))


def reciprocal_first(X, total):
    """Σ x·(x·(1/n))."""
    return total(X * (X * (ONE / count_of(X))))


def squares_divided(X, total):
    """Σ (x²/n)."""
    return total(X * X / count_of(X))


def root_first(X, total):
    """Σ (x/√n)²."""
    part = X / np.sqrt(count_of(X))
    return total(part * part)


def largest(X):
    top = np.abs(X).max(axis=1, keepdims=True)
    return np.where(top > 0, top, ONE)


def by_largest(X, total):
    """The row divided by its largest, the square of that multiplied back."""
    top = largest(X)
    part = X / top
    return total(part * part) / count_of(X) * (top * top)


def by_largest_reciprocal(X, total):
    """The row multiplied by 1/largest; the largest comes back into each factor."""
    top = largest(X)
    part = X * (ONE / top)
    return top * (top * (total(part * part) / count_of(X)))


def by_power(X, total):
    """The row scaled by the power of two of its largest."""
    exponent = np.frexp(largest(X))[1]
    part = np.ldexp(X, -exponent)
    return np.ldexp(total(part * part) / count_of(X), 2 * exponent)


def scaled_sum_of_squares(X):
    """LAPACK's slassq: a running scale and the sum of squares beside it."""
    scale, squares = np.zeros(len(X), F32), np.ones(len(X), F32)
    for column in np.ascontiguousarray(np.abs(X).T):
        grows = column > scale
        ratio = np.where(grows, scale / column, column / np.where(scale > 0, scale, ONE))
        ratio = np.where((column == 0) & ~grows, F32(0), ratio)
        more = ratio * ratio
        squares = np.where(grows, ONE + squares * more, squares + more)
        scale = np.where(grows, column, scale)
    return (scale * scale * squares / count_of(X))[:, None]


def scaled_norm(X):
    """slassq, the norm taken first and then divided by √n."""
    scale, squares = np.zeros(len(X), F32), np.ones(len(X), F32)
    for column in np.ascontiguousarray(np.abs(X).T):
        grows = column > scale
        ratio = np.where(grows, scale, column) / np.where(
            column + scale > 0, np.maximum(column, scale), ONE
        )
        squares = np.where(grows, ONE + squares * (ratio * ratio), squares + ratio * ratio)
        scale = np.maximum(scale, column)
    root = (scale * np.sqrt(squares) / np.sqrt(count_of(X)))[:, None]
    return root * root


def running_mean_square(X):
    """m + (x² − m)/k, column by column."""
    mean = np.zeros(len(X), F32)
    for k, column in enumerate(np.ascontiguousarray(X.T), 1):
        mean = mean + (column * column - mean) / F32(k)
    return mean[:, None]


def running_weights(X):
    """m·((k − 1)/k) + x²·(1/k), column by column."""
    mean = np.zeros(len(X), F32)
    for k, column in enumerate(np.ascontiguousarray(X.T), 1):
        mean = mean * (F32(k - 1) / F32(k)) + column * column * (ONE / F32(k))
    return mean[:, None]


def running_blocks(X, size=64):
    """The running mean of the blocks' mean squares, the last block shorter."""
    mean, seen = np.zeros((len(X), 1), F32), 0
    for start in range(0, X.shape[1], size):
        part = X[:, start : start + size]
        seen += part.shape[1]
        mean = mean + (mean_square(part) - mean) * (F32(part.shape[1]) / F32(seen))
    return mean


def means_of_blocks(X, size=32):
    """Each block's Σx²/n, added in a tree."""
    return blocks(X * X, size, lambda part: tree(part) / count_of(X), tree)


def growing_scale(X, size=64):
    """Blocks in order, the sum rescaled by a power of two whenever the largest grows."""
    scale, total = np.full((len(X), 1), -149), np.zeros((len(X), 1), F32)
    for start in range(0, X.shape[1], size):
        part = X[:, start : start + size]
        top = np.abs(part).max(axis=1, keepdims=True)
        new = np.maximum(scale, np.where(np.isfinite(top) & (top > 0), np.frexp(top)[1], -149))
        part = np.ldexp(part, -new)
        total = np.ldexp(total, 2 * (scale - new)) + tree(part * part)
        scale = new
    return np.ldexp(total / count_of(X), 2 * scale)


def three_accumulators(X):
    """Blue's: squares of small, middle and large values in sums of their own."""
    small, large = F32(2.0**-50), F32(2.0**50)
    size = np.abs(X)
    low = np.where(size < small, X, F32(0)) * F32(2.0**75)
    high = np.where(size > large, X, F32(0)) * F32(2.0**-75)
    middle = np.where((size >= small) & (size <= large) | np.isnan(X), X, F32(0))
    n = count_of(X)
    low, high, middle = (tree(part * part) / n for part in (low, high, middle))
    return low * F32(2.0**-75) * F32(2.0**-75) + middle + high * F32(2.0**75) * F32(2.0**75)


def double_mean_square(X):
    wide = X.astype(F64)
    return ((wide * wide).sum(axis=1, keepdims=True) / X.shape[1]).astype(F32)


# Reciprocal roots ---------------------------------------------------------------------------------


def root(ms, eps):
    return ONE / np.sqrt(ms + F32(eps))


def root_of_reciprocal(ms, eps):
    return np.sqrt(ONE / (ms + F32(eps)))


def double_root(ms, eps):
    return (1.0 / np.sqrt(ms.astype(F64) + eps)).astype(F32)


def newton(ms, eps, bits=12, steps=1):
    """A root of 12 bits, as an instruction gives it, and a Newton step."""
    v = ms + F32(eps)
    coarse = (ONE / np.sqrt(v)).view(np.int32) >> (24 - bits) << (24 - bits)
    r = coarse.astype(np.int32).view(F32)
    for _ in range(steps):
        r = r * (F32(1.5) - HALF * v * r * r)
    return np.where(np.isfinite(v), r, ONE / np.sqrt(v))


def residual(ms, eps):
    """A Newton step on the residual, fused, of a root of 12 bits and one of 23."""
    v = ms + F32(eps)
    r = newton(ms, eps)
    wide, square = r.astype(F64), (v * r).astype(F64)
    error = (1.0 - square * wide).astype(F32)
    return np.where(np.isfinite(v), (wide + (HALF * r).astype(F64) * error).astype(F32), r)


# Roots of rows: [rows, n] and eps to the values that are scaled and what they are multiplied by ----


def rms(X, eps, *, square=mean_square, inverse=root):
    return X, inverse(square(X), eps)


def eps_in_the_sum(X, eps, *, total=tree):
    """(Σx² + n·eps)/n."""
    return X, ONE / np.sqrt((total(X * X) + count_of(X) * F32(eps)) / count_of(X))


def eps_first(X, eps):
    """The sum starts at n·eps."""
    start = np.full((len(X), 1), F32(eps) * count_of(X), F32)
    squares = first_to_last(np.concatenate([start, X * X], axis=1))
    return X, ONE / np.sqrt(squares / count_of(X))


def root_of_the_count(X, eps):
    """√n/√(Σx² + n·eps)."""
    return X, np.sqrt(count_of(X)) / np.sqrt(tree(X * X) + count_of(X) * F32(eps))


def scaled_row(X, eps, *, total=tree):
    """Row and eps scaled by the largest, which never comes back."""
    top = np.maximum(np.abs(X).max(axis=1, keepdims=True), F32(np.sqrt(eps)))
    D = X / top
    return D, ONE / np.sqrt(total(D * D) / count_of(X) + F32(eps) / (top * top))


def scaled_row_by_power(X, eps):
    exponent = np.maximum(np.frexp(largest(X))[1], -20)
    D = np.ldexp(X, -exponent)
    return D, ONE / np.sqrt(tree(D * D) / count_of(X) + np.ldexp(F32(eps), -2 * exponent))


def layer(X, eps, *, mean, variance, inverse=root):
    D = X - mean(X)
    return D, inverse(variance(D), eps)


def mean_of(X, total=tree, *, reciprocal=False):
    return total(X) * (ONE / count_of(X)) if reciprocal else total(X) / count_of(X)


def mean_divided_first(X, total=tree):
    """Σ (x/n)."""
    return total(X / count_of(X))


def running_mean(X):
    mean = np.zeros(len(X), F32)
    for k, column in enumerate(np.ascontiguousarray(X.T), 1):
        mean = mean + (column - mean) / F32(k)
    return mean[:, None]


def double_mean(X):
    return (X.astype(F64).sum(axis=1, keepdims=True) / X.shape[1]).astype(F32)


def refined_mean(X):
    """The mean, and the mean of what is left added to it."""
    mean = mean_of(X)
    return mean + mean_of(X - mean)


def shifted(X, eps, *, by):
    """Two passes over the row less a shift."""
    part = X - by(X)
    D = part - mean_of(part)
    return D, root(mean_square(D), eps)


def corrected(X, eps):
    """(Σd² − (Σd)²/n)/n, Chan's corrected two-pass."""
    D = X - mean_of(X, lambda part: lanes(part, 8))
    rest, n = tree(D), count_of(X)
    return D, root((tree(D * D) - rest * rest / n) / n, eps)


def double_moments(X, eps):
    wide = X.astype(F64)
    D = wide - wide.mean(axis=1, keepdims=True)
    r = 1.0 / np.sqrt((D * D).mean(axis=1, keepdims=True) + eps)
    return D.astype(F32), r.astype(F32)


def double_one_pass(X, eps):
    """E[x²] − E[x]² in float64, of inputs of at most 11 bits."""
    wide = X.astype(F64)
    mean = wide.mean(axis=1, keepdims=True)
    variance = np.maximum((wide * wide).mean(axis=1, keepdims=True) - mean * mean, 0.0)
    variance = np.where(np.isnan(mean), mean, variance)
    return X - mean.astype(F32), (1.0 / np.sqrt(variance + eps)).astype(F32)


def merged(a, b):
    """Two parts' counts, means and sums of squared deviations as one, by Chan's formula."""
    (n, mean, squares), (m, other, more) = a, b
    if m == 0:
        return a
    delta, total = other - mean, F32(n + m)
    return (
        n + m, mean + delta * (F32(m) / total),
        squares + more + delta * delta * (F32(n) * F32(m) / total),
    )  # fmt: skip


def chunks(X, eps, *, size):
    """Chunks of two passes each, merged in order."""
    whole = None
    for start in range(0, X.shape[1], size):
        part = X[:, start : start + size]
        mean = mean_of(part)
        D = part - mean
        here = (part.shape[1], mean, tree(D * D))
        whole = here if whole is None else merged(whole, here)
    _, mean, squares = whole
    return X - mean, root(squares / count_of(X), eps)


def welford_lanes(X, eps, *, count=32):
    """Welford's update in lanes, the lanes merged in a tree."""
    mean, squares = np.zeros((2, len(X), count), F32)
    seen = np.zeros(count, int)
    for start in range(0, X.shape[1], count):
        part = X[:, start : start + count]
        here = slice(part.shape[1])
        seen[here] += 1
        delta = part - mean[:, here]
        mean[:, here] += delta / seen[here].astype(F32)
        squares[:, here] += delta * (part - mean[:, here])
    parts = [(int(seen[k]), mean[:, k : k + 1], squares[:, k : k + 1]) for k in range(count)]
    while len(parts) > 1:
        half = len(parts) // 2
        parts = [merged(a, b) for a, b in zip(parts[:half], parts[half:], strict=True)]
    return X - parts[0][1], root(parts[0][2] / count_of(X), eps)


def scaled_layer(X, eps):
    """The row scaled by a power of two, then two passes, eps scaled with it."""
    exponent = np.maximum(np.frexp(largest(X))[1], -20)
    part = np.ldexp(X, -exponent)
    D = part - mean_of(part)
    return D, ONE / np.sqrt(mean_square(D) + np.ldexp(F32(eps), -2 * exponent))


# Outputs ------------------------------------------------------------------------------------------


def cast(y, to):
    return np.asarray(y, F32).astype(to)


def late(D, r, gain, shift, to):
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
    y = D.astype(F64) * r
    y = y if gain is None else y * gain
    return cast((y if shift is None else y + shift).astype(F32), to)


def standard_deviation(ms, eps):
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
    to, offset = options.get("output_format"), options.get("weight_offset", 0.0)
    given = rows_root or partial(rms, square=square, inverse=inverse)
    kernel = partial(norm_kernel, rows_root=given, output=output, offset=offset, to=DTYPES.get(to))
    return SoundKernel(f"rms-{name}", "rms", kernel, options)


def layer_kernel(name, rows_root=None, mean=mean_of, variance=mean_square, inverse=root,
                 output=late, *, narrow=False, **options):  # fmt: skip
    given = rows_root or partial(layer, mean=mean, variance=variance, inverse=inverse)
    to, offset = options.get("output_format"), options.get("weight_offset", 0.0)
    kernel = partial(norm_kernel, rows_root=given, output=output, offset=offset, to=DTYPES.get(to))
    return SoundKernel(f"layer-{name}", "layer", kernel, options, narrow)


DTYPES = {"float8_e4m3fn": "float8_e4m3fn", "float8_e5m2": "float8_e5m2", "float32": "float32"}


def first_element(X):
    return X[:, :1]


def block_mean(X):
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
