# SPDX-License-Identifier: Apache-2.0
"""What there is to say about an eps: one row a code, each with the sentence that gives numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from precision_lab.eps.evidence import counted
from precision_lab.eps.layers import (
    AMPLIFIES,
    DEPARTS,
    LOSES,
    OVERFLOWS,
    RECIPROCAL,
    SHRINKS,
    VANISHES,
    ZERO_ROW,
)
from precision_lab.eps.row_sizes import SHOWN, describe_safe_rms
from precision_lab.plan import EPS_PLACES
from precision_lab.table import Table

if TYPE_CHECKING:
    from precision_lab.eps.layers import LayerAdvice
    from precision_lab.eps.subject import Subject

ROUNDED = 2.0**-24
"""A relative change that float32 makes too is not reported."""

HARM, NOTE = "harm", "note"
PADDING = {VANISHES, ZERO_ROW, RECIPROCAL}
"""Harms that come to rows of zeros whatever the size of the others."""


@dataclass(frozen=True)
class Finding:
    """A sentence, its row of `codes`, its severity, and its norm (None: of the model)."""

    code: str
    severity: str
    layer: str | None
    text: str


Statement: TypeAlias = tuple[str, str] | None
"""Severity and sentence; None where there is nothing to say."""
OfLayer: TypeAlias = Callable[["LayerAdvice", "Subject"], Statement]
OfLayers: TypeAlias = Callable[[Sequence["LayerAdvice"], "Subject"], Statement]
OfModel: TypeAlias = Callable[["Subject"], Statement]


@dataclass(frozen=True)
class FindingCode:
    """A kind of finding: its code, and what it says of a norm, of all norms, or of the model."""

    name: str
    of_layer: OfLayer | None = None
    of_layers: OfLayers | None = None
    of_model: OfModel | None = None


def findings_of(layers: Sequence[LayerAdvice], subject: Subject) -> tuple[Finding, ...]:
    """All there is to say, harm first; what all layers share is said once, of the model."""
    findings: list[Finding] = []
    for code in codes.values():
        statements = [
            code.of_model(subject) if code.of_model is not None else None,
            code.of_layers(layers, subject) if code.of_layers is not None else None,
        ]
        findings += [Finding(code.name, one[0], None, one[1]) for one in statements if one]
        if code.of_layer is None:
            continue
        new = [Finding(code.name, statement[0], layer.layer, statement[1]) for layer in layers
               if (statement := code.of_layer(layer, subject)) is not None]  # fmt: skip
        if len(new) == len(layers) > 1 and len({(one.severity, one.text) for one in new}) == 1:
            new = [replace(new[0], layer=None)]
        findings += new
    return tuple(sorted(findings, key=lambda finding: finding.severity != HARM))


def by_code(findings: Iterable[Finding]) -> Iterator[tuple[Finding, int]]:
    """The first finding of each severity and code, and how many more there are of it."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.severity, finding.code), []).append(finding)
    return ((first, len(others)) for first, *others in groups.values())


def _vanishes(layer: LayerAdvice, subject: Subject) -> Statement:
    if not layer.vanishes:
        return None
    return HARM if subject.new or layer.harm else NOTE, (
        f"eps {subject.eps:g} becomes 0 in {subject.adding_format}, whose least value above 0 is "
        f"{subject.least:g}"
    )


def _rounded(layer: LayerAdvice, subject: Subject) -> Statement:
    eps, becomes = subject.eps, layer.effective_eps
    if not eps or becomes is None or layer.vanishes:
        return None
    change = abs(becomes - eps) / eps
    if change <= ROUNDED:
        return None
    # Where eps is added elsewhere than inside the root, that departs, whatever the rounding does.
    departs = DEPARTS in layer.harm and subject.settled.eps_place == "inside"
    adding = subject.adding_format
    text = f"eps {eps:g} becomes {becomes:.6g} in {adding}, changed by {change:.2g} of it"
    if departs:
        text += f", which moves outputs by up to {layer.departure:.3g} times half an ulp"
    return HARM if departs else NOTE, text


def _departs(layer: LayerAdvice, subject: Subject) -> Statement:
    rounded = _rounded(layer, subject)
    if DEPARTS not in layer.harm or (rounded is not None and rounded[0] == HARM):
        return None
    return HARM, (
        f"the plan adds eps {layer.effective_eps:g} {_where(subject)}: outputs move by up to "
        f"{layer.departure:.3g} times half an ulp from the function with eps {subject.eps:g}"
    )


def _where(subject: Subject) -> str:
    place = subject.settled.eps_place
    return {"inside": "inside the root", "missing": "nowhere"}.get(place, f"as {place!r} has it")


def _absorbed(layer: LayerAdvice, subject: Subject) -> Statement:
    if not layer.absorbed or layer.vanishes or not layer.effective_eps:
        return None
    which = "rows" if layer.absorbed_rms is None else f"rows of RMS above {layer.absorbed_rms:.3g}"
    return NOTE, (
        f"normal: {which} ignore eps {layer.effective_eps:g} in {subject.adding_format}, for half "
        f"an ulp of their mean square is larger; here {layer.absorbed} of {_rows_judged(layer)} do"
    )


def _dominates(layer: LayerAdvice, _subject: Subject) -> Statement:
    if not layer.dominated or layer.shrink is None:
        return None
    return NOTE, (
        f"eps {layer.effective_eps:g} is larger than the mean square of {layer.dominated} of "
        f"{_rows_judged(layer)}: it shrinks outputs by up to {100 * layer.shrink[2]:.3g} %"
    )


def _shrinks(layer: LayerAdvice, subject: Subject) -> Statement:
    if not subject.new or not layer.shrunk or layer.shrink is None:
        return None
    text = (
        f"eps {layer.effective_eps:g} shrinks {layer.shrunk} of {_rows_judged(layer)} by more than "
        f"half an ulp of {subject.output_format} ({100 * layer.half_ulp:.3g} %), by up to "
        f"{100 * layer.shrink[2]:.3g} %; the median row by {100 * layer.shrink[0]:.3g} %"
    )
    return HARM if SHRINKS in layer.harm else NOTE, text


def _amplifies(layer: LayerAdvice, subject: Subject) -> Statement:
    if AMPLIFIES not in layer.harm:
        return None
    if layer.amplification is None:
        return HARM, "nothing bounds how noise in a row near zero grows"
    return HARM, (
        f"noise in a row near zero grows by {layer.amplification:.4g}, more than "
        f"{subject.amplification:g}"
    )


def _reciprocal(layer: LayerAdvice, subject: Subject) -> Statement:
    if not layer.reciprocal_overflows or layer.vanishes:
        return None
    eps = layer.effective_eps
    place = EPS_PLACES[subject.plan.eps_place]
    root = f"{eps:g}" if place.denominator == "eps" else f"√{eps:g}"
    root = f"(√{eps:g} + {root})" if place.denominator and place.radicand else root
    return HARM if layer.harm else NOTE, (
        f"1/{root} is past the largest value of {subject.settled.reciprocal_format}"
    )


def _zero_row(layer: LayerAdvice, subject: Subject) -> Statement:
    if layer.zero_row not in ("NaN", "inf"):
        return None
    rows = "zeros or of one value" if subject.model.norm == "layer" else "zeros"
    return HARM if layer.harm else NOTE, (
        f"a row of {rows} (padding) gives {layer.zero_row} with eps {subject.eps:g}, which the plan"
        f" makes {layer.effective_eps:g}"
    )


def _rows_past_range(layer: LayerAdvice, subject: Subject) -> Statement:
    if not layer.row_overflows:
        return None
    into = "infinity" if subject.format.infinities else "NaN"
    whose = "they enter" if layer.row_overflows > 1 else "it enters"
    return HARM, (
        f"{layer.row_overflows} of {_rows_run(layer)} "
        f"reach{'' if layer.row_overflows > 1 else 'es'} {layer.reach:.4g}, "
        f"past the largest value of {subject.format.name}, "
        f"{subject.format.largest:g}: {whose} the norm as {into}, whatever eps is"
    )


def _rows_run(layer: LayerAdvice) -> str:
    """The rows that were run through the plan, in words."""
    return counted(layer.emulated, "sample row" if layer.assumed else "row")


def _rows_judged(layer: LayerAdvice) -> str:
    """The rows that were judged, in words."""
    return counted(layer.rows, "assumed size" if layer.assumed else "row")


def _squares(layer: LayerAdvice, subject: Subject) -> Statement:
    if not layer.square_overflows:
        return None
    return HARM, (
        f"squares of {layer.square_overflows} of {_rows_run(layer)} overflow in "
        f"{subject.settled.square_format}, whatever eps is"
    )


def _sums(layer: LayerAdvice, subject: Subject) -> Statement:
    if layer.sum_overflows:
        return HARM, (
            f"the sum of squares of {layer.sum_overflows} of {_rows_run(layer)} overflows "
            f"in {subject.settled.sum_format}, whatever eps is"
        )
    if OVERFLOWS in layer.harm:
        return HARM, f"eps {subject.eps:g} carries the mean square past {subject.adding_format}"
    return None


def _lost(layer: LayerAdvice, subject: Subject) -> Statement:
    if LOSES not in layer.harm:
        return None
    return HARM, (
        f"{counted(layer.lost)} give{'s' if layer.lost == 1 else ''} NaN or infinity with eps "
        f"{subject.eps:g}, where the function itself stays finite"
    )


def _row_sizes(layers: Sequence[LayerAdvice], subject: Subject) -> Statement:
    """Where the verdict turns, in the norms that decide."""
    if subject.eps is None:
        return None
    safe = [(layer.safe_rms, layer) for layer in layers if layer.safe_rms is not None]
    if len(safe) < len(layers):
        name = next(layer.layer for layer in layers if layer.safe_rms is None)
        return NOTE, f"normal rows of every RMS depart or are lost in {name}"
    (low, _), smallest = max(safe, key=lambda pair: pair[0][0])
    (_, high), largest = min(safe, key=lambda pair: pair[0][1])
    if low > high:
        return NOTE, (
            f"no RMS suits all norms: {smallest.layer} needs rows above {low:.3g}, {largest.layer} "
            f"normal rows up to {high:.3g}"
        )
    aside = PADDING & {name for layer in layers for name in layer.harm}
    text = "rows of zeros aside, " if aside else ""
    text += describe_safe_rms((low, high), new=subject.new)
    deciding = [one.layer for one, end in ((smallest, low), (largest, high < SHOWN)) if end]
    names = list(dict.fromkeys(deciding))
    if len({pair[0] for pair in safe}) > 1 and names:
        text += f"; {' and '.join(names)} decide{'s' if len(names) == 1 else ''}"
    seen = [(layer.rms[0], layer.layer) for layer in layers if layer.rms and not layer.assumed]
    if low and seen:
        least, name = min(seen)
        text += f"; the smallest row seen has RMS {least:.3g} ({name})"
    return NOTE, text


def _default(subject: Subject) -> Statement:
    model = subject.model
    parts = []
    if model.released_eps not in (None, model.eps):
        parts.append(f"{model.released_name} was released with eps {model.released_eps:g}")
    if model.default_eps not in (None, model.eps):
        kind = model.model_type or "its class"
        parts.append(f"{kind} takes {model.default_eps:g} where a config names none")
    if model.eps is None or not parts:
        return None
    return NOTE, f"{', and '.join(parts)}; this one has {model.eps:g}"


def _plan_assumed(subject: Subject) -> Statement:
    if not subject.plan_assumed:
        return None
    return NOTE, (
        f"how the model computes its norms is not known: plan {subject.plan.name} is assumed; "
        "say --plan if it is another"
    )


def _format_assumed(subject: Subject) -> Statement:
    if not subject.format_assumed:
        return None
    of = "the model names no dtype" if subject.model.name else "no format is named"
    return NOTE, f"{of}: {subject.format.name} is assumed; say --format if it is another"


def _missing(subject: Subject) -> Statement:
    model = subject.model
    if model.eps is not None or subject.new or subject.eps is None:
        return None
    text = f"the config names no eps: {subject.eps:g} is {subject.eps_from}"
    if model.released_eps not in (None, subject.eps):
        text += f"; {model.released_name} was released with {model.released_eps:g}"
    return NOTE, text


def _notes(subject: Subject) -> Statement:
    return (NOTE, "; ".join(subject.model.notes)) if subject.model.notes else None


codes: Table[FindingCode] = Table(
    "code of a finding",
    [
        FindingCode("model-note", of_model=_notes),
        FindingCode("eps-vanishes", _vanishes),
        FindingCode("eps-rounded", _rounded),
        FindingCode("eps-departs", _departs),
        FindingCode("eps-absorbed", _absorbed),
        FindingCode("eps-dominates", _dominates),
        FindingCode("eps-shrinks", _shrinks),
        FindingCode("eps-amplifies", _amplifies),
        FindingCode("reciprocal-overflows", _reciprocal),
        FindingCode("zero-row-nan", _zero_row),
        FindingCode("rows-lost", _lost),
        FindingCode("row-overflows", _rows_past_range),
        FindingCode("square-overflows", _squares),
        FindingCode("sum-overflows", _sums),
        FindingCode("row-sizes", of_layers=_row_sizes),
        FindingCode("plan-assumed", of_model=_plan_assumed),
        FindingCode("format-assumed", of_model=_format_assumed),
        FindingCode("default-differs-from-release", of_model=_default),
        FindingCode("missing-eps", of_model=_missing),
        FindingCode("readings-differ"),
    ],
)
