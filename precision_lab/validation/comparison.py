# SPDX-License-Identifier: Apache-2.0
"""Two kernels side by side on the same probes: how often their bits agree, and how far they part.

Neither is taken for right: what is reported is where they differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.exceptions import InputError
from precision_lab.kernels.running import TIME_LIMIT, Claim, open_kernel
from precision_lab.validation.calls import default_calls
from precision_lab.validation.failures import value_text
from precision_lab.validation.probe_table import probes as known_probes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from precision_lab.arithmetic import Floats
    from precision_lab.kernels import Kernel
    from precision_lab.kernels.running import Outcome
    from precision_lab.norm import Inputs, Norm
    from precision_lab.numbers import Format
    from precision_lab.validation.calls import Call
    from precision_lab.validation.probe_table import Probe

    Execute = Callable[[Inputs], Outcome]


@dataclass(frozen=True)
class ProbeDifference:
    """How two kernels differ on one probe, or on all.

    Parameters
    ----------
    probe
        Its name.
    calls, unanswered
        Calls that both answered, and calls that one of them or both did not.
    outputs, equal
        Outputs of both, and how many of them are equal bit for bit; every NaN equals every other.
    one_sided
        Outputs that are NaN or infinite in one and not the same in the other.
    largest
        The largest difference of finite outputs, in ulp of the output format.
    where
        The call, the place and both outputs of the largest difference, or "".
    """

    probe: str
    calls: int
    unanswered: int
    outputs: int
    equal: int
    one_sided: int
    largest: float
    where: str = ""

    @property
    def share(self) -> float:
        """Of equal outputs; 1 where there are none."""
        return self.equal / self.outputs if self.outputs else 1.0


COUNTS = ("calls", "unanswered", "outputs", "equal", "one_sided")


@dataclass(frozen=True)
class Comparison:
    """Two kernels on the same probes.

    Parameters
    ----------
    first, second
        Their names.
    claim
        What both were asked for.
    rows
        By probe.
    errors
        What the kernels said where they did not answer, the first few.
    """

    first: str
    second: str
    claim: Claim
    rows: tuple[ProbeDifference, ...]
    errors: tuple[str, ...] = ()

    @property
    def total(self) -> ProbeDifference:
        """All probes together."""
        return _sum("all", self.rows)

    @property
    def sentence(self) -> str:
        """What came out, in one sentence."""
        all_ = self.total
        what = f"{self.first} and {self.second}"
        if not all_.outputs:
            why = f": {self.errors[0]}" if self.errors else ""
            return f"{what} cannot be compared, for no call was answered by both{why}."
        if all_.equal == all_.outputs and not all_.unanswered:
            of = f"{all_.calls} call{'s' if all_.calls > 1 else ''}"
            return f"{what} give the same bits: all {all_.outputs:,} outputs of {of}."
        parts = [f"{all_.equal:,} of {all_.outputs:,} outputs are equal, bit for bit"]
        if all_.largest:
            parts.append(f"the largest difference is {all_.largest:,.6g} ulp, at {all_.where}")
        if all_.one_sided:
            parts.append(f"{all_.one_sided:,} are NaN or infinite and not the same")
        if all_.unanswered:
            were = "calls were" if all_.unanswered > 1 else "call was"
            parts.append(f"{all_.unanswered} {were} not answered by both")
        return f"{what}: {'; '.join(parts)}."

    def to_dict(self) -> dict[str, Any]:
        """Names and numbers."""
        rows = [{**vars(row), "share": row.share} for row in (self.total, *self.rows)]
        return {
            "first": self.first,
            "second": self.second,
            "sentence": self.sentence,
            "settings": self.claim.to_dict(),
            "total": rows[0],
            "probes": rows[1:],
            "errors": list(self.errors),
        }


REPORTED_ERRORS = 5


def compare(
    first: Kernel | Callable[..., Any] | str,
    second: Kernel | Callable[..., Any] | str,
    *,
    norm: Norm | str | None = None,
    format: Format | str | None = None,
    weight_format: Format | str | None = None,
    output_format: Format | str | None = None,
    eps: float | Iterable[float] | None = None,
    weight_offset: float | None = None,
    hidden: Iterable[int] | None = None,
    rows: Iterable[int] | None = None,
    probes: Iterable[Probe | str] | None = None,
    seed: int = 1,
    framework: tuple[str, str] = ("numpy", "numpy"),
    device: tuple[str, str] = ("cpu", "cpu"),
    isolate: bool = False,
    time_limit: float = TIME_LIMIT,
) -> Comparison:
    """Set two kernels, or one on two devices, side by side on the same probes.

    Parameters
    ----------
    first, second
        Kernels, as `validate` takes them.
    norm, format, weight_format, output_format, eps, weight_offset, hidden, rows, probes, seed
        As for `validate`: what both are asked for.
    framework, device
        Of the one and of the other.
    isolate, time_limit
        As for `validate`.

    Raises
    ------
    InputError
        As for `validate`; or they compute different norms, or add different offsets to the weight.

    Examples
    --------
    >>> comparison = compare("late", "early", hidden=[64], probes=["normal"])
    >>> total = comparison.total
    >>> total.equal < total.outputs, total.largest
    (True, 1.0)
    """
    with (
        open_kernel(
            first, norm=norm, framework=framework[0], device=device[0], isolate=isolate,
            time_limit=time_limit,
        ) as a,
        open_kernel(
            second, norm=norm, framework=framework[1], device=device[1], isolate=isolate,
            time_limit=time_limit,
        ) as b,
    ):  # fmt: skip
        claimed = partial(
            Claim.of, format=format, weight_format=weight_format, output_format=output_format,
            eps=eps, weight_offset=weight_offset, seed=seed,
        )  # fmt: skip
        claim = claimed(a, norm=norm or a.norm or b.norm or None)
        other = claimed(b, norm=norm or b.norm or claim.norm)
        if other.norm.name != claim.norm.name:
            raise InputError(
                f"{a.name} computes the norm {claim.norm.name!r} and {b.name}"
                f" {other.norm.name!r}: compare kernels of one norm"
            )
        if other.weight_offset != claim.weight_offset:
            raise InputError(
                f"{a.name} adds {claim.weight_offset:g} to the weight and {b.name}"
                f" {other.weight_offset:g}: give the weight's offset to have it so for both"
            )
        fixed = [n for n in dict.fromkeys((a.declared.hidden, b.declared.hidden)) if n is not None]
        sizes = fixed if hidden is None and fixed else hidden
        return side_by_side(
            lambda inputs: a.run(inputs, claim),
            lambda inputs: b.run(inputs, claim),
            claim,
            default_calls(claim, hidden=sizes, rows=rows, chosen=probes),
            names=_distinct(a.name, b.name, device),
        )


def _distinct(first: str, second: str, devices: tuple[str, str]) -> tuple[str, str]:
    """Names that tell two kernels apart."""
    if first != second:
        return first, second
    if devices[0] != devices[1]:
        return f"{first} on {devices[0]}", f"{second} on {devices[1]}"
    return f"{first} (A)", f"{second} (B)"


def side_by_side(
    first: Execute,
    second: Execute,
    claim: Claim,
    calls: Iterable[Call],
    *,
    names: tuple[str, str],
) -> Comparison:
    """Make each call of both kernels and set their outputs side by side.

    Parameters
    ----------
    first, second
        From a call's inputs to the outcome.
    claim, calls
        What both claim, and the calls.
    names
        What to call them.
    """
    by_probe: dict[str, list[ProbeDifference]] = {}
    errors: dict[str, None] = {}
    for call in calls:
        outcomes = [one(call.inputs) for one in (first, second)]
        for name, outcome in zip(names, outcomes, strict=True):
            if outcome.y is None:
                errors.setdefault(_error(name, outcome))
        a, b = outcomes
        row = (
            ProbeDifference(call.probe, 0, 1, 0, 0, 0, 0.0)
            if a.y is None or b.y is None
            else _difference(call, a.y, b.y, claim)
        )
        by_probe.setdefault(call.probe, []).append(row)
    place = {name: at for at, name in enumerate(known_probes)}
    in_order = sorted(by_probe, key=lambda name: place.get(name, len(place)))
    rows = tuple(_sum(probe, by_probe[probe]) for probe in in_order)
    return Comparison(*names, claim, rows, tuple(errors)[:REPORTED_ERRORS])


def _difference(call: Call, a: Floats, b: Floats, claim: Claim) -> ProbeDifference:
    same = (a.view(np.int64) == b.view(np.int64)) | (np.isnan(a) & np.isnan(b))
    finite = np.isfinite(a) & np.isfinite(b)
    apart = np.zeros(a.shape)
    apart[finite] = np.abs(claim.output_format.distance(a[finite], b[finite]))
    largest = float(apart.max()) if apart.size else 0.0
    where = ""
    if largest:
        i, j = np.unravel_index(int(apart.argmax()), apart.shape)
        values = f"{value_text(float(a[i, j]))} and {value_text(float(b[i, j]))}"
        where = f"{call}: row {i}, element {j} is {values}"
    one_sided = int((~same & ~finite).sum())
    return ProbeDifference(call.probe, 1, 0, a.size, int(same.sum()), one_sided, largest, where)


def _sum(probe: str, rows: Sequence[ProbeDifference]) -> ProbeDifference:
    """Several rows as one: the place is the first of the worst."""
    counts = {name: sum(getattr(row, name) for row in rows) for name in COUNTS}
    worst = max(rows, key=lambda row: row.largest, default=None)
    largest, where = (worst.largest, worst.where) if worst else (0.0, "")
    return ProbeDifference(probe, **counts, largest=largest, where=where)


def _error(name: str, outcome: Outcome) -> str:
    if outcome.raised:
        return f"{name} raised {outcome.raised}: {outcome.message}"
    return f"{name}: {outcome.findings[-1][1] if outcome.findings else 'no outputs'}"
