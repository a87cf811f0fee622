# SPDX-License-Identifier: Apache-2.0
"""Where a LayerNorm's wider bound costs something that can be seen."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.validation.calls import ITS_OWN
from precision_lab.validation.elimination import parts
from precision_lab.validation.failures import hexed, spelt
from precision_lab.validation.verdict import SHOWS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from precision_lab.kernels.running import Claim, Outcome
    from precision_lab.validation.calls import Call
    from precision_lab.validation.soundness import Hypothesis

WIDER = (
    "its statistic needs the wider bound of Welford's updates, of scale-and-shift or of a mean"
    " by a rounded 1/n"
)


@dataclass(frozen=True)
class Cost:
    """An output that only the wider bound allows."""

    real: bool
    size: float
    told: str


def notes(
    calls: Sequence[Call], outcomes: Sequence[Outcome], claim: Claim, left: Hypothesis
) -> tuple[str, ...]:
    """What is said of the bound that a run ended with: nothing where it is the narrowest.

    The costliest output is told, with its row, where it is farther from the exact value than two
    ulp of outputs near 1.
    """
    if left.statistic == "direct":
        return ()
    narrow = dataclasses.replace(left, statistic="direct")
    visible = 2 * claim.output_format.epsilon
    worst: Cost | None = None
    for call, outcome in zip(calls, outcomes, strict=True):
        real = call.gain == ITS_OWN
        if outcome.y is None or not (
            real or call.probe.startswith(("constant", "steps", "offset"))
        ):
            continue
        for part in parts(call.inputs, outcome.y, claim):
            judged = part.judgement
            with np.errstate(all="ignore"):
                exact = judged.exact.output[0]
                far = np.abs(judged.y - exact)
                far = np.where(judged.unexplained(narrow) & np.isfinite(far), far, 0.0)
                far = np.where(far > visible * np.maximum(1.0, np.abs(exact)), far, 0.0)
            # Rows that were given come before those of probes.
            rank = (real, float(far.max(initial=0.0)))
            if not far.any() or (worst is not None and rank <= (worst.real, worst.size)):
                continue
            i, j = np.unravel_index(int(far.argmax()), far.shape)
            row = judged.exact.inputs.x[i]
            worst = Cost(
                real,
                float(far.max()),
                f"{WIDER}{SHOWS}{call}: of the row {spelt(row)} element {j} is"
                f" {hexed(float(judged.y[i, j]))} ({judged.y[i, j]:.4g}),"
                f" where the exact value is {exact[i, j]:.4g}",
            )
    return (WIDER if worst is None else worst.told,)
