# SPDX-License-Identifier: Apache-2.0
"""Balls around the outputs of a norm, a block of rows at a time, and the rows that have none."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.arithmetic import Ball, DoubleDoubleBalls, Float64Balls, double_double
from precision_lab.norm.norm import affine

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from precision_lab.norm.arguments import Inputs

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]
    Index = NDArray[np.intp]


class Enclosures:
    """The outputs of a norm, enclosed.

    Parameters
    ----------
    inputs
        The norm's arguments, checked.
    """

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs

    @cached_property
    def gain(self) -> Ball | None:
        """The exact gain: weight + offset as a double-double."""
        weight, offset = self.inputs.weight, self.inputs.weight_offset
        if weight is None:
            return None
        wide = weight.astype(np.float64)[None, :]
        if not offset:
            # Not -0 + 0: that would lose the sign.
            return Ball(wide)
        high, low = double_double.two_sum(wide, np.full_like(wide, offset))
        low = np.where(np.isfinite(high), low, 0.0)
        return Ball(high, low=low if np.any(low) else None)

    @cached_property
    def bias(self) -> Ball | None:
        """The bias, which is exact."""
        bias = self.inputs.bias
        return None if bias is None else Ball(bias.astype(np.float64)[None, :])

    @cached_property
    def tame(self) -> bool:
        """Whether gain and bias are finite and too small for any output to overflow."""
        parts = [ball.high for ball in (self.gain, self.bias) if ball is not None]
        return all(bool(np.all(np.abs(part) < 2.0**900)) for part in parts)

    def of(
        self, rows: slice | Index, arithmetic: Float64Balls | DoubleDoubleBalls
    ) -> tuple[Ball, Mask]:
        """Balls around the outputs of some rows, and which rows are special: those are exact."""
        norm, eps, gain = self.inputs.norm, self.inputs.eps, self.gain
        if gain is not None and gain.low is not None and isinstance(arithmetic, Float64Balls):
            gain = Ball(gain.high, relative=arithmetic.model.unit)
        x = self.inputs.x[rows].astype(np.float64, order="C")
        if self.inputs.x.dtype == np.float64 or isinstance(arithmetic, DoubleDoubleBalls):
            normalised = norm.normalise(arithmetic, *_scaled(x, eps))
        else:
            normalised = norm.normalise(arithmetic, Ball(x), Ball(np.full((1, 1), eps)))
        ball: Ball = affine(arithmetic, normalised, gain, self.bias)
        special = np.zeros((len(x), 1), bool)
        relative, absolute = (
            np.broadcast_to(bound, special.shape)[:, 0]
            for bound in (normalised.relative, normalised.absolute)
        )
        suspect = ~np.isfinite(relative)
        if norm.centred:
            # Of a row without spread no deviation, so not the first, is told from zero.
            suspect |= np.abs(normalised.high[:, 0]) <= absolute
        if suspect.any():
            values, fixed = _special_values(x[suspect], eps, centred=norm.centred)
            special[suspect, 0] = fixed
            ball.high[special[:, 0]] = self._special_outputs(values[fixed])
        return ball, special

    def _special_outputs(self, values: Floats) -> Floats:
        """Gain and bias on values that are zero or NaN, by the rules of IEEE arithmetic."""
        gain = self.gain
        if gain is not None and self.inputs.weight is not None:
            # A finite weight gives a finite gain, past the range of float64 as it may be.
            largest = np.where(np.isfinite(self.inputs.weight), np.finfo(np.float64).max, np.inf)
            gain = Ball(np.clip(gain.high, -largest, largest))
        outputs: Ball = affine(Float64Balls(), Ball(values), gain, self.bias)
        return outputs.high


def _scaled(x: Floats, eps: float) -> tuple[Ball, Ball]:
    """Rows and eps scaled by a power of two, so that no square leaves the range of float64.

    The norm of x 2^-k with eps 4^-k is that of x with eps. Scaling is exact but for what falls
    below the smallest float, which the absolute bounds take up.
    """
    largest = np.max(np.abs(x), axis=-1, keepdims=True)
    largest = np.where(np.isfinite(largest), largest, 0.0)
    exponent = np.frexp(np.maximum(largest, np.sqrt(eps)))[1]
    inside = np.ldexp(x, -exponent)
    lost = np.any(np.ldexp(inside, exponent) != x)
    scaled_eps = np.ldexp(eps, -2 * exponent)
    eps_lost = np.any(np.ldexp(scaled_eps, 2 * exponent) != eps)
    tiniest = 2.0**-1074
    return (
        Ball(inside, absolute=tiniest if lost else 0.0),
        Ball(scaled_eps, absolute=tiniest if eps_lost else 0.0),
    )


def _special_values(x: Floats, eps: float, *, centred: bool) -> tuple[Floats, Mask]:
    """What IEEE arithmetic of unlimited precision makes of rows that have no ordinary norm.

    Returns
    -------
    tuple
        Normalised values (before gain and bias), and which rows are of this kind.
    """
    infinite = np.asarray(~np.isfinite(x).all(axis=-1, keepdims=True))
    reference = x[:, :1] if centred else np.zeros((1, 1))
    flat: Mask = np.equal(x, reference).all(axis=-1) & np.array(centred or eps == 0)
    # An infinite row has the reciprocal root 0; a NaN or an infinite mean leaves nothing.
    values = np.where(np.isnan(x).any(axis=-1, keepdims=True) | centred, np.nan, x * 0.0)
    if centred and eps > 0:
        values = np.where(flat[:, None] & ~infinite, 0.0, values)
    if eps == 0:
        values[flat] = np.nan
    return values, infinite[:, 0] | flat
