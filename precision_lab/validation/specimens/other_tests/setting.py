# SPDX-License-Identifier: Apache-2.0
"""The record of a test: its inputs, its reference and its tolerance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from precision_lab.arithmetic import Floats
from precision_lab.inputs import Draws

Drawing: TypeAlias = Callable[[Draws, int, int, int], Floats]
"""(draws, stream, rows, hidden) -> values."""


class Tolerance(NamedTuple):
    """What a test forgives: abs(actual − expected) up to absolute + relative·abs(expected)."""

    relative: float
    absolute: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Setting:
    """How a project tests a norm.

    Parameters
    ----------
    name
        The project's name, and which of its tests.
    source
        Where that test stands, or what it is.
    norms
        ``"rms"``, ``"layer"`` or both.
    inputs, gain, bias
        How they are drawn; no gain or bias where None.
    eps
        The eps that it tries, each with all shapes.
    shapes
        (rows, hidden).
    tolerances
        By the name of x's format.
    reference
        ``"late"`` or ``"early"``: computed in float32 or wider, and cast as that says; ``"wide"``:
        not cast.
    rule
        ``"sum"``: the tolerance as it stands. ``"either"``: within one of the two limits, or on the
        other side of a rounding midpoint no further than 1e-6. ``"mean_square"``: the squared
        errors' sum over that of the expected values, at most `Tolerance.relative`.
    statistic
        The relative error of r that is forgiven, where the reference takes r from the kernel.
    same_bits
        Numbers of rows of which the common ones must come out the same.
    cut
        What was made smaller here, or had to be assumed, and why.
    """

    name: str
    source: str
    norms: tuple[str, ...] = ("rms", "layer")
    inputs: Drawing
    gain: Drawing | None = None
    bias: Drawing | None = None
    eps: tuple[float, ...] = (1e-6,)
    shapes: tuple[tuple[int, int], ...]
    tolerances: Mapping[str, Tolerance]
    reference: Literal["late", "early", "wide"] = "late"
    rule: Literal["sum", "either", "mean_square"] = "sum"
    statistic: float = 0.0
    same_bits: tuple[int, int] | None = None
    cut: str = ""


def normal(draws: Draws, stream: int, rows: int, hidden: int) -> Floats:
    """Standard normal values."""
    return draws.normal(stream, rows, hidden)


def normal_over_twice_hidden(draws: Draws, stream: int, rows: int, hidden: int) -> Floats:
    """Standard normal values divided by twice the length of the row."""
    return draws.normal(stream, rows, hidden) / (2 * hidden)


def normal_about(mean: float, deviation: float) -> Drawing:
    """Normal values about a mean."""
    return lambda draws, *shape: mean + deviation * draws.normal(*shape)


def uniform(low: float, high: float) -> Drawing:
    """Values spread evenly from low to high."""
    return lambda draws, *shape: low + (high - low) * draws.uniform(*shape)


def constant(value: float) -> Drawing:
    """One value throughout."""
    return lambda _draws, _stream, *shape: np.full(shape, value)
