# SPDX-License-Identifier: Apache-2.0
"""Which outputs of a run are evidence, and how far the others are off."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.validation.soundness import COARSEST
from precision_lab.validation.verdict import Unjudged

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from precision_lab.validation.elimination import Part
    from precision_lab.validation.soundness import Hypothesis


@dataclass(eq=False)
class Evidence:
    """Outputs that are none, by kind of statistic: what is coarse depends on its bound."""

    by_statistic: dict[str, Unjudged] = field(default_factory=dict)

    def add(self, judged: Sequence[Part], alive: Iterable[Hypothesis], hidden: int) -> None:
        """Count those of a call.

        Parameters
        ----------
        judged
            The call.
        alive
            Hypotheses that are left.
        hidden
            Outputs of a row.
        """
        for hypothesis in {one.statistic: one for one in alive}.values():
            known = self.by_statistic.get(hypothesis.statistic, Unjudged())
            for part in judged:
                known = _with_part(known, part, hypothesis, hidden)
            self.by_statistic[hypothesis.statistic] = known

    def of(self, hypothesis: Hypothesis) -> Unjudged:
        """What a run that ended with a hypothesis does not count."""
        return self.by_statistic.get(hypothesis.statistic, Unjudged())


def _with_part(known: Unjudged, part: Part, hypothesis: Hypothesis, hidden: int) -> Unjudged:
    judgement = part.judgement
    allowed, exact = judgement.allowed(hypothesis), judgement.exact
    out = int(np.count_nonzero(exact.finite & ~allowed.judged))
    rows = np.nonzero(allowed.coarse[:, 0])[0]
    if not out and not rows.size:
        return known
    changes: dict[str, object] = {
        "out_of_range": known.out_of_range + out * hidden,
        "coarse": known.coarse + len(rows) * hidden,
    }
    if rows.size:
        value, y = exact.output[0][rows], judgement.y[rows]
        with np.errstate(invalid="ignore"):
            far = np.where(np.isfinite(y), np.abs(y - value), 0.0)
            size = np.maximum(1.0, np.abs(exact.normalised[0][rows]))
            size = size * np.broadcast_to(np.abs(exact.gain), judgement.y.shape)[rows]
        i, j = np.unravel_index(int(far.argmax()), far.shape)
        changes["visible"] = known.visible or bool(
            (far > COARSEST * size + np.abs(value) / 8).any()
        )
        if far[i, j] > known.error:
            changes["error"] = float(far[i, j])
            changes["example"] = f"{y[i, j]:.4g}, where the exact value is {value[i, j]:.4g}"
    return dataclasses.replace(known, **changes)  # type: ignore[arg-type]
