# SPDX-License-Identifier: Apache-2.0
"""The answers for each group of a model's norms, made into one for the whole model."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from precision_lab.eps.findings import NOTE, Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from precision_lab.eps.answer import EpsAdvice
    from precision_lab.eps.subject import Subject

SEVERITY = ("keep", "change", "impossible")
"""Verdicts, the worst last."""
READINGS = "readings-differ"


@dataclass(frozen=True, kw_only=True)
class PartAdvice:
    """What is said of the norms of one part that share kind, eps, width and gain offset.

    Parameters
    ----------
    part, norm, hidden_size, weight_offset, count, plan
        As of `NormPart`; no count where only widths are known.
    eps
        The eps in question.
    verdict, interval, recommended
        As of `EpsAdvice`, for all norms of this kind, eps, offset and plan.
    """

    part: str
    norm: str
    eps: float | None
    hidden_size: int
    weight_offset: float
    count: int | None
    plan: str
    verdict: str
    interval: tuple[float, float] | None
    recommended: float | None


def describe_parts(asked: Subject, advice: EpsAdvice) -> tuple[PartAdvice, ...]:
    """One entry for all norms of a part of this group that share kind, eps, width and offset."""
    counts: Counter[tuple[str, int]] = Counter()
    for part in asked.model.parts:
        counts[part.part, part.hidden_size] += part.count
    if not asked.model.parts:
        # A capture or a module names each norm; of a name alone each width is known.
        counts.update((_part(layer.name), layer.hidden) for layer in asked.layers)
    return tuple(
        PartAdvice(
            part=part, norm=asked.model.norm, eps=asked.eps, hidden_size=hidden,
            weight_offset=asked.model.offset, count=count or None, plan=asked.plan.name,
            verdict=advice.verdict, interval=advice.interval, recommended=advice.recommended,
        )
        for (part, hidden), count in counts.items()
    )  # fmt: skip


def _part(layer: str) -> str:
    """The part of a layer of a model whose parts are not known."""
    return "model" if layer == "norm" or "." in layer else f"model {layer}"


def merge_advice(
    asked: Subject, advices: Sequence[EpsAdvice], readings: Iterable[EpsAdvice]
) -> EpsAdvice:
    """One answer: the worst verdict, the main group's numbers, the findings of all.

    Parameters
    ----------
    asked
        The whole model.
    advices
        Of the main group, and of each of `asked.others`.
    readings
        Of what the model may be as well.
    """
    main = advices[0]
    groups = [asked, *asked.others]
    parts = tuple(
        part
        for group, advice in zip(groups, advices, strict=True)
        for part in describe_parts(group, advice)
    )
    order = sorted(range(len(advices)), key=lambda n: -SEVERITY.index(advices[n].verdict))
    reasons = [advices[n].reason for n in order]
    labels = [_label(group) for group in groups]
    if len(advices) > 1:
        reasons = [f"{labels[n]}: {advices[n].reason}" for n in order]
    if asked.model.unjudged:
        kinds = dict.fromkeys(one.kind for one in asked.model.unjudged)
        reasons.append(f"not judged: {', '.join(list(kinds)[:4])}")
    findings = [*main.findings]
    for label, advice in zip(labels[1:], advices[1:], strict=True):
        findings += [
            one if one.layer is not None
            else dataclasses.replace(one, text=f"{label}: {one.text}")
            for one in advice.findings
        ]  # fmt: skip
    findings += [
        Finding(READINGS, NOTE, None, (
            f"read as {other.norm!r} norms in plan {other.plan} instead, the answer is "
            f"{other.verdict}: {other.reason}"
        ))
        for other in readings
        if other.verdict != main.verdict
    ]  # fmt: skip
    return dataclasses.replace(
        main, verdict=advices[order[0]].verdict, reason="; ".join(reasons),
        findings=tuple(sorted(findings, key=lambda one: one.severity == NOTE)),
        layers=tuple(layer for advice in advices for layer in advice.layers),
        cures=tuple(cure for advice in advices for cure in advice.cures),
        parts=parts, unjudged=asked.model.unjudged, others=tuple(advices[1:]),
        labels=tuple(labels[1:]),
    )  # fmt: skip


def _label(group: Subject) -> str:
    """The names of a group's parts, in words."""
    if "norms" in group.model.label:
        return group.model.label
    names = list(dict.fromkeys(part.part for part in group.model.parts)) or [group.model.label]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def describe_others(advice: EpsAdvice) -> list[str]:
    """A line for each group that is not the main one, and one for what is not judged."""
    lines = []
    for label, other in zip(advice.labels, advice.others, strict=True):
        eps = "no eps" if other.eps is None else f"eps {other.eps:g}"
        safe = "no eps is safe"
        if other.interval is not None:
            safe = f"safe from {other.interval[0]:.6g} to {other.interval[1]:.6g}"
        choice = ""
        if other.recommended is not None and other.recommended != other.eps:
            choice = f", recommended {other.recommended:.6g}"
        lines.append(f"{label}: {other.verdict}, {eps} in plan {other.plan}, {safe}{choice}")
    listed = (f"not judged: {one.kind} ({one.part}): {one.why}" for one in advice.unjudged)
    return [*lines, *dict.fromkeys(listed)]
