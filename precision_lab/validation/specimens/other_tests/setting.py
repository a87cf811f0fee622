# SPDX-License-Identifier: Apache-2.0
"""The record of a test: its inputs, its reference and its tolerance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from precision_lab.validation.specimens.other_tests.drawings import Drawing


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
    inputs
        How x is drawn, one kind after another.
    gain, bias
        How they are drawn; no gain or bias where None.
    eps
        The eps that it tries, each with all shapes.
    shapes
        (rows, hidden).
    draws
        How often everything is drawn.
    tolerances
        By the name of x's format.
    reference
        ``"late"`` or ``"early"``: computed in float64, and cast as that says; ``"wide"``: not cast;
        ``"single"``: computed in float32, and cast; ``"steps"``: of an RMSNorm, every operation
        rounded to x's format, as a formula written in a framework's operations is.
    rule
        ``"sum"``: the tolerance as it stands. ``"either"``: within one of the two limits, or on the
        other side of a rounding midpoint no further than 1e-6. ``"mean_square"``: the squared
        errors' sum over that of the expected values, at most `Tolerance.relative`.
        ``"reference"``: the largest error against float64 is at most `Tolerance.relative` times
        that of the reference and the largest of a correct rounding; where the reference errs by
        more than `Tolerance.absolute` of the largest value there is no verdict, which accepts.
        ``"calibrated"``: an absolute limit, `Tolerance.absolute` times the 95th percentile of the
        largest errors of a plain float32 kernel.
    same_nan
        Whether a NaN is right where the reference has one.
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
    inputs: tuple[Drawing, ...]
    gain: Drawing | None = None
    bias: Drawing | None = None
    eps: tuple[float, ...] = (1e-6,)
    shapes: tuple[tuple[int, int], ...]
    draws: int = 1
    tolerances: Mapping[str, Tolerance]
    reference: Literal["late", "early", "wide", "single", "steps"] = "late"
    rule: Literal["sum", "either", "mean_square", "reference", "calibrated"] = "sum"
    same_nan: bool = False
    statistic: float = 0.0
    same_bits: tuple[int, int] | None = None
    cut: str = ""
