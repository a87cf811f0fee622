# SPDX-License-Identifier: Apache-2.0
"""Whether a port kept eps, and what another eps costs on the rows at hand."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.eps.comparison import EpsComparison, PortLayer, Quantiles
from precision_lab.eps.evidence import check_range, describe_evidence, with_parameters
from precision_lab.eps.layers import LayerCase
from precision_lab.eps.model_lookup import ModelNorms, find_model, limited_eps
from precision_lab.eps.port_gains import (
    GainChange,
    Parameters,
    change_of,
    describe_gains,
    match_norms,
)
from precision_lab.eps.port_pairs import pair_norms
from precision_lab.eps.row_sizes import safe_rms
from precision_lab.eps.subject import Subject, subject, with_eps
from precision_lab.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from precision_lab.arithmetic import Floats
    from precision_lab.eps.evidence import LayerEvidence
    from precision_lab.eps.port_parts import PartChange
    from precision_lab.numbers import Format
    from precision_lab.plan import Plan

HALF = 0.5
"""Of an ulp: what moves an output farther is harm."""
SAME = 2.0**-24
"""Two eps that differ by no more are one eps, once as float32 and once as its author wrote it."""


def compare_eps(
    a: Any,
    b: Any,
    *,
    format: Format | str | None = None,
    plan: Plan | str | None = None,
    port_plan: Plan | str | None = None,
    activations: Any = None,
    rms: tuple[float, float] | None = None,
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
            with_eps(original, limited_eps(b, of="the eps of the port")), name="the port"
        )
    else:
        port = find_model(b)
    pairs, changes = pair_norms(original, port, (plan, port_plan))
    (one, other), *rest = [pair for pair in pairs if pair[0].norm == pair[1].norm] or pairs
    if one.norm != other.norm:
        raise InputError(
            f"{original.name or 'the original'} has {original.norm!r} norms and "
            f"{port.name or 'the port'} has {port.norm!r} norms: no port keeps eps then"
        )
    if activations is None:
        with_rows = (each for each in (one, other) if each.has_rows)
        activations = next((each for each in with_rows if each.widths & one.widths), None)
    main = _compare_groups(
        one, other, format=format, plan=plan, port_plan=port_plan, activations=activations,
        rms=rms, same_plan=same_plan,
    )  # fmt: skip
    apart = [
        _compare_groups(
            one, other, format=format, plan=plan, port_plan=port_plan, rms=rms, same_plan=same_plan
        )
        for one, other in rest
    ]
    return _merge(main, apart, changes)


def _compare_groups(
    original: ModelNorms, port: ModelNorms, *, format: Format | str | None,
    plan: Plan | str | None, port_plan: Plan | str | None, rms: tuple[float, float] | None,
    same_plan: bool, activations: Any = None,
) -> EpsComparison:  # fmt: skip
    """Norms of one kind, eps, gain offset and plan, and the same norms of the port."""
    original, port = (
        dataclasses.replace(each, others=(), readings=()) for each in (original, port)
    )
    first = subject(original, format=format, plan=plan, activations=activations, rms=rms)
    offset = first.model.offset if same_plan else port.offset
    second = subject(
        dataclasses.replace(
            port, layers=first.model.layers, offset=offset, label=original.label,
            places=original.places, hidden_size=original.hidden_size,
            other_sizes=original.other_sizes,
        ),
        format=first.format, plan=port_plan or (first.plan if same_plan else None), rms=rms,
    )  # fmt: skip
    check_range(first.layers)
    return _compare(first, second, {} if same_plan else _known_gains(first, original, port))


def _merge(
    main: EpsComparison, apart: Sequence[EpsComparison], changes: Sequence[PartChange]
) -> EpsComparison:
    """One answer for the main norms and those beside them, whose numbers are by layer."""
    fields = {each.field for each in changes}
    every = [main, *apart]
    layers = [layer for each in every for layer in each.layers]
    gains = [text for each in apart for text in each.gains if text not in main.gains]
    return dataclasses.replace(
        main, changes=tuple(changes), gains=(*main.gains, *gains),
        others=tuple(dataclasses.replace(each, layers=()) for each in apart),
        safe_rms=_intersection([each.safe_rms for each in every]),
        kept=all(each.kept for each in every) and not fields & {"eps", "norm", "part"},
        harmless=all(each.harmless for each in every) and not fields & {"norm", "part"},
        lost=sum(each.lost for each in every),
        lost_in_both=sum(each.lost_in_both for each in every),
        layers=tuple(sorted(layers, key=lambda layer: -(layer.ulp.largest or 0.0))),
    )  # fmt: skip


def _known_gains(
    first: Subject, original: ModelNorms, port: ModelNorms
) -> dict[str, tuple[Parameters, Parameters]]:
    """The parameters of each norm of the original and of its port, where both are known."""
    mine, others = _parameters(original) or _parameters(first.model), _parameters(port)
    mine = {name: one for name, one in mine.items() if name in first.model.layers}
    widths = ({name: len(one[0]) for name, one in each.items()} for each in (mine, others))
    pairs = match_norms(*widths)
    return {name: (mine[name], others[other]) for name, other in pairs.items()}


def _parameters(model: ModelNorms) -> dict[str, Parameters]:
    return {
        name: (weight, bias)
        for name, (_, weight, bias) in model.layers.items()
        if weight is not None
    }


def _compare(
    original: Subject, port: Subject, gains: dict[str, tuple[Parameters, Parameters]]
) -> EpsComparison:
    first, second = original.eps, port.eps
    if first is None or second is None:
        raise InputError("one of the two has no eps: give one")
    offsets = original.model.offset, port.model.offset
    changes = {name: change_of(*pair, offsets) for name, pair in gains.items()}
    compared, rows = [], []
    for evidence in original.layers:
        one, other = evidence, evidence
        if evidence.name in gains:
            mine, its = gains[evidence.name]
            one = with_parameters(evidence, *mine, offset=offsets[0])
            other = with_parameters(evidence, *its, offset=offsets[1])
        rows.append(one)
        sides = Side(one, original.plan, first), Side(other, port.plan, second)
        compared.append(_compare_layer(*sides, changes.get(evidence.name)))
    layers = [layer for layer, _ in compared]
    differences = zip(*(parts for _, parts in compared), strict=True)
    ulp, relative, emulated = (_quantiles(np.concatenate(parts)) for parts in differences)
    lost = sum(layer.lost for layer in layers)
    departs = any(_departs(layer, port, (first, second)) for layer in rows)
    effective = [
        min(_case(layer, each.plan, value).added_eps(value) for layer in original.layers)
        for each, value in ((original, first), (port, second))
    ]
    return EpsComparison(
        a=original.model.name, b=port.model.name,
        kept=math.isclose(first, second, rel_tol=SAME, abs_tol=0.0),
        harmless=not lost and not departs and not any(map(_gains_harm, layers)),
        eps=(first, second), effective=(effective[0], effective[1]),
        plans=(original.plan.name, port.plan.name),
        plans_assumed=(original.plan_assumed, port.plan_assumed), offsets=offsets,
        gains=tuple(describe_gains(changes, len(layers))),
        safe_rms=_safe_rms(rows, port.plan, (first, second)), format=original.format.name,
        output_format=original.output_format,
        assumed=any(layer.sizes is not None for layer in rows),
        ulp=ulp, relative=relative, emulated=emulated,
        lost=lost, lost_in_both=sum(layer.lost_in_both for layer in layers),
        evidence=describe_evidence(original.layers), label=_label(original.layers),
        layers=tuple(sorted(layers, key=lambda layer: -(layer.ulp.largest or 0.0))),
    )  # fmt: skip


def _label(layers: Sequence[LayerEvidence]) -> str:
    """What norms these are."""
    more = f" and {len(layers) - 1} more" if len(layers) > 1 else ""
    return f"{layers[0].name}{more}"


@dataclass(frozen=True, eq=False)
class Side:
    """One norm as one of the two models has it: its rows and parameters, its plan and its eps."""

    evidence: LayerEvidence
    plan: Plan
    eps: float


def _gains_harm(layer: PortLayer) -> bool:
    """Whether other gains move an output of these rows by more than half an ulp, in float64."""
    changed = layer.gains is not None and not layer.gains.kept
    return changed and (layer.ulp.largest or 0.0) > HALF


def _safe_rms(
    layers: Sequence[LayerEvidence], plan: Plan, eps: tuple[float, float]
) -> tuple[float, float] | None:
    """The sizes of rows that bear the second eps, in all of the norms."""
    return _intersection(
        [
            safe_rms(each.norm, each.hidden, each.format, plan, eps=eps[1], function=eps[0])
            for each in layers
        ]
    )


def _intersection(ends: Sequence[tuple[float, float] | None]) -> tuple[float, float] | None:
    """The sizes that lie in all of these ranges; None where there are none."""
    known = [each for each in ends if each is not None]
    if len(known) < len(ends):
        return None
    low, high = max(low for low, _ in known), min(high for _, high in known)
    return (low, high) if low <= high else None


def _case(evidence: LayerEvidence, plan: Plan, eps: float) -> LayerCase:
    return LayerCase(evidence, plan, eps, new=False, amplification=1.0)


def _departs(evidence: LayerEvidence, port: Subject, eps: tuple[float, float]) -> bool:
    """Whether the port's plan with the second eps leaves the function with the first."""
    departures = _case(evidence, port.plan, eps[0]).departures
    return departures is not None and (departures.low(eps[1]) or departures.high(eps[1]))


def _compare_layer(
    original: Side, port: Side, gains: GainChange | None
) -> tuple[PortLayer, tuple[Floats, Floats, Floats]]:
    """One norm: its quantiles, and the differences that they are of."""
    evidence = original.evidence
    case = _case(evidence, original.plan, original.eps)
    output = case.output
    y = case.losses.outputs(original.eps)
    z = _case(port.evidence, port.plan, port.eps).losses.outputs(port.eps)
    good = np.isfinite(y).all(axis=1)
    bad = ~np.isfinite(z).all(axis=1)
    both = np.isfinite(y) & np.isfinite(z)
    apart = np.abs(
        output.ordinal(np.where(both, y, 0.0)) - output.ordinal(output.round(np.where(both, z, 0)))
    )
    differences = (
        *_exact_differences(original, port, output), apart[both].astype(np.float64)
    )  # fmt: skip
    ulp, relative, emulated = map(_quantiles, differences)
    return PortLayer(
        layer=evidence.name, rows=evidence.rows, ulp=ulp, relative=relative, emulated=emulated,
        lost=int((good & bad).sum()), lost_in_both=int((~good & bad).sum()), gains=gains,
    ), differences  # fmt: skip


def _exact_differences(original: Side, port: Side, output: Format) -> tuple[Floats, Floats]:
    """How far the exact function moves, in ulp and relatively, the row of zeros left out."""
    evidence, other = original.evidence, port.evidence
    first, second = original.eps, port.eps
    x = evidence.x[:-1].astype(np.float64)
    d = x - x.mean(axis=1, keepdims=True) if evidence.norm.centred else x
    square = np.mean(d * d, axis=1, keepdims=True)
    with np.errstate(all="ignore"):
        # √((ms + a)/(ms + b)) − 1 without the cancellation.
        ratio = np.sqrt((square + first) / (square + second))
        change = np.broadcast_to((first - second) / (square + second) / (ratio + 1), d.shape)
        gain, its = (
            1.0 if each.gain is None else each.gain + each.offset for each in (evidence, other)
        )
        scaled = d / np.sqrt(square + first) * gain
        bias, its_bias = (
            np.float64(0) if each.bias is None else each.bias.astype(np.float64)
            for each in (evidence, other)
        )
        unit = np.maximum(output.ulp(scaled + bias), output.ulp(scaled))
        # (1 + change)·g'/g − 1; of equal gains the change of eps alone.
        change = change + (1 + change) * ((its - gain) / gain)
        moved = np.where(gain == 0, d / np.sqrt(square + second) * its, scaled * change)
        ulp = np.abs(moved + (its_bias - bias)) / unit
    used = np.isfinite(ulp) & ((scaled != 0) | (ulp > 0))
    return ulp[used], np.abs(change)[used & (scaled != 0)]


def _quantiles(numbers: Floats) -> Quantiles:
    if not numbers.size:
        return Quantiles(p50=None, p99=None, largest=None)
    middle, most = np.quantile(numbers, [0.5, 0.99])
    return Quantiles(p50=float(middle), p99=float(most), largest=float(numbers.max()))
