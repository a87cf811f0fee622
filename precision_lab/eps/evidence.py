# SPDX-License-Identifier: Apache-2.0
"""What an eps is judged on: the rows that enter one norm of a model, seen or assumed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.formats import Format, formats
from precision_lab.inputs import make_inputs
from precision_lab.norms import Norm, norms
from precision_lab.table import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]
    Floats = NDArray[np.float64]

SEED = 5
SIZES = 61
"""Assumed sizes of rows between the ends of the range, both included."""
SAMPLES = 7
"""Rows that are run through the plan, spread over the same range."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerEvidence:
    """The rows that enter one norm, in the format that it runs in.

    Parameters
    ----------
    name
        The norm's name in its model.
    norm
        Which norm.
    format
        The format of x.
    x
        [rows, hidden], all finite; the last row is zeros (padding), whatever was seen.
    weight, bias
        [hidden] in the same format, or None.
    offset
        Added to the weight.
    sizes
        [m], the assumed root mean squares of rows; None where x is what was seen. Then x is drawn.
    dropped
        Rows seen that held NaN or infinity, or could not be held by the format: they are left out.
    """

    name: str
    norm: Norm
    format: Format
    x: Array
    weight: Array | None = None
    bias: Array | None = None
    offset: float = 0.0
    sizes: Floats | None = None
    dropped: int = 0

    @property
    def hidden(self) -> int:
        """Elements of a row."""
        return int(self.x.shape[1])

    @property
    def rows(self) -> int:
        """Rows seen, or sizes assumed."""
        return len(self.x) - 1 if self.sizes is None else len(self.sizes)

    @property
    def gain(self) -> Floats | None:
        """[hidden], the weight as real numbers, the offset not added."""
        return None if self.weight is None else self.weight.astype(np.float64)

    @property
    def largest_gain(self) -> float:
        """The largest magnitude of the gain, the offset added."""
        return 1.0 if self.gain is None else float(np.max(np.abs(self.gain + self.offset)))

    def squares(self) -> Floats:
        """[rows], the mean square of each row (about the mean for layer norms), in float64."""
        if self.sizes is not None:
            return np.asarray(self.sizes * self.sizes)
        x = self.x[:-1].astype(np.float64)
        with np.errstate(over="ignore"):
            if self.norm.centred:
                x = x - x.mean(axis=1, keepdims=True)
            return np.asarray(np.mean(x * x, axis=1))


def seen(
    name: str, norm: Norm | str, x: Array, weight: Array | None, bias: Array | None, *,
    format: Format | str, offset: float = 0.0,
) -> LayerEvidence:  # fmt: skip
    """The evidence of rows that entered a norm.

    Parameters
    ----------
    name, norm
        The norm.
    x
        [rows, hidden], of any format's type; rounded to the format that the norm shall run in.
    weight, bias
        [hidden] or None, rounded to it too.
    format
        The format that it shall run in.
    offset
        Added to the weight.

    Raises
    ------
    InputError
        Where the format can hold none of the rows, or not the gain.
    """
    target = formats.find(format)
    rows = _held(x, target)
    finite = np.isfinite(rows).all(axis=1)
    if len(rows) and not finite.any():
        largest = float(np.nanmax(np.abs(np.asarray(x, np.float64)))) if np.size(x) else 0.0
        raise InputError(
            f"{target.name} holds no row of {name!r}: its largest value is {target.largest:g}, and "
            f"the rows reach {largest:g}"
        )
    parameters = []
    for part, values in (("weight", weight), ("bias", bias)):
        held = None if values is None else _held(values, target)
        if held is not None and not np.isfinite(held).all():
            raise InputError(
                f"{target.name} does not hold the {part} of {name!r}: its largest value is "
                f"{target.largest:g}"
            )
        parameters.append(None if held is None else target.encode(held))
    zeros = np.zeros((1, rows.shape[1]))
    return LayerEvidence(
        name=name, norm=norms.find(norm), format=target,
        x=target.encode(np.concatenate([rows[finite], zeros])),
        weight=parameters[0], bias=parameters[1], offset=offset,
        dropped=int(len(rows) - finite.sum()),
    )  # fmt: skip


def assumed(
    name: str, norm: Norm | str, hidden: int, *, format: Format | str,
    sizes: tuple[float, float] = (0.1, 100.0), weight: Array | None = None,
    bias: Array | None = None, offset: float = 0.0,
) -> LayerEvidence:  # fmt: skip
    """Evidence where no row is known: a range of sizes, and normal rows of these sizes.

    Parameters
    ----------
    name, norm, hidden
        The norm.
    sizes
        The least and the largest root mean square of a row (about the mean for layer norms).
    format, weight, bias, offset
        As for `seen`.

    Raises
    ------
    InputError
        For a range that is none, and where the format can hold no such row.
    """
    low, high = sizes
    if not (0 < low <= high and math.isfinite(high)):
        raise InputError(
            f"rms {low:g} to {high:g} is no range of sizes: give two positive numbers, such as"
            " 0.1 and 100"
        )
    found = norms.find(norm)
    rows = _normal(hidden, found.centred) * np.geomspace(low, high, SAMPLES)[:, None]
    grid = np.geomspace(low, high, SIZES)
    grid[0], grid[-1] = low, high
    known = seen(name, norm, rows, weight, bias, format=format, offset=offset)
    return LayerEvidence(
        name=name, norm=found, format=known.format, x=known.x, weight=known.weight,
        bias=known.bias, offset=offset, sizes=grid, dropped=known.dropped,
    )  # fmt: skip


@lru_cache(8)
def _normal(hidden: int, centred: bool) -> Floats:  # noqa: FBT001 - a key
    """Normal rows whose root mean square is 1, about their mean where that is subtracted."""
    rows = make_inputs("normal", rows=SAMPLES, hidden=hidden, seed=SEED)
    if centred:
        rows = rows - rows.mean(axis=1, keepdims=True)
    size = np.sqrt(np.mean(rows * rows, axis=1, keepdims=True))
    return np.asarray(rows / np.where(size == 0, 1.0, size))


def _held(values: Array, target: Format) -> Floats:
    """The values rounded to a format, infinite or NaN where it has none for them."""
    array = np.asarray(values)
    if array.dtype != np.float64:
        with np.errstate(invalid="ignore"):  # signalling NaN
            array = array.astype(np.float32)
    return target.round(array)


def together(layers: Sequence[LayerEvidence]) -> str:
    """What the evidence is, in words."""
    first = layers[0]
    if first.sizes is not None:
        return (
            f"assumed rows: root mean square {first.sizes[0]:g} to {first.sizes[-1]:g}, normal, "
            f"and a row of zeros"
        )
    rows = sum(layer.rows for layer in layers)
    dropped = sum(layer.dropped for layer in layers)
    told = f"{rows} rows seen in {len(layers)} norms, and a row of zeros in each"
    if dropped:
        rows_told = "1 row" if dropped == 1 else f"{dropped} rows"
        told += f"; {rows_told} left out, which {first.format.name} does not hold"
    return told
