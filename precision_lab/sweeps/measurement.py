# SPDX-License-Identifier: Apache-2.0
"""One case measured: what the plan or the kernel gives, what is true, and how far they are apart.

Inputs and truths are kept for the cases that follow: those of a sweep that differ in their plan
alone, or in their format alone, stand together.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.inputs import CaptureFile, captures, families, make_bias, make_gain, make_inputs
from precision_lab.norm import ErrorReport, Truth, differences, errors, outputs_digest, truth
from precision_lab.numbers import Format, formats
from precision_lab.plan import STEPS
from precision_lab.sweeps.case import OWN
from precision_lab.sweeps.case_outputs import compute_other_outputs, compute_outputs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from precision_lab.arithmetic import Floats
    from precision_lab.plan import Step
    from precision_lab.sweeps.case import Case

# Truths of one input are asked for in turn with two gain offsets at most; a few hundred kB each.
KEPT = 4
# Values shown of the row that holds the worst element, beside its largest.
SHOWN = 4
# What is told of the errors; the worst element is told in columns of its own.
ERRORS = [
    field.name
    for field in dataclasses.fields(ErrorReport)
    if field.name not in ("format", "count", "rows", "worst")
]


@dataclass(frozen=True, eq=False)
class Tensors:
    """What enters a norm.

    Parameters
    ----------
    x
        [rows, hidden].
    gain, bias
        [hidden] or None.
    eps
        Added to the mean square of x.
    exponent
        The power of two that x was scaled by; eps was scaled by its square.
    """

    x: NDArray[Any]
    gain: NDArray[Any] | None
    bias: NDArray[Any] | None
    eps: float
    exponent: int = 0


def measure(case: Case) -> dict[str, Any]:
    """Measure a case.

    Returns
    -------
    dict
        The result's columns of its row, plain numbers and text: ``arithmetic_…`` errors against the
        truth of the inputs as stored, ``total_…`` against that of the inputs before they were
        rounded, the a-priori bound, the elements that overflowed step by step, the size of the
        inputs, and the worst element with what it came from in hexadecimal.

    Raises
    ------
    InputError
        The case asks for what cannot be, such as a format that lacks the values.
    """
    unrounded = unrounded_tensors(case)
    rounded = _rounded_tensors(
        unrounded, formats[case.format], formats[case.weight_format], case.scale
    )
    inputs = rounded.x, rounded.gain, rounded.bias
    outputs = compute_outputs(case, *inputs, eps=rounded.eps)
    y, output, values = outputs.y, outputs.format, outputs.values
    exact = _truth(case.norm, rounded, outputs.offset)
    unrounded_truth = _truth(case.norm, unrounded, outputs.offset)
    arithmetic = errors(y, exact, format=output, rounded=outputs.rounded)
    total = errors(y, unrounded_truth, format=output, rounded=outputs.rounded)
    other = compute_other_outputs(case, *inputs, eps=rounded.eps)
    return {
        "output_format": output.name,
        **_errors("arithmetic", arithmetic),
        "arithmetic_rows_lost": _rows_lost(values, exact, output),
        **_errors("total", total),
        "total_rows_lost": _rows_lost(values, unrounded_truth, output),
        **_bounds(outputs.limits, values, exact, output, arithmetic),
        **_overflows(outputs.trace),
        **_sizes(unrounded),
        "scale_exponent": rounded.exponent,
        **differences(values, other, output),
        "outputs_digest": outputs_digest(values),
        **_worst(arithmetic, rounded),
    }


def unrounded_tensors(case: Case) -> Tensors:
    """The tensors of a case before any rounding, in float64; kept for the cases that share them."""
    kind, _, name = case.source.partition(":")
    if kind == "capture":
        return _captured_tensors(
            name, case.path, eps=case.eps, gain=case.gain, bias=case.bias, seed=case.seed
        )
    return _family_tensors(
        name,
        parameters=tuple(case.parameters.items()),
        rows=case.rows,
        hidden=case.hidden,
        seed=case.seed,
        gain=case.gain,
        bias=case.bias,
        eps=case.eps,
        format=case.format if families[name].needs_format else None,
    )


@lru_cache(KEPT)
def _captured_tensors(
    name: str, path: str, *, eps: float, gain: str, bias: str, seed: int
) -> Tensors:
    model, _, layer_name = name.partition(":")
    found = CaptureFile(model, Path(path)) if path else captures[model]
    layer = found.load().layer(layer_name)
    hidden = layer.x.shape[1]
    weight: Floats | None = layer.weight.astype(np.float64)
    shift = None if layer.bias is None else layer.bias.astype(np.float64)
    if gain != OWN:
        weight = make_gain(gain, hidden=hidden, seed=seed)
    if bias != OWN:
        shift = make_bias(bias, hidden=hidden, seed=seed)
    return Tensors(layer.x.astype(np.float64), weight, shift, eps)


@lru_cache(KEPT)
def _family_tensors(
    name: str,
    *,
    parameters: tuple[tuple[str, float], ...],
    rows: int,
    hidden: int,
    seed: int,
    gain: str,
    bias: str,
    eps: float,
    format: str | None,
) -> Tensors:
    x = make_inputs(
        name, rows=rows, hidden=hidden, seed=seed, format=format, eps=eps, **dict(parameters)
    )
    return Tensors(
        x, make_gain(gain, hidden=hidden, seed=seed), make_bias(bias, hidden=hidden, seed=seed), eps
    )


@lru_cache(KEPT)
def _rounded_tensors(
    unrounded: Tensors, format: Format, weight_format: Format, scale: str
) -> Tensors:
    """The tensors in their formats, x scaled first where that is asked for."""
    exponent = _exponent(unrounded.x, format) if scale == "per_tensor" else 0
    return Tensors(
        _cast(np.ldexp(unrounded.x, exponent), format),
        None if unrounded.gain is None else _cast(unrounded.gain, weight_format),
        None if unrounded.bias is None else _cast(unrounded.bias, weight_format),
        math.ldexp(unrounded.eps, 2 * exponent),
        exponent,
    )


class KeptTruth(Truth):
    """A truth that keeps its last rounding: the next plan asks for the same."""

    _asked: tuple[Any, ...] = ()
    _rounded: NDArray[Any]

    def round(self, format: Format | str, overflow: str = "ieee") -> NDArray[Any]:
        """As `Truth.round`, but for an array that must not be written to."""
        if self._asked != (format, overflow):
            self._rounded = super().round(format, overflow)
            self._rounded.flags.writeable = False
            self._asked = format, overflow
        return self._rounded


@lru_cache(KEPT)
def _truth(norm: str, tensors: Tensors, offset: float) -> Truth:
    x, gain, bias, eps = tensors.x, tensors.gain, tensors.bias, tensors.eps
    return KeptTruth(truth(norm, x, gain, bias, eps=eps, weight_offset=offset).inputs)


def _cast(values: Floats, format: Format) -> NDArray[Any]:
    return format.cast(values, overflow=_overflow(format))


def _overflow(format: Format) -> str:
    """What happens past the largest value: a format without NaN has no code but the largest."""
    return "ieee" if format.nan else "saturate"


def _exponent(x: Floats, format: Format) -> int:
    """The power of two that brings the largest element below the format's top binade."""
    largest = np.max(np.abs(x), initial=0.0, where=np.isfinite(x))
    return format.emax - int(np.frexp(largest)[1]) if largest else 0


def _errors(prefix: str, report: ErrorReport) -> dict[str, Any]:
    return {f"{prefix}_{name}": getattr(report, name) for name in ERRORS}


def _rows_lost(actual: Floats, truth: Truth, output: Format) -> int:
    """Rows that hold no number somewhere, or zeros alone, where the rounded truth does not."""
    expected = truth.round(output, _overflow(output)).astype(np.float64)
    broken = ~np.isfinite(actual).all(axis=1) & np.isfinite(expected).all(axis=1)
    vanished = (actual == 0).all(axis=1) & (expected != 0).any(axis=1)
    return int(np.count_nonzero(broken | vanished))


def _bounds(
    limits: Floats | None, y: Floats, exact: Truth, output: Format, report: ErrorReport
) -> dict[str, Any]:
    """The largest bound and the one at the worst element in ulp, and how often it failed."""
    if limits is None:
        return dict.fromkeys(("bound_ulp", "bound_ulp_worst", "bound_exceeded"), math.nan)
    with np.errstate(all="ignore"):
        in_ulp = _in_ulp(limits, exact.value, output)
        exceeded = np.abs(y - exact.value) - exact.radius > limits
    at = None if report.worst is None else report.worst.index
    return {
        "bound_ulp": float(np.nanmax(in_ulp)) if np.any(~np.isnan(in_ulp)) else math.nan,
        "bound_ulp_worst": math.nan if at is None else float(in_ulp[at]),
        "bound_exceeded": int(np.count_nonzero(exceeded)),
    }


def _in_ulp(limits: Floats, exact: Floats, output: Format) -> Floats:
    """Bounds as the distances that `errors` measures: of ordinals, so that binades count."""
    farthest = np.zeros(limits.shape)
    for end in (exact - limits, exact + limits):
        known = np.isfinite(end)
        near = np.where(known, end, exact)
        if output.dtype == np.float64:
            away = output.distance(near, exact)
        else:
            # Ordinals of these formats, fractions included, are exact enough in float64.
            away = output.distance(0.0, exact) - output.distance(0.0, near)
        farthest = np.maximum(farthest, np.where(known, np.abs(away), limits + np.inf))
    return np.where(np.isfinite(exact), farthest, np.nan)


def _overflows(trace: list[Step] | None) -> dict[str, Any]:
    """The elements that left the range in each step, and the first step in which one did."""
    names = [f"overflow_{name}" for name in STEPS]
    if trace is None:
        return {**dict.fromkeys(names, math.nan), "first_overflow": ""}
    # A step that the plan does not have overflows nowhere.
    counts = dict.fromkeys(names, 0)
    for step in trace:
        counts[f"overflow_{step.name}"] += step.overflowed
    first = next((step.name for step in trace if step.overflowed), "")
    return {**counts, "first_overflow": first}


@lru_cache(KEPT)
def _sizes(unrounded: Tensors) -> dict[str, Any]:
    """The largest magnitude and the smallest and largest row rms, of the finite elements."""
    x = np.where(np.isfinite(unrounded.x), unrounded.x, 0.0)
    largest = float(np.max(np.abs(x), initial=0.0))
    # Squares of scaled elements do not overflow, nor do those that matter underflow.
    rms = largest * np.sqrt(np.mean(np.square(x / (largest or 1.0)), axis=1))
    return {
        "absmax": largest,
        "rms_min": float(np.min(rms)) if rms.size else math.nan,
        "rms_max": float(np.max(rms)) if rms.size else math.nan,
    }


def _worst(report: ErrorReport, rounded: Tensors) -> dict[str, Any]:
    """The worst element of the arithmetic error and what it came from, in hexadecimal."""
    worst = report.worst
    names = ("actual", "expected", "exact", "x", "gain", "bias", "row")
    if worst is None:
        empty = dict.fromkeys((f"worst_{name}_hex" for name in names), "")
        return {"worst_row": -1, "worst_column": -1, "worst_ulp": math.nan, **empty}
    row, column = worst.index
    values = rounded.x[row].astype(np.float64)
    values_shown = [*values[:SHOWN], values[np.argmax(np.abs(values))]]
    vectors = {"gain": rounded.gain, "bias": rounded.bias}
    return {
        "worst_row": row,
        "worst_column": column,
        "worst_ulp": worst.ulp,
        "worst_actual_hex": worst.actual.hex(),
        "worst_expected_hex": worst.expected.hex(),
        "worst_exact_hex": worst.exact.hex(),
        "worst_x_hex": float(values[column]).hex(),
        **{
            f"worst_{name}_hex": "" if vector is None else float(vector[column]).hex()
            for name, vector in vectors.items()
        },
        "worst_row_hex": " ".join(float(value).hex() for value in values_shown),
    }
