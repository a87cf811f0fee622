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
from precision_lab.eps.evidence import check_held, together
from precision_lab.eps.layers import LayerCase
from precision_lab.eps.model_lookup import find, limited_eps
from precision_lab.eps.subject import Subject, subject
from precision_lab.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from precision_lab.eps.evidence import LayerEvidence
    from precision_lab.numbers import Format
    from precision_lab.plan import Plan

    Floats = NDArray[np.float64]

SAME = 2.0**-24
"""Two eps that differ by no more are one eps, once as float32 and once as its author wrote it."""


@dataclass(frozen=True, kw_only=True)
class Quantiles:
    """The size of differences: 50 %, 99 % and the largest; None where nothing could be measured."""

    p50: float | None
    p99: float | None
    largest: float | None


@dataclass(frozen=True, kw_only=True)
class PortLayer:
    """What a port's eps costs in one norm.

    Parameters
    ----------
    layer
        The norm's name.
    rows
        How many rows were compared.
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
    eps
        Of each, as configured.
    effective
        What each plan makes of its eps.
    plans
        Of each.
    format, output_format
        What both run in.
    ulp, relative, emulated
        As of `PortLayer`, over all norms.
    lost, lost_in_both
        As of `PortLayer`, in all norms.
    layers
        By norm, the dearest first.
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
            f"{verdict}: {first:g} in {self.a or 'one'}, {second:g} in {self.b or 'the other'}"
        ]
        lines.append(f"added as {self.effective[0]:.9g} and {self.effective[1]:.9g}")
        lines += [
            f"{what}: median {_shown(q.p50)}, 99 % {_shown(q.p99)}, largest {_shown(q.largest)}"
            for what, q in (
                (f"exact outputs differ, in ulp of {self.output_format}", self.ulp),
                ("relative", self.relative),
                ("emulated outputs differ, in values", self.emulated),
            )
        ]
        if self.lost:
            lines.append(f"{_rows(self.lost)} NaN or infinity in the port alone")
        if self.lost_in_both:
            lines.append(f"{_rows(self.lost_in_both)} NaN or infinity in both")
        told = "harmless on these rows" if self.harmless else "not harmless on these rows"
        if self.harmless and self.lost_in_both:
            told = "the port adds no harm on these rows, and both lose some"
        lines.append(told)
        return "\n".join([*lines, f"evidence: {self.evidence}"])


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
    original = find(a)
    port = (
        dataclasses.replace(
            original, model="the port", eps=limited_eps(b, of="the eps of the port")
        )
        if _is_number(b)
        else find(b)
    )
    if original.norm != port.norm:
        raise InputError(
            f"{original.model or 'the original'} has {original.norm!r} norms and "
            f"{port.model or 'the port'} has {port.norm!r} norms: no port keeps eps then"
        )
    rows = activations
    if rows is None:
        rows = next(
            (each for each in (original, port) if each.has_rows and each.widths & original.widths),
            None,
        )
    with_rows = subject(original, format=format, plan=plan, activations=rows, rms=rms)
    other = subject(
        dataclasses.replace(port, layers=with_rows.given.layers, offset=with_rows.given.offset,
                            hidden_size=original.hidden_size, other_sizes=original.other_sizes),
        format=with_rows.format, plan=port_plan or (with_rows.plan if _is_number(b) else None),
        rms=rms,
    )  # fmt: skip
    check_held(with_rows.layers)
    return _compared(with_rows, other)


def _is_number(b: Any) -> bool:
    return isinstance(b, int | float | np.floating) and not isinstance(b, bool)


def _compared(original: Subject, port: Subject) -> EpsComparison:
    first, second = original.eps, port.eps
    if first is None or second is None:
        raise InputError("one of the two has no eps: give one")
    found = [
        _layer(layer, original, port, first, second)
        for layer in original.layers
    ]  # fmt: skip
    layers = [each for each, _ in found]
    merged = [np.concatenate(parts) for parts in zip(*(parts for _, parts in found), strict=True)]
    ulp, relative, emulated = (_quantiles(values) for values in merged)
    lost = sum(layer.lost for layer in layers)
    departs = any(_departs(layer, port, first, second) for layer in original.layers)
    effects = [
        min(LayerCase(layer, each.plan, each.eps, new=False, amplification=1.0).becomes(eps)
            for layer in original.layers)
        for each, eps in ((original, first), (port, second))
    ]  # fmt: skip
    return EpsComparison(
        a=original.given.model, b=port.given.model,
        kept=math.isclose(first, second, rel_tol=SAME, abs_tol=0.0),
        harmless=not departs and not lost,
        eps=(first, second), effective=(effects[0], effects[1]),
        plans=(original.plan.name, port.plan.name), format=original.format.name,
        output_format=original.output_format, ulp=ulp, relative=relative, emulated=emulated,
        lost=lost, lost_in_both=sum(layer.lost_in_both for layer in layers),
        evidence=together(original.layers),
        layers=tuple(sorted(layers, key=lambda layer: -(layer.ulp.largest or 0.0))),
    )  # fmt: skip


def _departs(evidence: LayerEvidence, port: Subject, first: float, second: float) -> bool:
    """Whether the port's plan with the second eps leaves the function with the first."""
    case = LayerCase(evidence, port.plan, first, new=False, amplification=1.0)
    found = case.departures
    return found is not None and (found.low(second) or found.high(second))


def _layer(
    evidence: LayerEvidence, original: Subject, port: Subject, first: float, second: float
) -> tuple[PortLayer, tuple[Floats, Floats, Floats]]:
    """One norm: its quantiles, and the differences that they are of."""
    case = LayerCase(evidence, original.plan, first, new=False, amplification=1.0)
    other = LayerCase(evidence, port.plan, second, new=False, amplification=1.0)
    output = case.output
    y, z = case.losses.outputs(first), other.losses.outputs(second)
    good = np.isfinite(y).all(axis=1)
    bad = ~np.isfinite(z).all(axis=1)
    lost, lost_in_both = int((good & bad).sum()), int((~good & bad).sum())
    both = np.isfinite(y) & np.isfinite(z)
    apart = np.abs(
        output.ordinal(np.where(both, y, 0.0)) - output.ordinal(output.round(np.where(both, z, 0)))
    )
    moved, relative = _exact(evidence, first, second, case)
    parts = (moved, relative, apart[both].astype(np.float64))
    ulp, share, values = (_quantiles(part) for part in parts)
    return PortLayer(
        layer=evidence.name,
        rows=evidence.rows,
        ulp=ulp,
        relative=share,
        emulated=values,
        lost=lost,
        lost_in_both=lost_in_both,
    ), parts


def _exact(
    evidence: LayerEvidence, first: float, second: float, case: LayerCase
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
        unit = np.maximum(case.output.ulp(y), case.output.ulp(scaled))
        ulp = np.abs(scaled) * change / unit
    used = np.isfinite(ulp) & (scaled != 0)
    return ulp[used], np.broadcast_to(change, ulp.shape)[used]


def _quantiles(values: Floats | Sequence[float]) -> Quantiles:
    found = np.asarray(values, np.float64)
    if not found.size:
        return Quantiles(p50=None, p99=None, largest=None)
    middle, most = np.quantile(found, [0.5, 0.99])
    return Quantiles(p50=float(middle), p99=float(most), largest=float(found.max()))


def _rows(count: int) -> str:
    return "1 row gives" if count == 1 else f"{count} rows give"


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:.3g}"
