# SPDX-License-Identifier: Apache-2.0
"""Which eps is right for a model: a verdict, an interval, a choice in it, and the evidence."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from precision_lab.canonical_json import null, plain
from precision_lab.eps.cures import Cure, cures
from precision_lab.eps.evidence import check_held, counted, together
from precision_lab.eps.findings import HARM, ROUNDED, Finding, by_code, findings_of
from precision_lab.eps.layers import LayerAdvice, LayerCase
from precision_lab.eps.subject import Subject, subject

if TYPE_CHECKING:
    from collections.abc import Sequence

    from precision_lab.norm import Norm
    from precision_lab.numbers import Format
    from precision_lab.plan import Plan

KEEP, CHANGE, IMPOSSIBLE = "keep", "change", "impossible"

USUAL = 1e-5
"""What a new design takes where it can."""

NEAR = 2.0
"""A recommended decimal is no farther from the nearest eps without harm than by this factor."""

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

CODES = {
    "departs": "eps-departs",
    "shrinks": "eps-shrinks",
    "overflows": "sum-overflows",
    "largest": "eps-amplifies",
    "least": "eps-amplifies",
    "amplifies": "eps-amplifies",
    "vanishes": "eps-vanishes",
    "rows lost": "rows-lost",
    "zero row NaN": "zero-row-nan",
    "reciprocal overflows": "reciprocal-overflows",
}
"""The finding that says the same, for an answer that no single norm gives."""


@dataclass(frozen=True, kw_only=True)
class EpsAdvice:
    """The answer to the question which eps is right, in one format and plan.

    Parameters
    ----------
    model, norm, hidden_size
        What was asked about.
    format, plan
        What it runs in.
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
    verdict
        ``"keep"``, ``"change"`` or ``"impossible"``.
    reason
        Why, in a sentence.
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

    @property
    def _becomes(self) -> str:
        """What the recommended eps is in the plan, where that is not what it looks like."""
        keeps = self.recommended == self.eps and self.effective_eps is not None
        if not keeps or _same(self.effective_eps or 0.0, self.eps or 0.0):
            return ""
        return f", which becomes {self.effective_eps:.6g}"

    def to_json(self) -> str:
        """All of it as strict JSON, in which NaN and infinity are null."""
        return json.dumps(plain(self._document, lacking=null), ensure_ascii=False, allow_nan=False)

    @property
    def _document(self) -> dict[str, Any]:
        return {
            "model": self.model, "norm": self.norm, "hidden_size": self.hidden_size,
            "format": self.format, "plan": self.plan, "configured_eps": self.configured_eps,
            "effective_eps": self.effective_eps, "interval": self.interval,
            "recommended": self.recommended, "verdict": self.verdict,
            "findings": self.findings,
            "reason": self.reason, "eps": self.eps, "adding_format": self.adding_format,
            "output_format": self.output_format,
            "lo_breaks": self.lo_breaks, "hi_breaks": self.hi_breaks, "new": self.new,
            "evidence": self.evidence, "cures": self.cures, "layers": self.layers,
        }  # fmt: skip

    def __str__(self) -> str:
        """In words, the verdict first."""
        what = self.model or f"{self.norm} norm of {self.hidden_size}"
        lines = [f"{self.verdict}: {self.reason}", f"{what} in {self.format}, plan {self.plan}"]
        if self.interval is None:
            lines.append("no eps is without harm")
        else:
            lines.append(
                f"without harm: {self.interval[0]:.6g} (below: {BREAKS[self.lo_breaks]}) to "
                f"{self.interval[1]:.6g} (above: {BREAKS[self.hi_breaks]})"
            )
        if self.recommended is not None:
            lines.append(f"recommended: {self.recommended:.6g}{self._becomes}")
        lines += _near_zero(self.layers)
        lines += _gathered(self.findings)
        for cure in self.cures:
            error = "" if cure.ulp_max is None else f", at most {cure.ulp_max:.3g} ulp off"
            lines.append(f"cure: {cure.name}: {counted(cure.lost, 'row')} still lost{error}")
        return "\n".join([*lines, f"evidence: {self.evidence}"])


def recommend_eps(
    model: Any = None, *, norm: Norm | str | None = None, hidden_size: int | None = None,
    eps: float | None = None, format: Format | str | None = None, plan: Plan | str | None = None,
    activations: Any = None, new: bool = False, rms: tuple[float, float] = (0.1, 100.0),
    amplification: float = 1024.0, weight_offset: float | None = None,
) -> EpsAdvice:  # fmt: skip
    """Which eps is right for a model.

    For a trained checkpoint eps is part of the function, and harm is whatever departs from that
    function: by more than half an ulp of the output through another eps, or by NaN and infinity.
    For a new design eps is free, and harm is an eps that vanishes, whose reciprocal root overflows,
    that shrinks the median row by more than half an ulp, or that lets noise grow too far.

    Parameters
    ----------
    model
        A Hugging Face config (its .json file or folder), a capture (a path, a record or the name of
        a packaged one), the name of a known model, a torch module; or None, with `norm`,
        `hidden_size` and, but for a new design, `eps`.
    norm, hidden_size
        Where there is no model.
    eps
        Instead of the configured one.
    format
        The format that it will run in; by default the model's own, float32 where unknown.
    plan
        How it will be computed; by default as the model's own code does.
    activations
        A capture whose rows are the evidence.
    new
        Whether this is a new design.
    rms
        Without rows: the least and the largest root mean square of the rows assumed.
    amplification
        For a new design: the largest factor by which noise in a row near zero may grow.
    weight_offset
        What is added to the weight, where the model does not tell.

    Returns
    -------
    EpsAdvice

    Raises
    ------
    InputError
        For a model, format or plan that is not found or does not fit, an eps that is none, a format
        that holds no row.

    Examples
    --------
    >>> recommend_eps(norm="rms", hidden_size=64, eps=1e-6, format="bfloat16").verdict
    'keep'
    """
    asked = subject(
        model, norm=norm, hidden_size=hidden_size, eps=eps, format=format, plan=plan,
        activations=activations, new=new, rms=rms, amplification=amplification,
        weight_offset=weight_offset,
    )  # fmt: skip
    return advise(asked)


def advise(asked: Subject) -> EpsAdvice:
    """The answer for a subject that is found already."""
    check_held(asked.layers)
    hints: dict[str, int] = {}
    cases = [
        LayerCase(layer, asked.plan, asked.eps, asked.new, asked.amplification, hints)
        for layer in asked.layers
    ]
    layers = tuple(case.advice() for case in cases)
    ends, lo_breaks, hi_breaks = _meet(layers)
    verdict, reason = _verdict(asked, layers, ends, (lo_breaks, hi_breaks))
    recommended = _choice(asked, verdict, ends, cases[0])
    lost = [case.evidence for case in cases if case.hopeless()]
    basis = asked.eps if asked.eps is not None else USUAL
    effects = [layer.effective_eps for layer in layers if layer.effective_eps is not None]
    findings = findings_of(layers, asked)
    if verdict == IMPOSSIBLE and not any(one.severity == HARM for one in findings):
        # Each limit alone leaves some eps, and no norm has the eps in question to be told of.
        findings = (Finding(CODES[hi_breaks], HARM, None, reason), *findings)
    return EpsAdvice(
        model=asked.given.model, norm=asked.norm, hidden_size=asked.given.hidden_size,
        format=asked.format.name, plan=asked.plan.name, adding_format=asked.adding_format,
        output_format=asked.output_format,
        configured_eps=asked.configured_eps, effective_eps=min(effects, default=None),
        eps=asked.eps, interval=ends, recommended=recommended, verdict=verdict, reason=reason,
        findings=findings, layers=layers, lo_breaks=lo_breaks,
        hi_breaks=hi_breaks, cures=cures(lost, asked.plan, eps=basis) if lost else (),
        evidence=together(asked.layers), new=asked.new,
    )  # fmt: skip


def _meet(layers: Sequence[LayerAdvice]) -> tuple[tuple[float, float] | None, str, str]:
    """The eps without harm in every norm, and what breaks beyond."""
    none = [layer for layer in layers if layer.interval is None]
    if none:
        past = [layer for layer in none if layer.row_overflows]
        names = Counter(_in_the_way(layer) for layer in past or none).most_common(1)[0][0]
        return None, names[0], names[1]
    known = [(layer.interval, layer) for layer in layers if layer.interval is not None]
    (lo, _), low = max(known, key=lambda pair: pair[0][0])
    (_, hi), high = min(known, key=lambda pair: pair[0][1])
    return ((lo, hi) if lo <= hi else None), low.lo_breaks, high.hi_breaks


def _in_the_way(layer: LayerAdvice) -> tuple[str, str]:
    return layer.lo_breaks, layer.hi_breaks


def _verdict(
    asked: Subject, layers: Sequence[LayerAdvice], ends: tuple[float, float] | None,
    breaks: tuple[str, str],
) -> tuple[str, str]:  # fmt: skip
    if ends is None:
        names = [name for name in dict.fromkeys(breaks) if name not in ("least", "largest")]
        told = BREAKS[names[0]]
        if len(names) == 2:
            told = f"low ones: {BREAKS[names[0]]}; all others: {BREAKS[names[1]]}"
        past = sum(layer.row_overflows for layer in layers)
        if past:
            told += f" ({past} of {counted(sum(layer.emulated for layer in layers), 'row')})"
        return IMPOSSIBLE, f"no eps is safe: {told}"
    if asked.eps is None:
        return KEEP, f"any eps from {ends[0]:.4g} to {ends[1]:.4g} does no harm"
    harmed = [layer for layer in layers if layer.harm]
    if not harmed:
        becomes = next(layer.effective_eps for layer in layers)
        told = (
            ""
            if becomes is None or _same(becomes, asked.eps)
            else f", which becomes {becomes:.6g},"
        )
        return KEEP, f"eps {asked.eps:g}{told} does no harm: {_norms(layers)} judged"
    name = Counter(name for layer in harmed for name in layer.harm).most_common(1)[0][0]
    return CHANGE, (f"with eps {asked.eps:g} {BREAKS[name]} in {len(harmed)} of {_norms(layers)}")


def _same(becomes: float, eps: float) -> bool:
    """Whether nobody needs to be told what eps becomes."""
    return abs(becomes - eps) <= ROUNDED * eps


def _norms(layers: Sequence[LayerAdvice]) -> str:
    return counted(len(layers), "norm")


def _choice(
    asked: Subject, verdict: str, ends: tuple[float, float] | None, case: LayerCase
) -> float | None:
    """The eps to take."""
    if ends is None:
        return None
    if verdict == KEEP and asked.eps is not None:
        return asked.eps
    # All between two eps without harm are so, for what a plan makes of eps grows with it. So a
    # short decimal will do, which is what people write; a power of ten if one is near enough.
    lo, hi = ends
    wanted = asked.eps if asked.eps and not asked.new else USUAL
    nearest = min(max(wanted, lo), hi)
    for digits in ((1,), range(2, 10)):
        decimals = (float(f"{digit}e{k}") for k in range(-45, 39) for digit in digits)
        inside = [decimal for decimal in decimals if lo <= decimal <= hi]
        best = min(inside, key=lambda decimal: abs(math.log(decimal / wanted)), default=math.inf)
        if inside and (asked.new or 1 / NEAR <= best / nearest <= NEAR):
            return best
    if not asked.new and asked.eps is not None:
        return min(max(asked.eps, lo), hi)
    middle = math.sqrt(max(lo, case.grid.format.smallest)) * math.sqrt(hi)
    return min(max(float(case.grid.becomes(middle)), lo), hi)


def _near_zero(layers: Sequence[LayerAdvice]) -> list[str]:
    """What becomes of rows of zeros and near zero, in the norm that bears them worst."""
    known = [layer for layer in layers if layer.amplification is not None and layer.zero_row]
    if not known:
        return []
    worst = max(known, key=lambda layer: layer.amplification or 0.0)
    gradients = [layer.gradient_scale for layer in known if layer.gradient_scale is not None]
    told = (
        f"a row of zeros gives {worst.zero_row}; noise in a row near zero grows at most "
        f"{worst.amplification:.4g} times"
    )
    if gradients:
        told += f", and a gradient into it stays finite up to {min(gradients):.3g}"
    return [told]


def _gathered(findings: Sequence[Finding]) -> list[str]:
    """Findings in words; of those of one code in many norms the first, and how many there are."""
    lines = []
    for first, others in by_code(findings):
        where = f" ({first.layer})" if first.layer else ""
        more = f", and so in {others} more" if others else ""
        mark = "HARM" if first.severity == HARM else "note"
        lines.append(f"{mark} {first.code}: {first.text}{where}{more}")
    return lines
