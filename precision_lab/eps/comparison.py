# SPDX-License-Identifier: Apache-2.0
"""Two versions of one model beside each other: what a port's eps, gains and plan cost, in words."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from precision_lab.canonical_json import null, plain
from precision_lab.eps.evidence import SAMPLES
from precision_lab.eps.port_gains import ROUNDED
from precision_lab.eps.row_sizes import describe_safe_rms

if TYPE_CHECKING:
    from precision_lab.eps.port_gains import GainChange
    from precision_lab.eps.port_parts import PartChange


@dataclass(frozen=True, kw_only=True)
class Quantiles:
    """The size of differences: 50 %, 99 % and the largest; None where nothing could be measured."""

    p50: float | None
    p99: float | None
    largest: float | None

    def __str__(self) -> str:
        """In words."""
        numbers = (self.p50, self.p99, self.largest)
        texts = ("none" if number is None else f"{number:.3g}" for number in numbers)
        return "median {}, 99 % {}, largest {}".format(*texts)


@dataclass(frozen=True, kw_only=True)
class PortLayer:
    """What a port's eps costs in one norm.

    Parameters
    ----------
    ulp
        Between the two exact functions, in ulp of the output format at the original's value.
    relative
        The same beside the original's normalised value, before the bias.
    emulated
        Between the outputs of the two plans, in values of the output format.
    lost, lost_in_both
        Rows in which only the port's outputs hold NaN or infinity, and in which both have such.
    gains
        What became of the gains; None where those of one side are not known.
    """

    layer: str
    rows: int
    ulp: Quantiles
    relative: Quantiles
    emulated: Quantiles
    lost: int
    lost_in_both: int
    gains: GainChange | None = None


@dataclass(frozen=True, kw_only=True)
class EpsComparison:
    """Two versions of one model.

    Parameters
    ----------
    a, b
        The original and its port.
    kept
        Whether both have one eps.
    harmless
        Whether what the port's plan adds moves no exact output by more than half an ulp (decided
        exactly), nor what its gains do (in float64), and no row is lost that the original keeps.
    eps, effective
        Of each, as configured, and what its plan makes of it.
    plans, plans_assumed
        How each is computed, and whether that is assumed, for nothing tells it.
    offsets, gains
        What each adds to its weights; what became of the gains, in sentences, none where those of
        one side are not known.
    safe_rms
        The least and the largest root mean square of rows that bear the port's eps, in the norm
        that bears least, as of `row_sizes.safe_rms`; gains aside.
    ulp, relative, emulated, lost, lost_in_both
        As of `PortLayer`, over all norms.
    layers
        By norm, the largest difference first.
    evidence
        What was compared, in words.
    changes
        What differs between the parts of the two: kind, eps, width, gain offset, plan. `kept`,
        `harmless`, `lost`, `safe_rms` and `layers` are of all parts, the numbers above of the main
        one's norms.
    others, label
        The same of norms beside the main ones, without their `layers`; and what they are.
    """

    a: str
    b: str
    kept: bool
    harmless: bool
    eps: tuple[float, float]
    effective: tuple[float, float]
    plans: tuple[str, str]
    plans_assumed: tuple[bool, bool]
    offsets: tuple[float, float]
    gains: tuple[str, ...]
    safe_rms: tuple[float, float] | None
    format: str
    output_format: str
    assumed: bool
    ulp: Quantiles
    relative: Quantiles
    emulated: Quantiles
    lost: int
    lost_in_both: int
    layers: tuple[PortLayer, ...]
    evidence: str
    changes: tuple[PartChange, ...] = ()
    others: tuple[EpsComparison, ...] = ()
    label: str = ""

    @property
    def gains_kept(self) -> bool:
        """Whether all gains and biases that are known on both sides are kept, or rounded alone."""
        known = [layer.gains for layer in self.layers if layer.gains is not None]
        return all(one.kept or (one.kind == ROUNDED and not one.bias) for one in known)

    def to_json(self) -> str:
        """All of it as strict JSON, in which NaN and infinity are null."""
        return json.dumps(plain(self, lacking=null), ensure_ascii=False, allow_nan=False)

    def __str__(self) -> str:
        """In words."""
        lines = [
            self._describe_verdict(),
            f"added as {self.effective[0]:.9g} and {self.effective[1]:.9g}",
            *self._describe_plans(), *self._describe_changes(), *self.gains,
        ]  # fmt: skip
        rows = f" (of {SAMPLES} sample rows a norm)" if self.assumed else ""
        lines += [
            f"{what}: {quantiles}{rows}"
            for what, quantiles in (
                (f"exact outputs differ, in ulp of {self.output_format}", self.ulp),
                ("relative", self.relative),
                ("emulated outputs differ, in representable steps (large near 0)", self.emulated),
            )
        ]
        lines += [each.describe_briefly() for each in self.others if each.ulp.largest]
        if self.lost:
            lines.append(f"{_rows(self.lost)} NaN or infinity in the port alone")
        if self.lost_in_both:
            lines.append(f"{_rows(self.lost_in_both)} NaN or infinity in both")
        harm = "harmless on these rows" if self.harmless else "not harmless on these rows"
        if self.harmless and self.lost_in_both:
            harm = "the port adds no harm on these rows, and both lose some"
        lines.append(harm)
        if self.safe_rms is not None:
            lines.append(f"row sizes: {describe_safe_rms(self.safe_rms)}, as far as eps goes")
        return "\n".join([*lines, f"evidence: {self.evidence}"])

    def _describe_verdict(self) -> str:
        """Whether eps was kept: that of the main norms, or of those where it was not."""
        names = self.a or "one", self.b or "the other"
        apart = [each for each in self.others if not each.kept]
        first, second = self.eps
        if first == second and apart:
            texts = (
                f"{each.label}: {each.eps[0]:g} in {names[0]}, {each.eps[1]:g} in {names[1]}"
                for each in apart
            )
            return f"eps changed in {'; '.join(texts)}"
        if first == second and not self.kept:
            return f"norms changed; eps {first:g} in {names[0]} and {names[1]}"
        verdict = "eps kept" if self.kept else "eps changed"
        return f"{verdict}: {first:g} in {names[0]}, {second:g} in {names[1]}"

    def _describe_changes(self) -> list[str]:
        """All that differs, but for the eps that the first line speaks of."""
        return [
            str(each)
            for each in self.changes
            if self.others or each.field != "eps" or (each.a, each.b) != self.eps
        ]

    def describe_briefly(self) -> str:
        """How far outputs of norms beside the main ones differ."""
        ulp, relative = self.ulp.largest, self.relative.largest
        return (
            f"{self.label}: exact outputs differ by up to {ulp:.3g} ulp of {self.output_format}, "
            f"relative {relative:.3g}; {'' if self.harmless else 'not '}harmless"
        )

    def _describe_plans(self) -> list[str]:
        """Plans and offsets, where they differ or are assumed."""
        lines = []
        if len(set(self.plans)) > 1 or any(self.plans_assumed):
            first, second = (
                f"{plan}{' (assumed)' if assumed else ''}"
                for plan, assumed in zip(self.plans, self.plans_assumed, strict=True)
            )
            lines.append(f"computed as plan {first}, the port as {second}")
        if len(set(self.offsets)) > 1:
            first, second = (f"{offset:g} + w" if offset else "w" for offset in self.offsets)
            line = f"the gain is {first}, in the port {second}"
            if not self.gains:
                line += ": right only if its weights were converted; give weights of both"
            lines.append(line)
        return lines


def _rows(count: int) -> str:
    return "1 row gives" if count == 1 else f"{count} rows give"
