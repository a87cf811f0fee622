# SPDX-License-Identifier: Apache-2.0
"""Where a wider bound lets pass an error that can be seen."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.validation.calls import CAPTURED
from precision_lab.validation.elimination import parts
from precision_lab.validation.failures import array_text, hex_text
from precision_lab.validation.verdict import SHOWS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from precision_lab.kernels.running import Claim, Outcome
    from precision_lab.validation.calls import Call
    from precision_lab.validation.soundness import Hypothesis

WIDER = {
    "scaled": "its mean square needs the wider bound of addends that are scaled before they are"
    " added, such as x·(x/n)",
    "running": "its mean square needs the wider bound of a running mean of squares or of a sum of"
    " squares with a running scale",
    "welford": "its statistic needs the wider bound of Welford's updates, of scale-and-shift, of a"
    " mean by a rounded 1/n or of addends that are scaled before they are added",
    "shifted": "its statistic needs the wider bound of rows that are shifted before the mean is"
    " taken",
}
"""What is said of a kind of statistic that is not the narrowest."""


@dataclass(frozen=True)
class VisibleError:
    """An output that only the wider bound allows."""

    captured: bool
    size: float
    sentence: str


def notes(
    calls: Sequence[Call], outcomes: Sequence[Outcome], claim: Claim, left: Hypothesis
) -> tuple[str, ...]:
    """What is said of the bound that a run ended with: nothing where it is the narrowest.

    The worst output is reported, with its row, where it is farther from the exact value than two
    ulp of outputs near 1.
    """
    if left.statistic == "direct":
        return ()
    wider = WIDER[left.statistic]
    narrow = dataclasses.replace(left, statistic="direct")
    visible = 2 * claim.output_format.epsilon
    worst: VisibleError | None = None
    for call, outcome in zip(calls, outcomes, strict=True):
        captured = call.gain == CAPTURED
        if outcome.y is None or not (
            captured or call.probe.startswith(("constant", "steps", "offset"))
        ):
            continue
        for part in parts(call.inputs, outcome.y, claim):
            judged = part.judgement
            with np.errstate(all="ignore"):
                exact = judged.exact.output[0]
                far = np.abs(judged.y - exact)
                far = np.where(judged.unexplained(narrow) & np.isfinite(far), far, 0.0)
                far = np.where(far > visible * np.maximum(1.0, np.abs(exact)), far, 0.0)
            # Captured rows come before those of probes.
            rank = (captured, float(far.max(initial=0.0)))
            if not far.any() or (worst is not None and rank <= (worst.captured, worst.size)):
                continue
            i, j = np.unravel_index(int(far.argmax()), far.shape)
            row = judged.exact.inputs.x[i]
            worst = VisibleError(
                captured,
                float(far.max()),
                f"{wider}{SHOWS}{call}: of the row {array_text(row)} element {j} is"
                f" {hex_text(float(judged.y[i, j]))} ({judged.y[i, j]:.4g}),"
                f" where the exact value is {exact[i, j]:.4g}",
            )
    return (wider if worst is None else worst.sentence,)
