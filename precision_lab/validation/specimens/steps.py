# SPDX-License-Identifier: Apache-2.0
"""A plain float32 kernel in a few steps: a fault is another function in the place of one.

Most steps are handed the input as it came, `x`, last: for its format and its length.
"""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.validation.specimens.specimen import (
    HALF,
    MEASURED,
    Array,
    NormFunction,
    Specimen,
)

if TYPE_CHECKING:
    from collections.abc import Callable

F32 = np.float32


def widened(x: Array) -> Array:
    """The input in float32, exactly."""
    return x.astype(F32)


def summed(values: Array) -> Array:
    """The sum of each row in NumPy's own pairwise order, as [rows, 1]."""
    return np.asarray(values.sum(axis=-1, keepdims=True))


def averaged(values: Array) -> Array:
    """The mean of each row, in the same order, as [rows, 1]."""
    return summed(values) / F32(values.shape[-1])


def inverted(values: Array) -> Array:
    """One over each, in float32."""
    return np.asarray(F32(1) / values)


def centred(X: Array, _x: Array) -> Array:
    """LayerNorm: the deviations from the mean."""
    return X - averaged(X)


def mean_square(D: Array, _x: Array) -> Array:
    """The mean square in float32, NumPy's pairwise order, as [rows, 1]."""
    return averaged(D * D)


def reciprocal_root(ms: Array, eps: float, _x: Array) -> Array:
    """1/√(ms + eps), every operation in float32."""
    return inverted(np.sqrt(ms + F32(eps)))


def gained(v: Array, gain: Array | None) -> Array:
    """Times the gain, in float32."""
    return v if gain is None else v * gain


def biased(v: Array, bias: Array | None) -> Array:
    """Plus the bias, in float32."""
    return v if bias is None else v + bias


def affine(v: Array, gain: Array | None, bias: Array | None, _x: Array) -> Array:
    """Times the gain, plus the bias."""
    return biased(gained(v, gain), bias)


def rounded(v: Array, x: Array) -> Array:
    """Rounded to the format of `x`, to nearest-even, and in float32 again."""
    return v.astype(x.dtype).astype(F32)


def cast(v: Array, x: Array) -> Array:
    """To the format of `x`, to nearest-even."""
    return v.astype(x.dtype)


@dataclass(frozen=True, kw_only=True)
class StepwiseKernel:
    """A kernel made of steps.

    Parameters
    ----------
    load
        x as the statistic and the output see it, in float32.
    centre
        Minus the mean, or not.
    statistic
        The mean square, as [rows, 1].
    inverse
        r from the mean square and eps.
    scale
        v from the (centred) values and r.
    store
        v as it meets the gain: rounded to the input's format where the cast is early.
    gain, bias
        From the weight and the bias as they came; the kernel takes them in float32.
    affine
        y before its last cast, from v, the gain and the bias.
    cast
        The last cast.
    """

    load: Callable[[Array], Array] = widened
    centre: Callable[[Array, Array], Array] = lambda X, _x: X
    statistic: Callable[[Array, Array], Array] = mean_square
    inverse: Callable[[Array, float, Array], Array] = reciprocal_root
    scale: Callable[[Array, Array], Array] = np.multiply
    store: Callable[[Array, Array], Array] = lambda v, _x: v
    gain: Callable[[Array], Array] = widened
    bias: Callable[[Array], Array] = widened
    affine: Callable[[Array, Array | None, Array | None, Array], Array] = affine
    cast: Callable[[Array, Array], Array] = cast

    def __call__(self, x: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
        """Compute the norm of each row."""
        with np.errstate(all="ignore"):
            D, r = self.values_and_root(x, eps)
            return self.output(self.scale(D, r), weight, bias, x)

    def values_and_root(self, x: Array, eps: float) -> tuple[Array, Array]:
        """The (centred) values, and r."""
        D = self.centre(self.load(x), x)
        return D, self.inverse(self.statistic(D, x), eps, x)

    def output(self, v: Array, weight: Array | None, bias: Array | None, x: Array) -> Array:
        """Y from the normalised values."""
        gain = None if weight is None else widened(self.gain(weight))
        shift = None if bias is None else widened(self.bias(bias))
        return self.cast(self.affine(self.store(v, x), gain, shift, x), x)


PLAIN = {
    "rms": StepwiseKernel(),
    "layer": StepwiseKernel(centre=centred),
    "rms-early": StepwiseKernel(store=rounded),
}
"""The sound kernels that others differ from: one for each norm, and one that casts early."""
BOTH = ("rms", "layer")
ALL = (*BOTH, "rms-early")
"""An early cast hides more than a late one."""


def variants(
    name: str,
    summary: str,
    *,
    fault: str = "",
    source: str = "",
    into: tuple[str, ...] = BOTH,
    formats: tuple[str, ...] = MEASURED,
    weight_offset: float = 0.0,
    function: NormFunction | None = None,
    **steps: Any,
) -> tuple[Specimen, ...]:
    """One specimen for each plain kernel, with these steps or this function in its place.

    In float32 an early cast is none, and that kernel is the late one.
    """
    return tuple(
        Specimen(
            name=f"{plain}-{name}",
            norm=plain.partition("-")[0],
            # Copies, for some steps keep something from call to call.
            function=function or dataclasses.replace(PLAIN[plain], **copy.deepcopy(steps)),
            summary=summary,
            fault=fault,
            source=source,
            weight_offset=weight_offset,
            formats=tuple(row for row in formats if plain in BOTH or row in HALF),
        )
        for plain in into
    )
