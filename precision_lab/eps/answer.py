# SPDX-License-Identifier: Apache-2.0
"""The answer to the question which eps is right: a record, its words and its JSON."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from precision_lab.canonical_json import null, plain
from precision_lab.eps.findings import HARM, ROUNDED, Finding, by_code
from precision_lab.eps.whole_models import PartAdvice, describe_others

if TYPE_CHECKING:
    from collections.abc import Sequence

    from precision_lab.eps.cures import Cure
    from precision_lab.eps.layers import LayerAdvice
    from precision_lab.models import Unjudged

KEEP, CHANGE, IMPOSSIBLE = "keep", "change", "impossible"

NEGLIGIBLE = 1e-30
"""An eps below this is spoken of as 0."""

BREAKS = {
    "departs": "outputs depart from the configured function by more than half an ulp",
    "vanishes": "eps becomes 0",
    "zero row NaN": "a row of zeros gives no number",
    "reciprocal overflows": "1/√eps is past the range",
    "rows lost": "rows give NaN or infinity",
    "amplifies": "noise grows too far",
    "shrinks": "the median row shrinks by more than half an ulp",
    "overflows": "eps carries the mean square past the range",
    "least": "there is no lower value",
    "largest": "there is no larger value",
    "rows overflow": "rows are past the largest value of the format whatever eps is",
    "squares overflow": "squares overflow whatever eps is",
    "sums overflow": "sums of squares overflow whatever eps is",
}
"""What the names of `EpsAdvice.lo_breaks` and `hi_breaks` say."""

JSON_FIELDS = (
    "model", "norm", "hidden_size", "format", "plan", "configured_eps", "effective_eps", "interval",
    "recommended", "verdict", "findings", "reason", "eps", "adding_format", "output_format",
    "lo_breaks", "hi_breaks", "new", "evidence", "parts", "unjudged", "cures", "layers",
)  # fmt: skip
"""The order of `EpsAdvice.to_json`: the answer first, the layers last."""


@dataclass(frozen=True, kw_only=True)
class EpsAdvice:
    """The answer to the question which eps is right, in one format and plan.

    Parameters
    ----------
    model, norm, hidden_size, format, plan
        What was asked about, and what it runs in.
    adding_format
        The format that adds eps; both ends of the interval are values of it.
    output_format
        The format of the outputs, whose ulp is the measure.
    configured_eps, effective_eps
        The model's own eps (None where it names none), and what the plan makes of the eps in
        question.
    eps
        The eps in question: the configured one, or what the class takes.
    interval
        The least and the largest eps without harm in any norm; None where there is none.
    recommended
        The choice; None where no eps is safe.
    verdict, reason
        ``"keep"``, ``"change"`` or ``"impossible"``; why, in a sentence.
    findings
        Harm first.
    layers
        By norm.
    lo_breaks, hi_breaks
        What breaks one value beyond each end, a key of `BREAKS`; without an interval, what is in
        the way.
    cures
        Where the statistic overflows whatever eps is.
    evidence
        What was judged, in words.
    new
        Whether the question was of a new design.
    parts, unjudged
        Every part of the model with its own kind, eps and width; and norms that are not judged.
    others, labels
        The answers for norms of another kind, eps, gain offset or plan than the main ones', and
        the names of their parts. `verdict`, `reason`, `findings` and `layers` are of all.
    """

    model: str
    norm: str
    hidden_size: int
    format: str
    plan: str
    adding_format: str
    output_format: str
    configured_eps: float | None
    effective_eps: float | None
    eps: float | None
    interval: tuple[float, float] | None
    recommended: float | None
    verdict: str
    reason: str
    findings: tuple[Finding, ...]
    layers: tuple[LayerAdvice, ...]
    lo_breaks: str
    hi_breaks: str
    cures: tuple[Cure, ...]
    evidence: str
    new: bool
    parts: tuple[PartAdvice, ...] = ()
    unjudged: tuple[Unjudged, ...] = ()
    others: tuple[EpsAdvice, ...] = ()
    labels: tuple[str, ...] = ()

    def to_json(self) -> str:
        """All of it as strict JSON, in which NaN and infinity are null."""
        fields = {name: getattr(self, name) for name in JSON_FIELDS}
        return json.dumps(plain(fields, lacking=null), ensure_ascii=False, allow_nan=False)

    def __str__(self) -> str:
        """In words, the verdict first."""
        what = self.model or f"{self.norm} norm of {self.hidden_size}"
        lines = [f"{self.verdict}: {self.reason}", f"{what} in {self.format}, plan {self.plan}"]
        if self.interval is None:
            lines.append("safe on these rows: no eps")
        else:
            lo, hi = self.interval
            low, high = _deciding_norms(self.layers, self.interval)
            least = f"from {lo:.6g} (below: {BREAKS[self.lo_breaks]}{low})"
            if lo < NEGLIGIBLE:
                least = "above 0" if lo else "from 0"
            lines.append(
                f"safe on these rows: any eps {least} to {hi:.6g} "
                f"(above: {BREAKS[self.hi_breaks]}{high})"
            )
        if self.recommended is not None:
            rounded = (
                rounded_to(self.effective_eps, self.eps) if self.recommended == self.eps else ""
            )
            lines.append(f"recommended: {self.recommended:.6g}{rounded}")
        lines += describe_others(self)
        lines += _describe_near_zero(self.layers)
        lines += _describe_findings(self.findings)
        lines += [f"cure: {cure}" for cure in self.cures]
        return "\n".join([*lines, f"evidence: {self.evidence}"])


def rounded_to(effective: float | None, eps: float | None) -> str:
    """What eps becomes, in words, where it is not what it looks like."""
    if effective is None or eps is None or abs(effective - eps) <= ROUNDED * eps:
        return ""
    return f", which becomes {effective:.6g}"


def _deciding_norms(
    layers: Sequence[LayerAdvice], interval: tuple[float, float]
) -> tuple[str, str]:
    """The norm that each end of the interval comes from, in words; "" where all have that end."""
    texts = []
    for end in (0, 1):
        same = [one.layer for one in layers if one.interval and one.interval[end] == interval[end]]
        texts.append(f", in {same[0]}" if 0 < len(same) < len(layers) else "")
    return texts[0], texts[1]


def _describe_near_zero(layers: Sequence[LayerAdvice]) -> list[str]:
    """What becomes of rows of zeros and near zero, in the norm that bears them worst."""
    known = [layer for layer in layers if layer.amplification is not None and layer.zero_row]
    if not known:
        return []
    worst = max(known, key=lambda layer: layer.amplification or 0.0)
    eps, most = worst.effective_eps or 0.0, worst.amplification or 0.0
    inside = math.isclose(most * most * eps, 1, rel_tol=1e-9)
    gradients = [layer.gradient_scale for layer in known if layer.gradient_scale is not None]
    text = (
        f"a row of zeros gives {worst.zero_row}; gain for a near-zero row: at most "
        f"{worst.amplification:.4g}{' (1/√eps)' if inside else ''}"
    )
    if gradients:
        text += f", and a gradient into it stays finite up to {min(gradients):.3g}"
    return [text]


def _describe_findings(findings: Sequence[Finding]) -> list[str]:
    """Findings in words; of those of one code in many norms the first, and how many there are."""
    lines = []
    for first, others in by_code(findings):
        where = f" ({first.layer})" if first.layer else ""
        more = f", and so in {others} more" if others else ""
        mark = "HARM" if first.severity == HARM else "note"
        lines.append(f"{mark} {first.code}: {first.text}{where}{more}")
    return lines
