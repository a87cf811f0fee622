# SPDX-License-Identifier: Apache-2.0
"""Whether another project's test accepts a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.exceptions import InputError, unknown
from precision_lab.inputs import Draws
from precision_lab.norm import norms
from precision_lab.numbers import Format, formats
from precision_lab.validation.specimens.other_tests.projects import settings

if TYPE_CHECKING:
    from precision_lab.arithmetic import Floats
    from precision_lab.validation.specimens.other_tests.setting import (
        Drawing,
        Setting,
        Tolerance,
    )
    from precision_lab.validation.specimens.specimen import Array, NormFunction

TIE = 1e-6
"""How far from a rounding midpoint the rule ``"either"`` forgives the other neighbour."""
X, GAIN, BIAS = range(3)


def accepts(
    setting: Setting | str,
    kernel: NormFunction,
    norm: str,
    format: Format | str,
    *,
    hidden: int | None = None,
    eps: float | None = None,
    weight_offset: float = 0.0,
    seed: int = 0,
) -> bool:
    """Whether a kernel passes another project's test.

    Parameters
    ----------
    setting
        A row of `settings`, or its name.
    kernel
        kernel(x, weight, bias, eps) -> y on arrays of the format's type.
    norm
        ``"rms"`` or ``"layer"``.
    format
        x's format.
    hidden, eps
        One of the setting's hidden sizes, or eps, instead of all.
    weight_offset
        What the kernel adds to the weight.
    seed
        Of the draws, which are this package's own.

    Returns
    -------
    bool
        False, too, for a kernel that raises or returns another shape.

    Raises
    ------
    InputError
        For a norm, format, hidden size or eps that the setting does not test.
    """
    setting = settings.find(setting)
    row = formats.find(format)
    norm = norms.find(norm).name
    _check_tested(setting, "norm", norm, setting.norms)
    _check_tested(setting, "format", row.name, setting.tolerances)
    if hidden is not None:
        _check_tested(setting, "hidden size", hidden, [shape[1] for shape in setting.shapes])
    if eps is not None:
        _check_tested(setting, "eps", eps, setting.eps)
    trials = (
        _trial(setting, norm, row, shape=shape, eps=each, weight_offset=weight_offset, seed=seed)
        for shape in setting.shapes
        for each in setting.eps
        if hidden in (None, shape[1]) and eps in (None, each)
    )
    return all(_passes(setting, kernel, trial, row) for trial in trials)


def _check_tested(setting: Setting, kind: str, value: object, choices: Any) -> None:
    if value not in choices:
        raise unknown(f"{kind} of the setting {setting.name}", value, [str(one) for one in choices])


@dataclass(frozen=True, eq=False)
class Trial:
    """One call: what the kernel is given, and what the test compares with."""

    x: Array
    weight: Array | None
    bias: Array | None
    eps: float
    expected: Floats
    forgiven: Floats

    def outputs(self, kernel: NormFunction, rows: int | None = None) -> Array:
        """The kernel's outputs for the first rows, or all: it gets copies."""
        weight, bias = (None if part is None else part.copy() for part in (self.weight, self.bias))
        y = kernel(self.x[:rows].copy(), weight, bias, self.eps)
        return np.asarray(y["y"] if isinstance(y, Mapping) else y)


@lru_cache(maxsize=16)
def _trial(
    setting: Setting,
    norm: str,
    format: Format,
    *,
    shape: tuple[int, int],
    eps: float,
    weight_offset: float,
    seed: int,
) -> Trial:
    """Draw the inputs and compute what the test compares with, in float64."""
    rows, hidden = shape
    draws = Draws(seed)

    def vector(drawing: Drawing | None, stream: int) -> Array | None:
        return None if drawing is None else format.cast(drawing(draws, stream, 1, hidden))[0]

    x = format.cast(setting.inputs(draws, X, rows, hidden))
    weight = vector(setting.gain, GAIN)
    bias = None if norm == "rms" else vector(setting.bias, BIAS)
    value = x.astype(np.float64)
    if norm == "layer":
        value = value - value.mean(-1, keepdims=True)
    value = value / np.sqrt((value * value).mean(-1, keepdims=True) + eps)
    if setting.reference == "early":
        value = format.round(value)
    if weight is not None:
        value = value * (weight.astype(np.float64) + weight_offset)
    forgiven = setting.statistic * np.abs(value)
    if bias is not None:
        value = value + bias.astype(np.float64)
    expected = value if setting.reference == "wide" else format.round(value)
    return Trial(x, weight, bias, eps, expected, forgiven)


def _passes(setting: Setting, kernel: NormFunction, trial: Trial, format: Format) -> bool:
    """Whether it passes one call."""
    try:
        y = trial.outputs(kernel)
        if y.shape != trial.x.shape:
            return False
        if setting.same_bits is not None and max(setting.same_bits) <= len(y):
            few, many = (trial.outputs(kernel, count) for count in sorted(setting.same_bits))
            if few.tobytes() != many[: len(few)].tobytes():
                return False
    except Exception:  # noqa: BLE001 - whatever a kernel raises, its test fails
        return False
    tolerance = setting.tolerances[format.name]
    return _close(setting.rule, y.astype(np.float64), trial, tolerance, format)


def _close(rule: str, actual: Floats, trial: Trial, limit: Tolerance, format: Format) -> bool:
    """Whether the outputs are as near as the rule asks; a NaN never is."""
    with np.errstate(all="ignore"):
        expected = trial.expected
        error = np.abs(actual - expected)
        error = np.where(actual == expected, 0.0, error)
        if rule == "mean_square":
            return bool((error * error).sum() <= limit.relative * (expected * expected).sum())
        if rule == "sum":
            return bool((error <= limit.absolute + limit.relative * np.abs(expected)).all())
        if rule == "either":
            error = error - trial.forgiven
            near = (error <= limit.absolute) | (error <= limit.relative * np.abs(expected))
            for side in (1 - TIE, 1 + TIE):
                near |= actual == format.round(expected * side)
            return bool(near.all())
    message = f"unknown rule {rule!r}: there are sum, either and mean_square"
    raise InputError(message)
