# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a kernel, with the inputs that show it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from precision_lab.kernels.running import Outcome
    from precision_lab.norm import Inputs

LISTED = 8
"""Values of a row that are written out."""

STORED = 4096
"""Values of an array that are written to JSON at most."""


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
    far
        How far it is from them, in ulp of the output format; infinite where one is not a number.
    """

    row: int
    element: int
    low: float
    high: float
    got: float
    far: float = 0.0

    def __str__(self) -> str:
        place = f"row {self.row}, element {self.element}"
        return f"{place} is {value_text(self.got)}, right is {self.right}"

    @property
    def right(self) -> str:
        """The sound outputs in words."""
        if self.low == self.high:
            return value_text(self.low)
        return f"{hex_text(self.low)} to {value_text(self.high)}"

    def to_dict(self) -> dict[str, Any]:
        """Places, and values in hex."""
        values = {name: hex_text(getattr(self, name)) for name in ("low", "high", "got")}
        return {"row": self.row, "element": self.element, **values}


@dataclass(frozen=True, kw_only=True, eq=False)
class Failure:
    """One thing that is wrong.

    Parameters
    ----------
    kind
        ``value``, ``root`` (no one r explains a row), ``special`` (rows with NaN or infinities),
        ``plan``, ``raised``, ``shape``, ``type``, ``modified``, ``overwritten`` (the next call
        changes what it returned), ``layout`` (it ignores strides), ``stdout``, ``error-state``,
        ``rounding`` (it left another mode), ``flush``, ``streams``, ``stray`` (more answers than
        calls), ``broken`` (what calls it), ``property``, ``nothing`` (no call was judged);
        ``killed``, ``hung`` or ``given-up`` (not called again) of one in a process of its own.
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
        return "\n".join(self.lines()).strip()

    @property
    def brief(self) -> str:
        """What is wrong, without the worst output."""
        if not self.count:
            return self.message
        are = "are not the plan's" if self.kind == "plan" else "are wrong"
        return f"{self.count} of {self.total} outputs {are}"

    def lines(self, *, known: bool = False) -> list[str]:
        """The call and what is wrong, and the inputs, indented.

        Parameters
        ----------
        known
            Whether the reader has the message: then it is left out, and all without a call.
        """
        where = self.call or self.probe
        lines = [f"  {where or self.kind}: {self.message}"]
        if known:
            lines = [f"  at {where}"] if where else []
        if self.inputs is not None and self.inputs.x.size:
            few = "x".join(map(str, self.inputs.x.shape))
            lines.append(f"    {self._size}: {few}, eps {self.inputs.eps:g}")
            arrays = self.inputs.named_arguments()
            lines += [f"    {name:6} {array_text(array)}" for name, array in arrays.items()]
            if self.small is not None:
                lines.append(f"    {self.small}")
        return lines

    @property
    def _size(self) -> str:
        """Only what is judged by its outputs is made small, and not all of it can be."""
        judged = self.kind in ("value", "root", "special", "plan")
        smaller = self.inputs is not None and self.inputs.x.size < self.total
        return "made small" if judged and smaller else "inputs"

    def to_dict(self) -> dict[str, Any]:
        """Names, numbers and lists; floats in hex beside decimals."""
        names = ("kind", "probe", "message", "call", "count", "total")
        return {
            **{name: getattr(self, name) for name in names},
            "worst": self.worst and self.worst.to_dict(),
            "small": self.small and self.small.to_dict(),
            "inputs": None if self.inputs is None else _arrays(self.inputs),
        }


SIDE_EFFECTS = (
    "stdout", "modified", "overwritten", "layout", "error-state", "rounding", "flush", "streams",
    "type", "property",
)  # fmt: skip
"""Kinds of what may be wrong where all numbers are right."""


def only_side_effects(failures: Sequence[Failure], outcomes: Iterable[Outcome]) -> bool:
    """Whether all numbers of the calls that failed were judged, and are right."""
    return all(one.kind in SIDE_EFFECTS for one in failures) and all(
        outcome.y is not None for outcome in outcomes if outcome.findings
    )


def hex_text(value: float) -> str:
    """A float in hex, short: 0x1.8p+1."""
    if not math.isfinite(value):
        return str(value)
    head, _, exponent = float(value).hex().partition("p")
    return f"{head.rstrip('0').rstrip('.') if '.' in head else head}p{exponent}"


def value_text(value: float) -> str:
    """A float in hex and in a few digits."""
    return f"{hex_text(value)} ({value:.6g})"


def _row(row: np.ndarray[Any, Any]) -> str:
    """A row in hex: whole where short; else a constant, a few that are not 0, or the first."""
    count = len(row)
    if count <= LISTED:
        return f"[{', '.join(hex_text(v) for v in row.tolist())}]"
    if (row == row[0]).all():
        return f"[{count} times {hex_text(float(row[0]))}]"
    places = np.nonzero(row)[0]
    if len(places) <= LISTED:
        some = ", ".join(f"{hex_text(float(row[i]))} at {i}" for i in places)
        return f"[{count} zeros but {some}]"
    return f"[{', '.join(hex_text(v) for v in row[:LISTED].tolist())} … {count} in all]"


def array_text(array: np.ndarray[Any, Any]) -> str:
    """An array's values in hex, the first few of each axis."""
    values = array.astype(np.float64)
    rows = values.reshape(-1, values.shape[-1])
    first = [_row(row) for row in rows[:2]]
    return ", ".join(first) + (f" … {len(rows)} rows" if len(rows) > len(first) else "")


def _arrays(inputs: Inputs) -> dict[str, Any]:
    """Inputs in hex, with their types; long ones cut to their first row's first values."""
    arrays = {
        name: {
            "type": str(array.dtype),
            "shape": list(array.shape),
            "hex": [hex_text(v) for v in array.astype(np.float64).reshape(-1)[:STORED].tolist()],
        }
        for name, array in inputs.named_arguments().items()
    }
    return {"eps": inputs.eps, "weight_offset": inputs.weight_offset, **arrays}
