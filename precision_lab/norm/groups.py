# SPDX-License-Identifier: Apache-2.0
"""Groups of elements: what is normalised together, and what of it enters the statistic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from precision_lab.arithmetic import Mask

    Array = NDArray[Any]


def row_blocks(shape: tuple[int, ...], size: int) -> list[slice]:
    """The rows of an array of two dimensions, some `size` elements at a time."""
    step = max(1, size // shape[1])
    return [slice(start, min(start + step, shape[0])) for start in range(0, shape[0], step)]


@dataclass(frozen=True, eq=False)
class Groups:
    """How the elements of an array make groups, each with a statistic of its own.

    A row of an RMSNorm or a LayerNorm is a group. GroupNorm of [N, C, H, W] has groups of
    C/G · H · W elements, BatchNorm of [N, C] has the axes in the order (1, 0) and groups of N.

    Parameters
    ----------
    shape
        The shape of the array.
    elements
        Elements of a group.
    entering
        [elements]: which enter the statistic, at least one; None where all do.
    order
        The axes of the array in the order in which groups take them up; None where they stand so.
    channels
        The axis along which gain and bias run; None where they run along the elements of a group.
    """

    shape: tuple[int, ...]
    elements: int
    entering: Mask | None = None
    order: tuple[int, ...] | None = None
    channels: int | None = None

    @classmethod
    def of_rows(cls, shape: tuple[int, ...]) -> Groups:
        """Each row of the last axis a group."""
        return cls(shape, shape[-1])

    @property
    def count(self) -> int:
        """How many groups there are."""
        return math.prod(self.shape) // self.elements

    def unfold(self, x: Array) -> Array:
        """From the array's shape to [groups, elements]."""
        moved = x if self.order is None else x.transpose(self.order)
        return moved.reshape(self.count, self.elements)

    def fold(self, y: Array) -> Array:
        """From [groups, elements] to the array's shape."""
        if self.order is None:
            return y.reshape(self.shape)
        return y.reshape(self._ordered_shape).transpose(np.argsort(self.order))

    def place(self, group: int, element: int) -> tuple[int, ...]:
        """Where in the array an element of a group stands."""
        at = np.unravel_index(group * self.elements + element, self._ordered_shape)
        order = self.order or range(len(at))
        return tuple(int(at[place]) for place in np.argsort(order))

    def unfold_parameter(self, parameter: Array) -> Array:
        """A gain or bias of one dimension, to [1, elements] or [groups, elements]."""
        if self.channels is None:
            return parameter[None, :]
        column = [1] * len(self.shape)
        column[self.channels] = -1
        return self.unfold(np.broadcast_to(parameter.reshape(column), self.shape))

    def fold_parameter(self, part: Array) -> Array:
        """Back to one dimension; a part of the groups, which has no channels, keeps its rows."""
        if self.channels is None:
            return part[0] if len(part) == 1 else part
        full = self.fold(np.broadcast_to(part, (self.count, self.elements)))
        return np.moveaxis(full, self.channels, 0).reshape(full.shape[self.channels], -1)[:, 0]

    @property
    def _ordered_shape(self) -> tuple[int, ...]:
        order = range(len(self.shape)) if self.order is None else self.order
        return tuple(self.shape[axis] for axis in order)
