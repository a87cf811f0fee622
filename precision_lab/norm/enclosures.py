# SPDX-License-Identifier: Apache-2.0
"""Balls around the outputs of a norm, a block of rows at a time, and the outputs that have none."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.arithmetic import Ball, DoubleDoubleBalls, Float64Balls, double_double
from precision_lab.norm.arguments import rows_of
from precision_lab.norm.norm import affine

if TYPE_CHECKING:
    from precision_lab.arithmetic import Floats, Index, Mask
    from precision_lab.norm.arguments import Inputs


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
        stored = weight.astype(np.float64)
        if not offset:
            # Not -0 + 0: that would lose the sign.
            return Ball(stored)
        high, low = double_double.two_sum(stored, np.full_like(stored, offset))
        low = np.where(np.isfinite(high), low, 0.0)
        return Ball(high, low=low if np.any(low) else None)

    @cached_property
    def bias(self) -> Ball | None:
        """The bias, which is exact."""
        bias = self.inputs.bias
        return None if bias is None else Ball(bias.astype(np.float64))

    @cached_property
    def tame(self) -> bool:
        """Whether gain and bias are finite and too small for any output to overflow."""
        parts = [ball.high for ball in (self.gain, self.bias) if ball is not None]
        return all(bool(np.all(np.abs(part) < 2.0**900)) for part in parts)

    def of(
        self, rows: slice | Index, arithmetic: Float64Balls | DoubleDoubleBalls
    ) -> tuple[Ball, Mask]:
        """Balls around the outputs of some rows, and which outputs are special: those are exact.

        The mask of the special ones is [rows, 1] or [rows, elements].
        """
        inputs, norm, eps = self.inputs, self.inputs.norm, self.inputs.eps
        gain, bias = _rows_of(self.gain, rows), _rows_of(self.bias, rows)
        if gain is not None and gain.low is not None and isinstance(arithmetic, Float64Balls):
            gain = Ball(gain.high, relative=arithmetic.model.unit)
        x = inputs.x[rows].astype(np.float64, order="C")
        if inputs.x.dtype == np.float64 or isinstance(arithmetic, DoubleDoubleBalls):
            ball_x, ball_eps = _scaled(x, eps)
        else:
            ball_x, ball_eps = Ball(x), Ball(np.full((1, 1), eps))
        entering, ball_entering = inputs.groups.entering, ball_x
        if entering is not None:
            ball_entering = dataclasses.replace(ball_x, high=ball_x.high[:, entering])
        normalised = norm.normalise(arithmetic, ball_x, ball_entering, ball_eps)
        ball: Ball = affine(arithmetic, normalised, gain, bias)
        special = np.zeros((len(x), 1), bool)
        relative, absolute = (
            np.broadcast_to(bound, special.shape)[:, 0]
            for bound in (normalised.relative, normalised.absolute)
        )
        suspect = ~np.isfinite(relative)
        if norm.centred:
            # Of a row without spread no deviation, so not the first, is told from zero.
            first = 0 if entering is None else int(np.argmax(entering))
            suspect |= np.abs(normalised.high[:, first]) <= absolute
        if entering is not None:
            # What does not enter the statistic may be infinite or NaN for itself.
            suspect |= ~np.isfinite(x).all(axis=-1)
        if suspect.any():
            values, by_rules = _special_values(x[suspect], entering, eps, centred=norm.centred)
            special = np.zeros((len(x), by_rules.shape[1]), bool)
            special[suspect] = by_rules
            outputs = self._special_outputs(values, np.arange(len(inputs.x))[rows][suspect])
            ball.high[suspect] = np.where(by_rules, outputs, ball.high[suspect])
        return ball, special

    def _special_outputs(self, values: Floats, rows: Index) -> Floats:
        """Gain and bias on zeros, NaN and infinities, by the rules of IEEE arithmetic."""
        gain, bias = _rows_of(self.gain, rows), _rows_of(self.bias, rows)
        if gain is not None:
            # A finite weight gives a finite gain, past the range of float64 as it may be.
            weight = rows_of(self.inputs.weight, rows)
            largest = np.where(np.isfinite(weight), np.finfo(np.float64).max, np.inf)
            gain = Ball(np.clip(gain.high, -largest, largest))
        outputs: Ball = affine(Float64Balls(), Ball(values), gain, bias)
        return outputs.high


def _rows_of(ball: Ball | None, rows: slice | Index) -> Ball | None:
    """A gain or bias for some rows."""
    if ball is None or len(ball.high) == 1:
        return ball
    return dataclasses.replace(ball, high=ball.high[rows], low=rows_of(ball.low, rows))


def _scaled(x: Floats, eps: float) -> tuple[Ball, Ball]:
    """Rows and eps scaled by a power of two, so that no square leaves the range of float64.

    The norm of x 2^-k with eps 4^-k is that of x with eps. Scaling is exact but for what falls
    below the smallest float, which the absolute bounds take up.
    """
    largest = np.max(np.abs(x), axis=-1, keepdims=True)
    if not np.isfinite(largest).all():
        largest = np.max(np.abs(x), axis=-1, keepdims=True, where=np.isfinite(x), initial=0.0)
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


def _special_values(
    x: Floats, entering: Mask | None, eps: float, *, centred: bool
) -> tuple[Floats, Mask]:
    """What IEEE arithmetic of unlimited precision makes of what has no ordinary norm.

    Returns
    -------
    tuple
        Normalised values (before gain and bias), and which are of this kind: [rows, 1] where all
        elements enter the statistic, else [rows, elements].
    """
    statistic = x if entering is None else x[:, entering]
    infinite = np.asarray(~np.isfinite(statistic).all(axis=-1, keepdims=True))
    reference = statistic[:, :1] if centred else np.zeros((1, 1))
    flat = np.equal(statistic, reference).all(axis=-1, keepdims=True) & (centred or eps == 0)
    # The reciprocal root is 0 beside an infinity, but a mean is infinite too; NaN leaves nothing.
    lost = np.isnan(statistic).any(axis=-1, keepdims=True) | centred
    values = np.where(infinite, np.where(lost, np.nan, x * 0.0), x)
    deviations = x - reference
    if eps == 0:
        # The reciprocal root is infinite, and 0·∞ a NaN whose sign no processor chooses.
        infinities = np.where(deviations == 0, np.nan, deviations * np.inf)
        values = np.where(flat & ~infinite, infinities, values)
    elif centred:
        values = np.where(flat & ~infinite & (deviations == 0), 0.0, values)
    if entering is None:
        return values, infinite | flat
    none_spread = flat & (deviations == 0) if eps else flat
    return values, infinite | none_spread | ~np.isfinite(x)
