# SPDX-License-Identifier: Apache-2.0
"""The arguments of a norm, checked once, at the door."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.exceptions import InputError, unknown
from precision_lab.norm.groups import Groups
from precision_lab.norm.norm import Norm, norms
from precision_lab.numbers import BY_DTYPE

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from precision_lab.arithmetic import Index, Mask


@dataclass(frozen=True, eq=False)
class Inputs:
    """The arguments of a norm, checked, as groups of elements.

    Parameters
    ----------
    norm
        Which norm.
    x
        [groups, elements], of a format's array type.
    weight, bias
        None, or of a format's array type and two dimensions, each that of x or 1.
    eps
        The real value of this float.
    weight_offset
        Added to the weight to give the gain; without a weight the gain is 1.
    groups
        Which elements enter the statistic, and the shape that x had.
    """

    norm: Norm
    x: NDArray[Any]
    weight: NDArray[Any] | None
    bias: NDArray[Any] | None
    eps: float
    weight_offset: float
    groups: Groups

    @property
    def statistic_elements(self) -> NDArray[Any]:
        """[groups, entering]: the part of x that enters the statistic; x itself where all does."""
        entering = self.groups.entering
        return self.x if entering is None else self.x[:, entering]

    def fold(self, y: NDArray[Any]) -> NDArray[Any]:
        """From [groups, elements] to the shape that x had."""
        return self.groups.fold(y)

    def arguments(self) -> tuple[NDArray[Any], NDArray[Any] | None, NDArray[Any] | None]:
        """x, weight and bias in the shapes in which a kernel takes them."""
        parameters = (self.weight, self.bias)
        weight, bias = (
            None if part is None else self.groups.fold_parameter(part) for part in parameters
        )
        return self.fold(self.x), weight, bias

    def named_arguments(self) -> dict[str, NDArray[Any]]:
        """Those of them that are there, by name."""
        named = zip(("x", "weight", "bias"), self.arguments(), strict=True)
        return {name: array for name, array in named if array is not None}

    def take(self, rows: slice | Index | Mask | list[int]) -> Inputs:
        """Some of the groups, as rows."""
        x = np.ascontiguousarray(self.x[rows])
        weight, bias = (rows_of(part, rows) for part in (self.weight, self.bias))
        groups = Groups(x.shape, x.shape[1], self.groups.entering)
        return dataclasses.replace(self, x=x, weight=weight, bias=bias, groups=groups)

    def take_elements(self, columns: slice | Index) -> Inputs:
        """Some elements of each group, as rows."""
        x = np.ascontiguousarray(self.x[:, columns])
        weight, bias = (
            part if part is None or part.shape[1] == 1 else part[:, columns]
            for part in (self.weight, self.bias)
        )
        entering = self.groups.entering
        groups = Groups(x.shape, x.shape[1], None if entering is None else entering[columns])
        return dataclasses.replace(self, x=x, weight=weight, bias=bias, groups=groups)


def rows_of(part: NDArray[Any] | None, rows: Any) -> Any:
    """Some rows of what has one for each group; all of what has one for all, or is None."""
    return part if part is None or len(part) == 1 else part[rows]


def check_eps(eps: object) -> float:
    """An eps as a float.

    Raises
    ------
    InputError
        If it is no real number, negative, NaN or infinite.
    """
    if isinstance(eps, bool) or not isinstance(eps, Real | np.floating | np.integer):
        message = f"eps is {eps!r}: give a number that is not negative, such as 1e-6"
        raise InputError(message)
    value = float(eps)
    if not math.isfinite(value) or value < 0:
        message = f"eps is {value:g}: give a finite number that is not negative, such as 1e-6"
        raise InputError(message)
    return value


def check(
    norm: Norm | str,
    x: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    eps: float,
    weight_offset: float = 0.0,
) -> Inputs:
    """Check the arguments of a norm once, at the door.

    Parameters
    ----------
    norm
        A norm or its name.
    x
        [..., hidden], of a format's array type; lists of numbers are float64.
    weight, bias
        [hidden] or None.
    eps, weight_offset
        Real numbers.

    Raises
    ------
    InputError
        For an unknown norm, shapes that do not match, an empty hidden axis, types that no format
        has, an eps that is negative or not finite. No rows are fine: they give no rows.
    """
    chosen = norms.find(norm)
    rows = _array(x, "x")
    if rows.ndim == 0:
        message = "x is a single number: give rows, [rows, hidden]"
        raise InputError(message)
    hidden = rows.shape[-1]
    if hidden == 0:
        message = f"x of shape {rows.shape} has no elements in a row: hidden must be 1 or more"
        raise InputError(message)
    offset = float(weight_offset)
    if not math.isfinite(offset):
        message = f"weight_offset is {offset:g}: give a finite number, such as 0 or 1"
        raise InputError(message)
    groups = Groups.of_rows(rows.shape)
    return Inputs(
        norm=chosen,
        x=groups.unfold(rows),
        weight=_parameter(weight, "weight", groups),
        bias=_parameter(bias, "bias", groups),
        eps=check_eps(eps),
        weight_offset=offset,
        groups=groups,
    )


def _array(values: ArrayLike, name: str) -> NDArray[Any]:
    """An array of a format's type, nothing rounded."""
    try:
        array = np.asarray(values)
    except ValueError:
        message = f"{name} is ragged: give rows of equal length"
        raise InputError(message) from None
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype in BY_DTYPE:
        return array
    if array.dtype.kind in "iu" or (array.size == 0 and not isinstance(values, np.ndarray)):
        exact = array.astype(np.float64)
        # Python compares an integer with a float exactly; NumPy would round the integer first.
        if (exact.astype(object) == array.astype(object)).all():
            return exact
    message = str(unknown("array type", array.dtype, [row.name for row in BY_DTYPE.values()]))
    raise InputError(f"{name}: {message}")


def _parameter(values: ArrayLike | None, name: str, groups: Groups) -> NDArray[Any] | None:
    if values is None:
        return None
    array, hidden = _array(values, name), groups.shape[-1]
    if array.shape != (hidden,):
        message = f"{name} has shape {array.shape}: x has rows of {hidden}, so give ({hidden},)"
        raise InputError(message)
    return groups.unfold_parameter(array)
