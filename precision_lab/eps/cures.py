# SPDX-License-Identifier: Apache-2.0
"""What keeps a statistic from overflowing where no eps does, and what each cure costs in error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.eps.evidence import LayerEvidence, counted, recorded_evidence
from precision_lab.eps.lost_rows import Losses
from precision_lab.norm import errors, truth
from precision_lab.numbers import formats
from precision_lab.plan import emulate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from precision_lab.numbers import Format
    from precision_lab.plan import Plan

STATISTIC_FORMATS = ("square_format", "sum_format", "eps_format", "reciprocal_format")
"""What a statistic in float32 is computed in."""


@dataclass(frozen=True, kw_only=True)
class Cure:
    """One way out, measured on the layers in which the plan overflows.

    Parameters
    ----------
    name
        What is changed.
    format, plan
        What it then runs in.
    lost
        Rows that still overflow, or give NaN or infinity.
    ulp_max, ulp_p99
        The largest error of an output, and the 99 % quantile in the worst layer, in ulp of the
        format that it then runs in; None where nothing could be measured.
    relative_rms
        Root mean square of the relative error over all of these rows.
    """

    name: str
    format: str
    plan: str
    lost: int
    ulp_max: float | None
    ulp_p99: float | None
    relative_rms: float | None

    def __str__(self) -> str:
        """In words; the relative error is of one unit in all formats."""
        parts = [f"{self.name}: {counted(self.lost, 'row')} still lost"]
        if self.relative_rms is not None:
            parts.append(f"relative error {self.relative_rms:.2g} rms")
        if self.ulp_max is not None:
            parts.append(f"at most {self.ulp_max:.3g} ulp of {self.format}")
        return ", ".join(parts)


def cures(layers: Sequence[LayerEvidence], plan: Plan, *, eps: float) -> tuple[Cure, ...]:
    """Each way out of the overflows of these layers in this plan, measured; none without layers."""
    if not layers:
        return ()
    target = layers[0].format
    float32_plan = plan.replace(**dict.fromkeys(STATISTIC_FORMATS, "float32"))
    reach = max(layer.reach for layer in layers)
    ways = [("float32 statistic", target, float32_plan, 1.0)] if not reach else []
    names = ("bfloat16", "float32") if reach else ("bfloat16",)
    ways += [
        (f"{name} instead of {target.name}", formats[name], plan, 1.0)
        for name in names
        if target.emax < formats[name].emax
    ]
    if reach:
        # x·2^-k with eps·4^-k is the same function.
        k = math.ceil(math.log2(reach / target.largest))
        name = f"the tensor scaled by 2^-{k}, eps by 2^-{2 * k}, float32 statistic"
        ways.append((name, target, float32_plan, 2.0**-k))
    elif plan.prescale != "row_max":
        ways.append(("rows scaled first", target, plan.replace(prescale="row_max"), 1.0))
    return tuple(
        _measure(name, into, cured, layers, eps=eps, scale=scale)
        for name, into, cured, scale in ways
    )


def _measure(
    name: str, into: Format, plan: Plan, layers: Sequence[LayerEvidence], *,
    eps: float, scale: float,
) -> Cure:  # fmt: skip
    lost, count = 0, 0
    eps *= scale * scale
    tops: list[float] = []
    shares: list[float] = []
    squares = 0.0
    for layer in layers:
        same = into == layer.format and scale == 1
        moved = layer if same else _convert(layer, into, scale)
        losses = Losses(moved, plan, reference=eps)
        found = losses.lost(eps)
        gone = found.low | found.high | losses.overflows.any
        lost += int(gone.sum()) + moved.overflowing
        if not losses.output.nan:
            continue
        y = emulate(moved.x[~gone], moved.weight, moved.bias, eps=eps, plan=plan, norm=moved.norm)
        exact = truth(
            moved.norm, moved.x[~gone], moved.weight, moved.bias, eps=eps,
            weight_offset=moved.offset,
        )  # fmt: skip
        if not y.size:
            continue
        report = errors(y, exact)
        if report.measured:
            tops.append(report.ulp_max)
            shares.append(report.ulp_p99)
            if math.isfinite(report.relative_rms):
                squares += report.relative_rms**2 * report.measured
                count += report.measured
    return Cure(
        name=name, format=into.name, plan=plan.name, lost=lost,
        ulp_max=max(tops, default=None), ulp_p99=max(shares, default=None),
        relative_rms=math.sqrt(squares / count) if count else None,
    )  # fmt: skip


def _convert(layer: LayerEvidence, into: Format, scale: float) -> LayerEvidence:
    """The same rows in another format or scaled, with those that its own does not hold."""
    rows = layer.x[:-1].astype(np.float64)
    if layer.overflowed is not None:
        rows = np.concatenate([rows, layer.overflowed])
    return recorded_evidence(
        layer.name, layer.norm, rows * scale, layer.weight, layer.bias,
        format=into, offset=layer.offset,
    )  # fmt: skip
