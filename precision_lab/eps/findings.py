# SPDX-License-Identifier: Apache-2.0
"""What is told about an eps: one row a code, each with the sentence that says it with numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from precision_lab.eps.evidence import counted
from precision_lab.eps.layers import AMPLIFIES, DEPARTS, LOSES, OVERFLOWS, SHRINKS
from precision_lab.table import Table

if TYPE_CHECKING:
    from precision_lab.eps.layers import LayerAdvice
    from precision_lab.eps.subject import Subject

ROUNDED = 2.0**-24
"""A relative change that float32 makes too is not told."""

HARM, NOTE = "harm", "note"


@dataclass(frozen=True)
class Finding:
    """One thing that is told.

    Parameters
    ----------
    code
        The name of a row of `codes`.
    severity
        ``"harm"`` or ``"note"``.
    layer
        The norm that it is about, None for the model.
    text
        One sentence.
    """

    code: str
    severity: str
    layer: str | None
    text: str


@dataclass(frozen=True)
class Told:
    """What there is to tell, before a code is put to it: severity and text."""

    severity: str
    text: str


OfLayer: TypeAlias = Callable[["LayerAdvice", "Subject"], "Told | None"]
OfModel: TypeAlias = Callable[["Subject"], "Told | None"]


@dataclass(frozen=True)
class Code:
    """A kind of finding.

    Parameters
    ----------
    name, meaning
        The code, and what it says.
    of_layer, of_model
        What there is to tell of a norm, or of the model; None for nothing.
    """

    name: str
    meaning: str
    of_layer: OfLayer | None = None
    of_model: OfModel | None = None


def findings_of(layers: Sequence[LayerAdvice], subject: Subject) -> tuple[Finding, ...]:
    """All there is to tell, harm first; what all layers share is told once, of the model.

    Parameters
    ----------
    layers
        What eps does in each norm.
    subject
        The model and what it runs in.
    """
    found: list[Finding] = []
    for code in codes.values():
        if code.of_model is not None and (told := code.of_model(subject)) is not None:
            found.append(Finding(code.name, told.severity, None, told.text))
        if code.of_layer is None:
            continue
        each = [(layer.layer, told) for layer in layers
                if (told := code.of_layer(layer, subject)) is not None]  # fmt: skip
        if len(each) == len(layers) > 1 and len({told for _, told in each}) == 1:
            found.append(Finding(code.name, each[0][1].severity, None, each[0][1].text))
        else:
            found += [Finding(code.name, told.severity, name, told.text) for name, told in each]
    return tuple(sorted(found, key=lambda finding: finding.severity != HARM))


def by_code(findings: Iterable[Finding]) -> Iterator[tuple[Finding, int]]:
    """The first finding of each severity and code, and how many more there are of it."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.severity, finding.code), []).append(finding)
    return ((first, len(others)) for first, *others in groups.values())


def _adding(subject: Subject) -> str:
    return subject.adding_format


def _vanishes(layer: LayerAdvice, subject: Subject) -> Told | None:
    if not layer.vanishes:
        return None
    return Told(
        HARM if subject.new or layer.harm else NOTE,
        f"eps {subject.eps:g} becomes 0 in {_adding(subject)}, whose least value above 0 is "
        f"{subject.least:g}",
    )


def _rounded(layer: LayerAdvice, subject: Subject) -> Told | None:
    eps, becomes = subject.eps, layer.effective_eps
    if not eps or becomes is None or layer.vanishes:
        return None
    change = abs(becomes - eps) / eps
    if change <= ROUNDED:
        return None
    # Where eps is added elsewhere than inside the root, that departs, whatever the rounding does.
    departs = DEPARTS in layer.harm and subject.settled.eps_place == "inside"
    told = f"eps {eps:g} becomes {becomes:.6g} in {_adding(subject)}, changed by {change:.2g} of it"
    if departs:
        told += f", which moves outputs by up to {layer.departure:.3g} times half an ulp"
    return Told(HARM if departs else NOTE, told)


def _departs(layer: LayerAdvice, subject: Subject) -> Told | None:
    rounded = _rounded(layer, subject)
    if DEPARTS not in layer.harm or (rounded is not None and rounded.severity == HARM):
        return None
    return Told(
        HARM,
        f"the plan adds eps {layer.effective_eps:g} {_where(subject)}: outputs move by up to "
        f"{layer.departure:.3g} times half an ulp from the function with eps {subject.eps:g}",
    )


def _where(subject: Subject) -> str:
    place = subject.settled.eps_place
    return {"inside": "inside the root", "missing": "nowhere"}.get(place, f"as {place!r} has it")


def _absorbed(layer: LayerAdvice, subject: Subject) -> Told | None:
    if not layer.absorbed or layer.vanishes or not layer.effective_eps:
        return None
    return Told(
        NOTE,
        f"in {layer.absorbed} of {_judged(layer)} eps {layer.effective_eps:g} is below half "
        f"an ulp of the mean square, and adding it in {_adding(subject)} changes nothing",
    )


def _dominates(layer: LayerAdvice, _subject: Subject) -> Told | None:
    if not layer.dominated or layer.shrink is None:
        return None
    return Told(
        NOTE,
        f"eps {layer.effective_eps:g} is larger than the mean square of {layer.dominated} of "
        f"{_judged(layer)}: it shrinks outputs by up to {100 * layer.shrink[2]:.3g} %",
    )


def _shrinks(layer: LayerAdvice, subject: Subject) -> Told | None:
    if SHRINKS not in layer.harm or layer.shrink is None:
        return None
    return Told(
        HARM,
        f"eps {layer.effective_eps:g} shrinks the median row by {layer.shrink[0]:.3g}, more than "
        f"half an ulp of {subject.output_format} ({layer.half_ulp:.3g})",
    )


def _amplifies(layer: LayerAdvice, subject: Subject) -> Told | None:
    if AMPLIFIES not in layer.harm:
        return None
    if layer.amplification is None:
        return Told(HARM, "nothing bounds how noise in a row near zero grows")
    return Told(
        HARM,
        f"noise in a row near zero grows by {layer.amplification:.4g}, more than "
        f"{subject.amplification:g}",
    )


def _reciprocal(layer: LayerAdvice, subject: Subject) -> Told | None:
    if not layer.reciprocal_overflows or layer.vanishes:
        return None
    eps = layer.effective_eps
    root = {"outside": f"{eps:g}", "both": f"(√{eps:g} + {eps:g})"}.get(
        subject.plan.eps_place, f"√{eps:g}"
    )
    return Told(
        HARM if layer.harm else NOTE,
        f"1/{root} is past the largest value of {subject.settled.reciprocal_format}",
    )


def _zero_row(layer: LayerAdvice, subject: Subject) -> Told | None:
    if layer.zero_row not in ("NaN", "inf"):
        return None
    rows = "zeros or of one value" if subject.norm == "layer" else "zeros"
    return Told(
        HARM if layer.harm else NOTE,
        f"a row of {rows} (padding) gives {layer.zero_row} with eps {subject.eps:g}, which the plan"
        f" makes {layer.effective_eps:g}",
    )


def _past(layer: LayerAdvice, subject: Subject) -> Told | None:
    if not layer.row_overflows:
        return None
    into = "infinity" if subject.format.infinities else "NaN"
    whose = "they enter" if layer.row_overflows > 1 else "it enters"
    return Told(
        HARM,
        f"{layer.row_overflows} of {_run(layer)} reach{'' if layer.row_overflows > 1 else 'es'} "
        f"{layer.reach:.4g}, past the largest value of {subject.format.name}, "
        f"{subject.format.largest:g}: {whose} the norm as {into}, whatever eps is",
    )


def _run(layer: LayerAdvice) -> str:
    """The rows that were run through the plan, in words."""
    return counted(layer.emulated, "sample row" if layer.assumed else "row")


def _judged(layer: LayerAdvice) -> str:
    """The rows that were judged, in words."""
    return counted(layer.rows, "assumed size" if layer.assumed else "row")


def _squares(layer: LayerAdvice, subject: Subject) -> Told | None:
    if not layer.square_overflows:
        return None
    return Told(
        HARM,
        f"squares of {layer.square_overflows} of {_run(layer)} overflow in "
        f"{subject.settled.square_format}, whatever eps is",
    )


def _sums(layer: LayerAdvice, subject: Subject) -> Told | None:
    if layer.sum_overflows:
        return Told(
            HARM,
            f"the sum of squares of {layer.sum_overflows} of {_run(layer)} overflows "
            f"in {subject.settled.sum_format}, whatever eps is",
        )
    if OVERFLOWS in layer.harm:
        return Told(HARM, f"eps {subject.eps:g} carries the mean square past {_adding(subject)}")
    return None


def _lost(layer: LayerAdvice, subject: Subject) -> Told | None:
    if LOSES not in layer.harm:
        return None
    return Told(
        HARM,
        f"{counted(layer.lost)} give{'s' if layer.lost == 1 else ''} NaN or infinity with eps "
        f"{subject.eps:g}, where the function itself stays finite",
    )


def _default(subject: Subject) -> Told | None:
    default, released, eps = subject.default_eps, subject.released_eps, subject.configured_eps
    if eps is None:
        return None
    told = []
    if released is not None and released != eps:
        told.append(f"{subject.released_name} was released with eps {released:g}")
    if default is not None and default != eps:
        kind = subject.model_type or "its class"
        told.append(f"{kind} takes {default:g} where a config names none")
    if not told:
        return None
    return Told(NOTE, f"{', and '.join(told)}; this one has {eps:g}")


def _missing(subject: Subject) -> Told | None:
    if subject.configured_eps is not None or subject.new:
        return None
    if subject.eps is None:
        return None
    told = f"the config names no eps: {subject.eps:g} is {subject.eps_from}"
    if subject.released_eps is not None and subject.released_eps != subject.eps:
        told += f"; {subject.released_name} was released with {subject.released_eps:g}"
    return Told(NOTE, told)


codes: Table[Code] = Table(
    "code of a finding",
    [
        Code("eps-vanishes", "eps becomes 0 in the format that adds it", _vanishes),
        Code("eps-rounded", "eps becomes another number in the format that adds it", _rounded),
        Code("eps-departs", "the plan computes another function than the configured one", _departs),
        Code("eps-absorbed", "the mean square swallows eps", _absorbed),
        Code("eps-dominates", "eps is larger than the mean square", _dominates),
        Code("eps-shrinks", "a new design's eps shrinks its median row", _shrinks),
        Code("eps-amplifies", "a new design's eps lets noise grow too far", _amplifies),
        Code("reciprocal-overflows", "1/√eps is past the range", _reciprocal),
        Code("zero-row-nan", "a row of zeros gives no number", _zero_row),
        Code("rows-lost", "rows give NaN or infinity", _lost),
        Code("row-overflows", "rows are past the range of the format", _past),
        Code("square-overflows", "squares overflow whatever eps is", _squares),
        Code("sum-overflows", "sums overflow", _sums),
        Code("default-differs-from-release", "the class takes another eps", of_model=_default),
        Code("missing-eps", "the config names no eps", of_model=_missing),
    ],
)
