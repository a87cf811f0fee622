# SPDX-License-Identifier: Apache-2.0
"""What is said of a kernel."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.versions import __version__

if TYPE_CHECKING:
    from precision_lab.norms import Inputs
    from precision_lab.validate.settings import Settings

SHOWN = 8
"""Values of a row that are told in words."""

TOLD = 4
"""Failures that are told in words."""


@dataclass(frozen=True)
class Wrong:
    """One wrong output.

    Parameters
    ----------
    row, element
        Its place.
    low, high
        The least and the largest sound output there.
    got
        The output.
    """

    row: int
    element: int
    low: float
    high: float
    got: float

    def __str__(self) -> str:
        return f"row {self.row}, element {self.element} is {told(self.got)}, right is {self.right}"

    @property
    def right(self) -> str:
        """The sound outputs in words."""
        if self.low == self.high:
            return told(self.low)
        return f"{hexed(self.low)} to {told(self.high)}"

    def to_dict(self) -> dict[str, Any]:
        """Places, and values in hex."""
        values = {name: hexed(getattr(self, name)) for name in ("low", "high", "got")}
        return {"row": self.row, "element": self.element, **values}


@dataclass(frozen=True, kw_only=True, eq=False)
class Failure:
    """One thing that is wrong.

    Parameters
    ----------
    kind
        ``value``, ``root`` (no one r explains a row), ``special`` (rows with NaN or infinities),
        ``plan``, ``raised``, ``shape``, ``type``, ``modified``, ``stdout``, ``error-state``,
        ``flush``, ``property`` or ``nothing`` (no call was judged).
    probe
        The probe's name, or "".
    message
        One sentence.
    call
        The call in words.
    count, total
        How many of its outputs are wrong, of how many.
    worst
        The output that is farthest from what is sound; None where no one output is wrong.
    inputs
        Smaller inputs on which the kernel fails too.
    small
        What is wrong on those: where, the sound outputs there, and the kernel's.
    """

    kind: str
    probe: str
    message: str
    call: str = ""
    count: int = 0
    total: int = 0
    worst: Wrong | None = None
    inputs: Inputs | None = None
    small: Wrong | None = None

    def __str__(self) -> str:
        lines = [f"{self.call or self.probe or self.kind}: {self.message}"]
        if self.inputs is not None and self.inputs.x.size:
            few = "x".join(map(str, self.inputs.x.shape))
            lines.append(f"    made small: {few}, eps {self.inputs.eps:g}")
            lines.append(f"    x      {spelt(self.inputs.x)}")
            given = (("weight", self.inputs.weight), ("bias", self.inputs.bias))
            lines += [f"    {name:6} {spelt(array)}" for name, array in given if array is not None]
            if self.small is not None:
                lines.append(f"    {self.small}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Names, numbers and lists; floats in hex beside decimals."""
        known: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("kind", "probe", "message", "call", "count", "total")
        }
        known["worst"] = None if self.worst is None else self.worst.to_dict()
        known["small"] = None if self.small is None else self.small.to_dict()
        known["inputs"] = None if self.inputs is None else _arrays(self.inputs)
        return known


@dataclass(frozen=True)
class Power:
    """What a run would have seen in rows of one size.

    Parameters
    ----------
    hidden
        The size.
    root
        The smallest relative error of r.
    element
        The smallest relative error of an element, in the median; NaN where none was judged.
    """

    hidden: int
    root: float
    element: float


@dataclass(frozen=True)
class Spread:
    """Signed errors of one probe, in ulp of the output format.

    Parameters
    ----------
    probe
        Its name.
    count
        Outputs measured.
    low, high, mean
        The least, the largest and the mean.
    """

    probe: str
    count: int
    low: float
    high: float
    mean: float


@dataclass(frozen=True)
class Property:
    """A property that was asked for, or comes for free.

    Parameters
    ----------
    name
        Its name.
    holds
        Whether the kernel has it; None for figures that are only measured.
    told
        One sentence.
    figures
        What was measured, by name.
    """

    name: str
    holds: bool | None
    told: str
    figures: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class Verdict:
    """Whether a kernel is right, and why.

    Parameters
    ----------
    kernel
        Its name.
    settings
        What it claims.
    failures
        What is wrong, the most telling first.
    schedule
        The rounding schedule and the kind of statistic that explain all outputs, such as
        ``late/direct``; of a kernel that fails, those that explained most. None with ``plan=``.
    schedules
        All that explain the outputs as well.
    plan
        The plan that gives its outputs bit for bit, where one is known.
    power
        What the run would have seen, by size.
    unsupported
        What the kernel refuses, each in a few words.
    properties
        By name.
    notes
        What is worth knowing and no fault.
    errors
        Signed errors by probe.
    calls, outputs
        How many were judged.
    """

    kernel: str
    settings: Settings
    failures: tuple[Failure, ...]
    schedule: str | None
    schedules: tuple[str, ...] = ()
    plan: str | None = None
    power: tuple[Power, ...] = ()
    unsupported: tuple[str, ...] = ()
    properties: dict[str, Property] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    errors: tuple[Spread, ...] = ()
    calls: int = 0
    outputs: int = 0

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.failures

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        settings = self.settings
        what = f"{settings.norm.title} in {settings.output_format.name}"
        if self.passed:
            how = "" if self.schedule is None else f", {self.schedule}"
            return (
                f"{self.kernel} is a sound {what}{how}:"
                f" all {self.outputs:,} outputs of {self.calls} calls are explained."
            )
        first = self.failures[0]
        others = len(self.failures) - 1
        more = f" (and {others} more failure{'s' if others > 1 else ''})" if others else ""
        where = f"at {first.call}, " if first.call else ""
        return f"{self.kernel} is not a sound {what}: {where}{first.message}{more}."

    def __str__(self) -> str:
        lines = [self.sentence]
        lines += [f"  {failure}" for failure in self.failures[:TOLD]]
        if best := self._seen():
            lines.append(f"  seen would have been: {best}")
        lines += [f"  not supported: {told}" for told in self.unsupported]
        lines += [f"  {one.name}: {one.told}" for one in self.properties.values()]
        lines += [f"  note: {told}" for told in self.notes]
        return "\n".join(lines)

    def _seen(self) -> str:
        chosen = [one for one in self.power if math.isfinite(one.root)]
        return "; ".join(
            f"{one.root:.1e} of r at hidden {one.hidden}"
            for one in (chosen[:: max(1, len(chosen) // 3)] if chosen else [])
        )

    def to_json(self) -> str:
        """All of it as JSON, one line; NaN and infinities as strings."""
        document = {
            "precision_lab": __version__,
            "kernel": self.kernel,
            "passed": self.passed,
            "sentence": self.sentence,
            "settings": self.settings.to_dict(),
            "schedule": self.schedule,
            "schedules": list(self.schedules),
            "plan": self.plan,
            "calls": self.calls,
            "outputs": self.outputs,
            "failures": [failure.to_dict() for failure in self.failures],
            "unsupported": list(self.unsupported),
            "properties": {
                name: {"holds": one.holds, "told": one.told, **one.figures}
                for name, one in self.properties.items()
            },
            "notes": list(self.notes),
            "power": [vars(one) for one in self.power],
            "errors": [vars(one) for one in self.errors],
        }
        return json.dumps(_plain(document), allow_nan=False, ensure_ascii=False)


def hexed(value: float) -> str:
    """A float in hex, short: 0x1.8p+1."""
    if not math.isfinite(value):
        return str(value)
    head, _, exponent = float(value).hex().partition("p")
    return f"{head.rstrip('0').rstrip('.') if '.' in head else head}p{exponent}"


def told(value: float) -> str:
    """A float in hex and in a few digits."""
    return f"{hexed(value)} ({value:.6g})"


def _row(row: np.ndarray[Any, Any]) -> str:
    """A row in hex: whole where short; else a constant, a few that are not 0, or the first."""
    count = len(row)
    if count <= SHOWN:
        return f"[{', '.join(hexed(v) for v in row.tolist())}]"
    if (row == row[0]).all():
        return f"[{count} times {hexed(float(row[0]))}]"
    places = np.nonzero(row)[0]
    if len(places) <= SHOWN:
        some = ", ".join(f"{hexed(float(row[i]))} at {i}" for i in places)
        return f"[{count} zeros but {some}]"
    return f"[{', '.join(hexed(v) for v in row[:SHOWN].tolist())} … {count} in all]"


def spelt(array: np.ndarray[Any, Any]) -> str:
    """An array's values in hex, the first few of each axis."""
    values = array.astype(np.float64)
    rows = values.reshape(-1, values.shape[-1])
    first = [_row(row) for row in rows[:2]]
    return ", ".join(first) + (f" … {len(rows)} rows" if len(rows) > len(first) else "")


def _arrays(inputs: Inputs) -> dict[str, Any]:
    """Inputs in hex, with their types; long ones cut to their first row's first values."""
    known: dict[str, Any] = {"eps": inputs.eps, "weight_offset": inputs.weight_offset}
    for name in ("x", "weight", "bias"):
        if (array := getattr(inputs, name)) is not None:
            values = array.astype(np.float64)
            small = values.reshape(-1)[:4096]
            known[name] = {
                "type": str(array.dtype),
                "shape": list(array.shape),
                "hex": [hexed(v) for v in small.tolist()],
            }
    return known


def _plain(value: Any) -> Any:
    """JSON has no NaN and no infinities: strings stand for them."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
