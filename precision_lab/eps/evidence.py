# SPDX-License-Identifier: Apache-2.0
"""What an eps is judged on: the rows that enter one norm of a model, seen or assumed."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.exceptions import InputError
from precision_lab.inputs import make_inputs
from precision_lab.norm import Norm, norms
from precision_lab.numbers import Format, formats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]
    Floats = NDArray[np.float64]

SEED = 5
SIZES = 61
"""Assumed sizes of rows between the ends of the range, both included."""
MOST_RMS = 1e30
"""The largest size that may be assumed; its reciprocal is the least."""
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
    past
        [k, hidden] in float64: rows that are finite as they were given and that the format does not
        hold. They are not in x.
    strange
        Rows that held NaN or infinity as they were given: they are left out.
    """

    name: str
    norm: Norm
    format: Format
    x: Array
    weight: Array | None = None
    bias: Array | None = None
    offset: float = 0.0
    sizes: Floats | None = None
    past: Floats | None = None
    strange: int = 0

    @property
    def overflowing(self) -> int:
        """Rows that the format does not hold."""
        return 0 if self.past is None else len(self.past)

    @property
    def reach(self) -> float:
        """The largest magnitude among them, 0 where there are none."""
        return 0.0 if self.past is None else float(np.max(np.abs(self.past), initial=0.0))

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
        Where the format has no zero, or does not hold the gain.

    Notes
    -----
    Without a row to judge (none given, or all of them with NaN or infinity in them) rows are
    assumed.
    """
    target = formats.find(format)
    if float(target.round(0.0)) != 0:
        raise InputError(f"{target.name} has no zero: it holds no row of {name!r}")
    given = np.asarray(x)
    rows = _held(given, target)
    proper = np.isfinite(given.astype(np.float64) if given.dtype.kind != "f" else given).all(axis=1)
    if not proper.any():
        known = assumed(
            name, norm, rows.shape[1], format=target, weight=weight, bias=bias, offset=offset
        )
        return dataclasses.replace(known, strange=len(rows))
    finite = np.isfinite(rows).all(axis=1)
    past = given[proper & ~finite].astype(np.float64)
    parameters = []
    for part, values in (("weight", weight), ("bias", bias)):
        held = None if values is None else _held(values, target)
        if held is not None and not np.isfinite(held).all():
            raise InputError(_not_held(part, name, np.asarray(values, np.float64), target))
        parameters.append(None if held is None else target.encode(held))
    zeros = np.zeros((1, rows.shape[1]))
    return LayerEvidence(
        name=name, norm=norms.find(norm), format=target,
        x=target.encode(np.concatenate([rows[finite], zeros])),
        weight=parameters[0], bias=parameters[1], offset=offset,
        past=past if len(past) else None, strange=int((~proper).sum()),
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
        For a range that is none.
    """
    low, high = sizes
    if not (1 / MOST_RMS <= low <= high <= MOST_RMS):
        raise InputError(
            f"rms {low:g} to {high:g} is no range of sizes: give two numbers between"
            f" {1 / MOST_RMS:g} and {MOST_RMS:g}, such as 0.1 and 100"
        )
    found = norms.find(norm)
    rows = _normal(hidden, found.centred) * np.geomspace(low, high, SAMPLES)[:, None]
    grid = np.geomspace(low, high, SIZES)
    grid[0], grid[-1] = low, high
    known = seen(name, norm, rows, weight, bias, format=format, offset=offset)
    return LayerEvidence(
        name=name, norm=found, format=known.format, x=known.x, weight=known.weight,
        bias=known.bias, offset=offset, sizes=grid, past=known.past,
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


def _not_held(part: str, name: str, values: Floats, target: Format) -> str:
    """Why a parameter cannot be taken."""
    if np.isnan(values).any():
        return f"the {part} of {name!r} holds NaN: an eps cannot be judged with it"
    return (
        f"{target.name} does not hold the {part} of {name!r}: its largest value is "
        f"{target.largest:g}, and the {part} reaches {np.max(np.abs(values)):g}"
    )


def check_held(layers: Sequence[LayerEvidence]) -> None:
    """Refuse a format that holds no row of any norm.

    Raises
    ------
    InputError
        If it holds none.
    """
    if all(layer.overflowing and len(layer.x) == 1 for layer in layers):
        first = layers[0]
        raise InputError(
            f"{first.format.name} holds no row of {first.name!r}: its largest value is "
            f"{first.format.largest:g}, and the rows reach {max(each.reach for each in layers):g}"
        )


def together(layers: Sequence[LayerEvidence]) -> str:
    """What the evidence is, in words."""
    guessed = [layer for layer in layers if layer.sizes is not None]
    parts = []
    if len(guessed) < len(layers):
        known = [layer for layer in layers if layer.sizes is None]
        rows = sum(layer.rows + layer.overflowing for layer in known)
        parts.append(
            f"{counted(rows, 'row')} seen in {counted(len(known), 'norm')}, and a row of zeros in "
            "each"
        )
    if guessed:
        sizes = guessed[0].sizes
        assert sizes is not None  # noqa: S101 - they are those
        told = f"assumed rows: root mean square {sizes[0]:g} to {sizes[-1]:g}, normal, "
        told += "and a row of zeros"
        if parts:
            told = f"none in {counted(len(guessed), 'norm')}, whose rows are assumed: " + told[14:]
        parts.append(told)
    past = sum(layer.overflowing for layer in layers)
    if past:
        samples = "sample row" if len(guessed) == len(layers) else "row"
        verb = "reaches" if past == 1 else "reach"
        parts.append(
            f"{counted(past, samples)} {verb} past {layers[0].format.name}, and cannot be run "
            "through the plan"
        )
    strange = sum(layer.strange for layer in layers)
    if strange:
        verb = "holds" if strange == 1 else "hold"
        parts.append(f"{counted(strange, 'row')} left out, which {verb} NaN or infinity already")
    return "; ".join(parts)


def counted(count: int, what: str = "row") -> str:
    """A number of things, in words: "1 row", "2 rows"."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
