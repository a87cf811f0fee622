# SPDX-License-Identifier: Apache-2.0
"""Whether a port kept eps, and what another eps costs on the rows at hand."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.canonical_json import null, plain
from precision_lab.eps.evidence import check_range, describe_evidence
from precision_lab.eps.layers import LayerCase
from precision_lab.eps.model_lookup import find_model, limited_eps
from precision_lab.eps.subject import Subject, subject
from precision_lab.exceptions import InputError

if TYPE_CHECKING:
    from precision_lab.arithmetic import Floats
    from precision_lab.eps.evidence import LayerEvidence
    from precision_lab.numbers import Format
    from precision_lab.plan import Plan

SAME = 2.0**-24
"""Two eps that differ by no more are one eps, once as float32 and once as its author wrote it."""


@dataclass(frozen=True, kw_only=True)
class Quantiles:
    """The size of differences: 50 %, 99 % and the largest; None where nothing could be measured."""

    p50: float | None
    p99: float | None
    largest: float | None

    def __str__(self) -> str:
        """In words."""
        numbers = (self.p50, self.p99, self.largest)
        texts = ("none" if number is None else f"{number:.3g}" for number in numbers)
        return "median {}, 99 % {}, largest {}".format(*texts)


@dataclass(frozen=True, kw_only=True)
class PortLayer:
    """What a port's eps costs in one norm.

    Parameters
    ----------
    ulp
        Between the two exact functions, in ulp of the output format at the original's value.
    relative
        The same beside the original's normalised value, before the bias.
    emulated
        Between the outputs of the two plans, in values of the output format.
    lost, lost_in_both
        Rows in which only the port's outputs hold NaN or infinity, and in which both have such.
    """

    layer: str
    rows: int
    ulp: Quantiles
    relative: Quantiles
    emulated: Quantiles
    lost: int
    lost_in_both: int


@dataclass(frozen=True, kw_only=True)
class EpsComparison:
    """Two versions of one model.

    Parameters
    ----------
    a, b
        The original and its port.
    kept
        Whether both have one eps.
    harmless
        Whether what the port's plan adds moves no exact output by more than half an ulp (decided
        exactly), and loses no row that the original does not lose as well.
    eps, effective
        Of each, as configured, and what its plan makes of it.
    ulp, relative, emulated, lost, lost_in_both
        As of `PortLayer`, over all norms.
    layers
        By norm, the largest difference first.
    evidence
        What was compared, in words.
    """

    a: str
    b: str
    kept: bool
    harmless: bool
    eps: tuple[float, float]
    effective: tuple[float, float]
    plans: tuple[str, str]
    format: str
    output_format: str
    ulp: Quantiles
    relative: Quantiles
    emulated: Quantiles
    lost: int
    lost_in_both: int
    layers: tuple[PortLayer, ...]
    evidence: str

    def to_json(self) -> str:
        """All of it as strict JSON, in which NaN and infinity are null."""
        return json.dumps(plain(self, lacking=null), ensure_ascii=False, allow_nan=False)

    def __str__(self) -> str:
        """In words."""
        first, second = self.eps
        verdict = "eps kept" if self.kept else "eps changed"
        lines = [
            f"{verdict}: {first:g} in {self.a or 'one'}, {second:g} in {self.b or 'the other'}",
            f"added as {self.effective[0]:.9g} and {self.effective[1]:.9g}",
        ]
        lines += [
            f"{what}: {quantiles}"
            for what, quantiles in (
                (f"exact outputs differ, in ulp of {self.output_format}", self.ulp),
                ("relative", self.relative),
                ("emulated outputs differ, in values", self.emulated),
            )
        ]
        if self.lost:
            lines.append(f"{_rows(self.lost)} NaN or infinity in the port alone")
        if self.lost_in_both:
            lines.append(f"{_rows(self.lost_in_both)} NaN or infinity in both")
        harm = "harmless on these rows" if self.harmless else "not harmless on these rows"
        if self.harmless and self.lost_in_both:
            harm = "the port adds no harm on these rows, and both lose some"
        return "\n".join([*lines, harm, f"evidence: {self.evidence}"])


def compare_eps(
    a: Any,
    b: Any,
    *,
    format: Format | str | None = None,
    plan: Plan | str | None = None,
    port_plan: Plan | str | None = None,
    activations: Any = None,
    rms: tuple[float, float] = (0.1, 100.0),
) -> EpsComparison:
    """Whether a port kept eps, and what its own one costs.

    Parameters
    ----------
    a, b
        The original and its port: models as `recommend_eps` takes them, or for the port a number,
        its eps. The rows are those of the first of `activations`, a and b that has any; otherwise
        they are assumed.
    format
        What both run in; by default the original's own.
    plan, port_plan
        How each is computed; by default as its own code does, and the port as the original where
        it is a number.
    activations, rms
        As for `recommend_eps`.

    Raises
    ------
    InputError
        Where the two have different norms, or one of them has no eps.
    """
    original = find_model(a)
    same_plan = isinstance(b, int | float | np.floating) and not isinstance(b, bool)
    if same_plan:
        port = dataclasses.replace(
            original, name="the port", eps=limited_eps(b, of="the eps of the port")
        )
    else:
        port = find_model(b)
    if original.norm != port.norm:
        raise InputError(
            f"{original.name or 'the original'} has {original.norm!r} norms and "
            f"{port.name or 'the port'} has {port.norm!r} norms: no port keeps eps then"
        )
    if activations is None:
        with_rows = (each for each in (original, port) if each.has_rows)
        activations = next((each for each in with_rows if each.widths & original.widths), None)
    first = subject(original, format=format, plan=plan, activations=activations, rms=rms)
    second = subject(
        dataclasses.replace(port, layers=first.model.layers, offset=first.model.offset,
                            hidden_size=original.hidden_size, other_sizes=original.other_sizes),
        format=first.format, plan=port_plan or (first.plan if same_plan else None), rms=rms,
    )  # fmt: skip
    check_range(first.layers)
    return _compare(first, second)


def _compare(original: Subject, port: Subject) -> EpsComparison:
    first, second = original.eps, port.eps
    if first is None or second is None:
        raise InputError("one of the two has no eps: give one")
    eps = (first, second)
    compared = [_compare_layer(layer, original, port, eps) for layer in original.layers]
    layers = [layer for layer, _ in compared]
    differences = zip(*(parts for _, parts in compared), strict=True)
    ulp, relative, emulated = (_quantiles(np.concatenate(parts)) for parts in differences)
    lost = sum(layer.lost for layer in layers)
    effective = [
        min(_case(layer, each.plan, value).added_eps(value) for layer in original.layers)
        for each, value in ((original, first), (port, second))
    ]
    return EpsComparison(
        a=original.model.name, b=port.model.name,
        kept=math.isclose(first, second, rel_tol=SAME, abs_tol=0.0),
        harmless=not lost and not any(_departs(layer, port, eps) for layer in original.layers),
        eps=eps, effective=(effective[0], effective[1]),
        plans=(original.plan.name, port.plan.name), format=original.format.name,
        output_format=original.output_format, ulp=ulp, relative=relative, emulated=emulated,
        lost=lost, lost_in_both=sum(layer.lost_in_both for layer in layers),
        evidence=describe_evidence(original.layers),
        layers=tuple(sorted(layers, key=lambda layer: -(layer.ulp.largest or 0.0))),
    )  # fmt: skip


def _case(evidence: LayerEvidence, plan: Plan, eps: float) -> LayerCase:
    return LayerCase(evidence, plan, eps, new=False, amplification=1.0)


def _departs(evidence: LayerEvidence, port: Subject, eps: tuple[float, float]) -> bool:
    """Whether the port's plan with the second eps leaves the function with the first."""
    departures = _case(evidence, port.plan, eps[0]).departures
    return departures is not None and (departures.low(eps[1]) or departures.high(eps[1]))


def _compare_layer(
    evidence: LayerEvidence, original: Subject, port: Subject, eps: tuple[float, float]
) -> tuple[PortLayer, tuple[Floats, Floats, Floats]]:
    """One norm: its quantiles, and the differences that they are of."""
    first, second = eps
    case = _case(evidence, original.plan, first)
    output = case.output
    y = case.losses.outputs(first)
    z = _case(evidence, port.plan, second).losses.outputs(second)
    good = np.isfinite(y).all(axis=1)
    bad = ~np.isfinite(z).all(axis=1)
    both = np.isfinite(y) & np.isfinite(z)
    apart = np.abs(
        output.ordinal(np.where(both, y, 0.0)) - output.ordinal(output.round(np.where(both, z, 0)))
    )
    differences = (
        *_exact_differences(evidence, first, second, output), apart[both].astype(np.float64)
    )  # fmt: skip
    ulp, relative, emulated = map(_quantiles, differences)
    return PortLayer(
        layer=evidence.name, rows=evidence.rows, ulp=ulp, relative=relative, emulated=emulated,
        lost=int((good & bad).sum()), lost_in_both=int((~good & bad).sum()),
    ), differences  # fmt: skip


def _exact_differences(
    evidence: LayerEvidence, first: float, second: float, output: Format
) -> tuple[Floats, Floats]:
    """How far the exact function moves, in ulp and relatively, the row of zeros left out."""
    x = evidence.x[:-1].astype(np.float64)
    d = x - x.mean(axis=1, keepdims=True) if evidence.norm.centred else x
    square = np.mean(d * d, axis=1, keepdims=True)
    with np.errstate(all="ignore"):
        # √((ms + a)/(ms + b)) − 1 without the cancellation.
        ratio = np.sqrt((square + first) / (square + second))
        change = np.abs((first - second) / (square + second) / (ratio + 1))
        gain = 1.0 if evidence.gain is None else evidence.gain + evidence.offset
        scaled = d / np.sqrt(square + first) * gain
        y = scaled if evidence.bias is None else scaled + evidence.bias.astype(np.float64)
        unit = np.maximum(output.ulp(y), output.ulp(scaled))
        ulp = np.abs(scaled) * change / unit
    used = np.isfinite(ulp) & (scaled != 0)
    return ulp[used], np.broadcast_to(change, ulp.shape)[used]


def _quantiles(numbers: Floats) -> Quantiles:
    if not numbers.size:
        return Quantiles(p50=None, p99=None, largest=None)
    middle, most = np.quantile(numbers, [0.5, 0.99])
    return Quantiles(p50=float(middle), p99=float(most), largest=float(numbers.max()))


def _rows(count: int) -> str:
    return "1 row gives" if count == 1 else f"{count} rows give"
