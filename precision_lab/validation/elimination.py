# SPDX-License-Identifier: Apache-2.0
"""Hypotheses die one by one: what one sound computation must explain is the whole of a run."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.norm import rows_of
from precision_lab.validation.evidence import Evidence
from precision_lab.validation.soundness import (
    Exact,
    Hypothesis,
    Judgement,
    hypotheses,
    last_cast,
    schedules_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from precision_lab.arithmetic import Floats, Index, Mask
    from precision_lab.kernels.running import Claim
    from precision_lab.norm import Inputs

BLOCK = 1 << 15
"""Elements that are judged at a time: their arrays stay in the second-level cache."""

SPARSE = 1 << 12
"""Calls of fewer elements are judged with all their zeros."""

ROOTS, ROOT_ROWS = 1 << 14, 12
"""Of calls with more elements, one reciprocal root a row is checked on so many rows only."""


@dataclass(frozen=True, eq=False)
class Part:
    """Some rows of a call, judged."""

    first: int
    """The number of the first of them."""
    judgement: Judgement
    columns: Index | None = None
    """The elements that are judged; None for all."""

    def spread(self, wrong: Mask, hidden: int) -> Mask:
        """[rows, hidden]: marks of the judged columns among all."""
        if self.columns is None:
            return wrong
        full = np.zeros((len(wrong), hidden), bool)
        full[:, self.columns] = wrong
        return full


@dataclass(frozen=True, eq=False)
class Rejection:
    """A call that no hypothesis explains.

    Parameters
    ----------
    hypothesis
        The one that explains most; None where a plan is the standard.
    wrong
        [rows, hidden]: what it does not explain.
    rows
        [rows]: rows whose outputs disagree about r, though each on its own could be right.
    """

    hypothesis: Hypothesis | None
    wrong: Mask
    rows: Mask


def parts(inputs: Inputs, y: Floats, claim: Claim) -> Iterator[Part]:
    """A call in blocks of rows, without the zeros of rows that are mostly zeros."""
    count, hidden = y.shape
    step = max(1, BLOCK // hidden)
    cast = last_cast(claim)
    rest = cast.of_bias(inputs.bias)
    for first in range(0, count, step):
        rows = slice(first, first + step)
        some, part = inputs.take(rows), y[rows]
        kept = _judged_columns(some, part, rows_of(rest, rows))
        if kept is None:
            yield Part(first, Judgement(Exact(some), part, cast))
        else:
            exact = Exact(some.take_elements(kept), hidden, kept)
            yield Part(first, Judgement(exact, part[:, kept], cast), kept)


def _judged_columns(inputs: Inputs, y: Floats, rest: Floats) -> Index | None:
    """The columns that must be judged, where those are few; None for all.

    Zeros of a row whose mean is 0 are exactly 0 by every sound computation, and its bias.
    """
    x = inputs.x
    if x.size < SPARSE or inputs.groups.entering is not None:
        return None
    zero = x == 0
    if np.count_nonzero(zero) < zero.size * 3 // 4:
        return None
    with np.errstate(invalid="ignore"):
        if inputs.norm.centred and np.sum(x.astype(np.float64), -1).any():
            return None
        judged = ~(zero & (y == rest)).all(0)
    judged[[0, -1]] = True
    kept = np.nonzero(judged)[0]
    return kept if 2 * len(kept) < x.shape[1] else None


def explains(judged: Sequence[Part], hypothesis: Hypothesis) -> bool:
    """Whether a hypothesis explains all of a call."""
    return not any(
        part.judgement.unexplained(hypothesis).any()
        or _disagreeing_rows(part, judged, hypothesis).any()
        for part in judged
    )


def _disagreeing_rows(part: Part, judged: Sequence[Part], hypothesis: Hypothesis) -> Mask:
    """[rows] of the part; of a large call only a few are looked at."""
    judgement = part.judgement
    count, hidden = judgement.y.shape
    total = sum(len(other.judgement.y) for other in judged)
    if total * hidden <= ROOTS:
        return judgement.disagree(hypothesis)
    wrong = np.zeros(count, bool)
    places = np.unique(np.linspace(0, total - 1, ROOT_ROWS).astype(int)) - part.first
    places = places[(places >= 0) & (places < count)]
    if places.size:
        exact = dataclasses.replace(judgement.exact, inputs=judgement.exact.inputs.take(places))
        few = Judgement(exact, judgement.y[places], judgement.cast)
        wrong[places] = few.disagree(hypothesis)
    return wrong


def rejections(
    judged: Sequence[Part], standard: Sequence[Hypothesis], hidden: int
) -> list[Rejection]:
    """What is wrong with a call, by each hypothesis that explains as much of it as any."""
    rejected = []
    for hypothesis in standard:
        wrong = np.concatenate(
            [part.spread(part.judgement.unexplained(hypothesis), hidden) for part in judged]
        )
        rows = np.concatenate([_disagreeing_rows(part, judged, hypothesis) for part in judged])
        rejected.append(Rejection(hypothesis, wrong, rows & ~wrong.any(-1)))
    sizes = [(int(one.wrong.sum()), int(one.rows.sum())) for one in rejected]
    return [one for one, size in zip(rejected, sizes, strict=True) if size == min(sizes)]


@dataclass(eq=False)
class Elimination:
    """The hypotheses of a run.

    Parameters
    ----------
    claim
        What the kernel claims.
    alive
        Those that explain all calls so far; once there are none, those that died last and explain
        most.
    refuted
        Whether all are dead.
    evidence
        Which outputs are not counted.
    """

    claim: Claim
    alive: list[Hypothesis] = field(default_factory=list)
    refuted: bool = False
    evidence: Evidence = field(default_factory=Evidence)

    def __post_init__(self) -> None:
        centred = self.claim.norm.centred
        rows = schedules_of(self.claim.format, self.claim.output_format)
        self.alive = list(hypotheses(centred=centred, bias=centred, rows=rows))

    @property
    def narrowest(self) -> Hypothesis:
        """The first of those that are left."""
        return self.alive[0]

    def judge(self, inputs: Inputs, y: Floats) -> Rejection | None:
        """One call: the hypotheses that do not explain it die; what is wrong if none does."""
        judged = list(parts(inputs, y, self.claim))
        self.evidence.add(judged, self.alive, y.shape[1])
        left = self._explaining(judged, biased=inputs.bias is not None)
        if left:
            if not self.refuted:
                self.alive = left
            return None
        self.refuted = True
        best = rejections(judged, self.alive, y.shape[1])
        # From here on only what is nearest to the kernel is its standard.
        self.alive = [one.hypothesis for one in best if one.hypothesis is not None]
        return best[0]

    def _explaining(self, judged: Sequence[Part], *, biased: bool) -> list[Hypothesis]:
        """Those left; a wider one is not tried where a narrower one explains all."""
        good: list[Hypothesis] = []
        known: dict[Hypothesis, bool] = {}
        for hypothesis in self.alive:
            if any(one.within(hypothesis) for one in good):
                good.append(hypothesis)
                continue
            same = hypothesis
            if hypothesis.schedule.biased and not biased:
                # Schedules that differ in how a bias is added.
                same = dataclasses.replace(hypothesis, schedule=hypothesis.schedule.without_bias)
            if same not in known:
                known[same] = explains(judged, same)
            if known[same]:
                good.append(hypothesis)
            if self.refuted and good:
                break
        return good
