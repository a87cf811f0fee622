# SPDX-License-Identifier: Apache-2.0
"""Whether another project's test accepts a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.exceptions import InputError, unknown
from precision_lab.inputs import Draws
from precision_lab.norm import norms
from precision_lab.numbers import Format, formats
from precision_lab.validation.specimens.other_tests.projects import settings
from precision_lab.validation.specimens.steps import PLAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from precision_lab.arithmetic import Floats
    from precision_lab.validation.specimens.other_tests.drawings import Drawing
    from precision_lab.validation.specimens.other_tests.setting import Setting, Tolerance
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
    limit = setting.tolerances[row.name]
    if setting.rule == "calibrated":
        limit = limit._replace(absolute=limit.absolute * _largest_error(setting, norm, row, seed))
    trials = _trials(setting, norm, row, weight_offset=weight_offset, seed=seed)
    return all(
        _passes(setting, kernel, make(), row, limit)
        for shape, each, make in trials
        if hidden in (None, shape[1]) and eps in (None, each)
    )


def _trials(
    setting: Setting, norm: str, format: Format, *, weight_offset: float, seed: int
) -> Iterator[tuple[tuple[int, int], float, Callable[[], Trial]]]:
    """Each call's shape and eps, and what makes it."""
    for shape, eps, kind, draw in product(
        setting.shapes, setting.eps, range(len(setting.inputs)), range(setting.draws)
    ):
        yield shape, eps, partial(
            _trial, setting, norm, format, shape=shape, eps=eps, kind=kind,
            weight_offset=weight_offset, seed=seed + draw,
        )  # fmt: skip


@lru_cache(maxsize=16)
def _largest_error(setting: Setting, norm: str, format: Format, seed: int) -> float:
    """The 95th percentile of the largest errors of a plain float32 kernel, over the calls."""
    errors = []
    for _, _, make in _trials(setting, norm, format, weight_offset=0.0, seed=seed):
        trial = make()
        y = trial.outputs(PLAIN[norm]).astype(np.float64)
        errors.append(np.abs(y - trial.expected).max())
    return float(np.percentile(errors, 95))


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
    exact: Floats
    forgiven: Floats

    def outputs(self, kernel: NormFunction, rows: int | None = None) -> Array:
        """The kernel's outputs for the first rows, or all: it gets copies."""
        weight, bias = (None if part is None else part.copy() for part in (self.weight, self.bias))
        y = kernel(self.x[:rows].copy(), weight, bias, self.eps)
        return np.asarray(y["y"] if isinstance(y, Mapping) else y)


@lru_cache(maxsize=64)
def _trial(
    setting: Setting,
    norm: str,
    format: Format,
    *,
    shape: tuple[int, int],
    eps: float,
    kind: int,
    weight_offset: float,
    seed: int,
) -> Trial:
    """Draw the inputs and compute what the test compares with, in float64."""
    rows, hidden = shape
    draws = Draws(seed)

    def vector(drawing: Drawing | None, stream: int) -> Array | None:
        drawn = drawing and drawing(draws, stream, 1, hidden, format)
        return None if drawn is None else format.cast(drawn)[0]

    x = format.cast(setting.inputs[kind](draws, X, rows, hidden, format))
    weight = vector(setting.gain, GAIN)
    bias = None if norm == "rms" else vector(setting.bias, BIAS)
    gain = None if weight is None else weight.astype(np.float64) + weight_offset
    with np.errstate(all="ignore"):
        early = format if setting.reference == "early" else None
        scaled, exact = _compute(norm, (x, gain, bias), eps, early=early)
        match setting.reference:
            case "wide":
                expected = exact
            case "single":
                expected = format.round(_compute(norm, (x, gain, bias), eps, kind=np.float32)[1])
            case "steps":
                expected = _by_steps(x.astype(np.float64), eps, format)
            case _:
                expected = format.round(exact)
    nothing = np.zeros(())
    return Trial(
        x, weight, bias, eps, expected,
        exact=exact if setting.rule == "reference" else nothing,
        forgiven=setting.statistic * np.abs(scaled) if setting.statistic else nothing,
    )  # fmt: skip


def _compute(
    norm: str,
    arrays: tuple[Array, Array | None, Array | None],
    eps: float,
    *,
    kind: type[np.floating[Any]] = np.float64,
    early: Format | None = None,
) -> tuple[Floats, Floats]:
    """The norm of x, gain and bias in one type, before and after the bias.

    Where `early` is a format, the normalised value is rounded to it before the gain.
    """
    x, gain, bias = (None if part is None else part.astype(kind) for part in arrays)
    value = np.asarray(x)
    if norm == "layer":
        value = value - value.mean(-1, keepdims=True)
    value = value / np.sqrt((value * value).mean(-1, keepdims=True) + kind(eps))
    if early is not None:
        value = early.round(value)
    value = value if gain is None else value * gain
    return value, value if bias is None else value + bias


def _by_steps(x: Floats, eps: float, format: Format) -> Floats:
    """x / √(mean(x²) + eps), each operation rounded."""
    mean = format.round(format.round(x * x).mean(-1, keepdims=True))
    return format.round(x / format.round(np.sqrt(format.round(mean + eps))))


def _passes(
    setting: Setting, kernel: NormFunction, trial: Trial, format: Format, limit: Tolerance
) -> bool:
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
    return _close(setting, y.astype(np.float64), trial, limit, format)


def _close(
    setting: Setting, actual: Floats, trial: Trial, limit: Tolerance, format: Format
) -> bool:
    """Whether the outputs are as near as the rule asks; a NaN is only where the test allows it."""
    rule, expected = setting.rule, trial.expected
    with np.errstate(all="ignore"):
        if rule == "reference":
            return _near_reference(actual, trial, limit, format)
        error = np.abs(actual - expected)
        error = np.where(actual == expected, 0.0, error)
        if setting.same_nan:
            error = np.where(np.isnan(actual) & np.isnan(expected), 0.0, error)
            expected = np.where(np.isnan(expected), 0.0, expected)
        if rule == "mean_square":
            return bool((error * error).sum() <= limit.relative * (expected * expected).sum())
        if rule in ("sum", "calibrated"):
            allowed = limit.absolute + limit.relative * np.abs(expected)
            # What is allowed of an infinity is an infinity: there the value must be the same.
            return bool(((error == 0) | ((error <= allowed) & np.isfinite(expected))).all())
        if rule == "either":
            error = error - trial.forgiven
            near = (error <= limit.absolute) | (error <= limit.relative * np.abs(expected))
            for side in (1 - TIE, 1 + TIE):
                near |= actual == format.round(expected * side)
            return bool(near.all())
    message = f"unknown rule {rule!r}: there are sum, either, mean_square, reference and calibrated"
    raise InputError(message)


def _near_reference(actual: Floats, trial: Trial, limit: Tolerance, format: Format) -> bool:
    """Whether the largest error is near that of the reference, both against float64."""
    reference, exact = trial.expected, trial.exact
    same = (np.isnan(actual) == np.isnan(reference)) & (np.isinf(actual) == np.isinf(reference))
    same &= ~np.isinf(reference) | (actual == reference)
    if not same.all():
        return False
    finite = np.isfinite(reference) & np.isfinite(exact)
    of_reference, of_kernel, floor = (
        float(np.max(np.abs(values - exact), where=finite, initial=0.0))
        for values in (reference, actual, format.round(exact))
    )
    size = float(np.max(np.abs(exact), where=finite, initial=0.0))
    if of_reference > limit.absolute * max(size, floor):
        # The reference itself is too far off to tell.
        return True
    return of_kernel <= limit.relative * of_reference + floor
