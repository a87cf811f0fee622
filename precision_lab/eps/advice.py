# SPDX-License-Identifier: Apache-2.0
"""Which eps is right for a model: from the norms one by one to a verdict and a choice."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from precision_lab.eps.answer import BREAKS, CHANGE, IMPOSSIBLE, KEEP, EpsAdvice, rounded_to
from precision_lab.eps.cures import cures
from precision_lab.eps.evidence import check_range, counted, describe_evidence
from precision_lab.eps.findings import HARM, Finding, findings_of
from precision_lab.eps.layers import LayerAdvice, LayerCase
from precision_lab.eps.subject import Subject, subject
from precision_lab.eps.whole_models import merge_advice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from precision_lab.norm import Norm
    from precision_lab.numbers import Format
    from precision_lab.plan import Plan

USUAL = 1e-5
"""What a new design takes where it can."""

NEAR = 2.0
"""A recommended decimal is no farther from the nearest eps without harm than by this factor."""

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


def recommend_eps(
    model: Any = None, *, norm: Norm | str | None = None, hidden_size: int | None = None,
    eps: float | None = None, format: Format | str | None = None, plan: Plan | str | None = None,
    activations: Any = None, new: bool = False, rms: tuple[float, float] | None = None,
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
        Without rows: the least and the largest root mean square of the rows assumed; None for what
        is usual at the place of each norm, as of `evidence.ROW_SIZES`.
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
    return advise(subject(
        model, norm=norm, hidden_size=hidden_size, eps=eps, format=format, plan=plan,
        activations=activations, new=new, rms=rms, amplification=amplification,
        weight_offset=weight_offset,
    ))  # fmt: skip


def advise(asked: Subject) -> EpsAdvice:
    """The answer for a subject that is found already: of all its norms."""
    advices = [_advise_group(group) for group in (asked, *asked.others)]
    return merge_advice(asked, advices, map(_advise_group, asked.readings))


def _advise_group(asked: Subject) -> EpsAdvice:
    """The answer for norms of one kind, eps, gain offset and plan."""
    check_range(asked.layers)
    hints: dict[str, int] = {}
    cases = [
        LayerCase(layer, asked.plan, asked.eps, asked.new, asked.amplification, hints)
        for layer in asked.layers
    ]
    layers = tuple(case.advice() for case in cases)
    ends, lo_breaks, hi_breaks = _intersection(layers)
    verdict, reason = _verdict(asked, layers, ends, (lo_breaks, hi_breaks))
    overflowing = [case.evidence for case in cases if case.overflow_names()]
    effects = [layer.effective_eps for layer in layers if layer.effective_eps is not None]
    findings = findings_of(layers, asked)
    if verdict == IMPOSSIBLE and not any(one.severity == HARM for one in findings):
        # Each limit alone leaves some eps, and no norm has the eps in question to speak of.
        findings = (Finding(CODES[hi_breaks], HARM, None, reason), *findings)
    return EpsAdvice(
        model=asked.model.name, norm=asked.model.norm, hidden_size=asked.model.hidden_size,
        format=asked.format.name, plan=asked.plan.name, adding_format=asked.adding_format,
        output_format=asked.output_format, configured_eps=asked.model.eps,
        effective_eps=min(effects, default=None), eps=asked.eps, interval=ends,
        recommended=_choice(asked, verdict, ends, cases[0]), verdict=verdict, reason=reason,
        findings=findings, layers=layers, lo_breaks=lo_breaks, hi_breaks=hi_breaks,
        cures=cures(overflowing, asked.plan, eps=USUAL if asked.eps is None else asked.eps),
        evidence=describe_evidence(asked.layers), new=asked.new,
    )  # fmt: skip


def _intersection(layers: Sequence[LayerAdvice]) -> tuple[tuple[float, float] | None, str, str]:
    """The eps without harm in every norm, and what breaks beyond."""
    none = [layer for layer in layers if layer.interval is None]
    if none:
        overflowing = [layer for layer in none if layer.row_overflows]
        breaks = Counter((layer.lo_breaks, layer.hi_breaks) for layer in overflowing or none)
        return None, *breaks.most_common(1)[0][0]
    known = [(layer.interval, layer) for layer in layers if layer.interval is not None]
    (lo, _), low = max(known, key=lambda pair: pair[0][0])
    (_, hi), high = min(known, key=lambda pair: pair[0][1])
    return ((lo, hi) if lo <= hi else None), low.lo_breaks, high.hi_breaks


def _verdict(
    asked: Subject, layers: Sequence[LayerAdvice], ends: tuple[float, float] | None,
    breaks: tuple[str, str],
) -> tuple[str, str]:  # fmt: skip
    if ends is None:
        names = [name for name in dict.fromkeys(breaks) if name not in ("least", "largest")]
        cause = BREAKS[names[0]]
        if len(names) == 2:
            cause = f"low ones: {BREAKS[names[0]]}; all others: {BREAKS[names[1]]}"
        if overflows := sum(layer.row_overflows for layer in layers):
            cause += f" ({overflows} of {counted(sum(layer.emulated for layer in layers))})"
        return IMPOSSIBLE, f"no eps is safe: {cause}"
    if asked.eps is None:
        return KEEP, f"any eps from {ends[0]:.4g} to {ends[1]:.4g} does no harm"
    norms = counted(len(layers), "norm" if _reads_gains(asked) else "width")
    harmed = [layer for layer in layers if layer.harm]
    if not harmed:
        rounded = rounded_to(layers[0].effective_eps, asked.eps)
        comma = "," if rounded else ""
        return KEEP, f"eps {asked.eps:g}{rounded}{comma} does no harm: {_describe_judged(asked)}"
    name = Counter(name for layer in harmed for name in layer.harm).most_common(1)[0][0]
    return CHANGE, f"with eps {asked.eps:g} {BREAKS[name]} in {len(harmed)} of {norms}"


def _reads_gains(asked: Subject) -> bool:
    """Whether norms are judged one by one: their rows or their gains are known."""
    return any(layer.sizes is None or layer.weight is not None for layer in asked.layers)


def _describe_judged(asked: Subject) -> str:
    """How many norms were judged, or by how many widths where nothing but those is known."""
    layers, of = asked.layers, ""
    if _reads_gains(asked):
        return f"{counted(len(layers), 'norm')} judged"
    sizes = list(dict.fromkeys(str(layer.hidden) for layer in layers))
    shown = ", ".join(sizes[:6]) + (" and others" if len(sizes) > 6 else "")
    if norms := sum(part.count for part in asked.model.parts):
        of = f" of {counted(norms, 'norm')}"
    unread = "; gains not read" if asked.model.name else ""
    return f"{counted(len(layers), 'width')} judged ({shown}){of}{unread}"


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
    return min(max(float(case.grid.round(middle)), lo), hi)
