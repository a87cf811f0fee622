# SPDX-License-Identifier: Apache-2.0
"""A plain float32 kernel in five steps: a fault is another function in the place of one.

Every step is handed the input as it came, `x`, last: for its format and its length.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.validation.specimens.specimen import HALF, MEASURED, Array, Specimen

if TYPE_CHECKING:
    from collections.abc import Callable

F32 = np.float32


def widened(x: Array) -> Array:
    """The input in float32, exactly."""
    return x.astype(F32)


def uncentred(X: Array, _x: Array) -> Array:
    """RMSNorm: the values themselves."""
    return X


def summed(values: Array) -> Array:
    """The sum of each row in NumPy's own pairwise order, as [rows, 1]."""
    return np.asarray(values.sum(axis=-1, keepdims=True))


def inverted(values: Array) -> Array:
    """One over each, in float32."""
    return np.asarray(F32(1) / values)


def centred(X: Array, _x: Array) -> Array:
    """LayerNorm: the deviations from the mean."""
    return X - summed(X) / F32(X.shape[-1])


def mean_square(D: Array, _x: Array) -> Array:
    """The mean square in float32, NumPy's pairwise order, as [rows, 1]."""
    return summed(D * D) / F32(D.shape[-1])


def reciprocal_root(ms: Array, eps: float, _x: Array) -> Array:
    """1/√(ms + eps), every operation in float32."""
    return inverted(np.sqrt(ms + F32(eps)))


def gained(v: Array, weight: Array | None) -> Array:
    """Times the gain, in float32."""
    return v if weight is None else v * widened(weight)


def biased(v: Array, bias: Array | None) -> Array:
    """Plus the bias, in float32."""
    return v if bias is None else v + widened(bias)


def rounded(v: Array, x: Array) -> Array:
    """Rounded to the format of `x`, to nearest-even, and in float32 again."""
    return v.astype(x.dtype).astype(F32)


def late(D: Array, r: Array, weight: Array | None, bias: Array | None, x: Array) -> Array:
    """Gain and bias in float32, and one cast at the end."""
    return biased(gained(D * r, weight), bias).astype(x.dtype)


def early(D: Array, r: Array, weight: Array | None, bias: Array | None, x: Array) -> Array:
    """The normalised value is cast before it meets the gain."""
    return biased(gained(rounded(D * r, x), weight), bias).astype(x.dtype)


@dataclass(frozen=True, kw_only=True)
class Steps:
    """A kernel made of five steps.

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
    output
        y from the (centred) values, r, the gain and the bias.
    """

    load: Callable[[Array], Array] = widened
    centre: Callable[[Array, Array], Array] = uncentred
    statistic: Callable[[Array, Array], Array] = mean_square
    inverse: Callable[[Array, float, Array], Array] = reciprocal_root
    output: Callable[[Array, Array, Array | None, Array | None, Array], Array] = late

    def __call__(self, x: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
        """Compute the norm of each row."""
        with np.errstate(all="ignore"):
            D = self.centre(self.load(x), x)
            r = self.inverse(self.statistic(D, x), eps, x)
            return self.output(D, r, weight, bias, x)


PLAIN = {
    "rms": Steps(),
    "layer": Steps(centre=centred),
    "rms-early": Steps(output=early),
}
"""The sound kernels in which faults are planted: one for each norm, and one that casts early."""
BOTH = ("rms", "layer")
ALL = (*BOTH, "rms-early")
"""An early cast hides more than a late one."""


def planted(
    name: str,
    summary: str,
    *,
    fault: str,
    source: str = "",
    into: tuple[str, ...] = BOTH,
    formats: tuple[str, ...] = MEASURED,
    **steps: Any,
) -> tuple[Specimen, ...]:
    """One faulty specimen for each plain kernel, with these steps in the place of its own.

    In float32 an early cast is none, and that kernel is the late one.
    """
    return tuple(
        Specimen(
            name=f"{plain}-{name}",
            norm=plain.partition("-")[0],
            function=dataclasses.replace(PLAIN[plain], **steps),
            summary=summary,
            fault=fault,
            source=source,
            formats=tuple(row for row in formats if plain in BOTH or row in HALF),
        )
        for plain in into
    )
