# SPDX-License-Identifier: Apache-2.0
"""What the trees of `reduce` are built from, and what they ask of an arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterable

    from precision_lab.formats import Format

Values: TypeAlias = NDArray[np.floating[Any]]


class Adder(Protocol):
    """What an order asks of an arithmetic to sum."""

    def add(self, a: Values, b: Values, /) -> Values:
        """a + b, rounded."""
        ...

    def subtract(self, a: Values, b: Values, /) -> Values:
        """a − b, rounded."""
        ...

    def cast(self, values: Values, /) -> Values:
        """The values, rounded."""
        ...

    def widened(self, target: Format, /) -> Adder:
        """The same arithmetic in a format that holds this one's values."""
        ...


class Fusing(Adder, Protocol):
    """What an order asks of an arithmetic to compute moments."""

    def multiply(self, a: Values, b: Values, /) -> Values:
        """a · b, rounded."""
        ...

    def divide(self, a: Values, b: Values, /) -> Values:
        """a / b, rounded."""
        ...

    def divided(self, a: Values, count: int, /) -> Values:
        """a / count, rounded once."""
        ...

    def fma(self, a: Values, b: Values, c: Values, /) -> Values:
        """a · b + c, rounded once."""
        ...

    def widened(self, target: Format, /) -> Fusing:
        """The same arithmetic in a format that holds this one's values."""
        ...


def in_turn(parts: Iterable[Values], arithmetic: Adder) -> Values:
    """Sum over the first axis, one after the other."""
    total, *rest = parts
    for part in rest:
        total = arithmetic.add(total, part)
    return total


def halved(lanes: Values, arithmetic: Adder) -> Values:
    """Sum over the first axis, a power of two: the upper half onto the lower, down to one."""
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = arithmetic.add(lanes[:half], lanes[half:])
    lane: Values = lanes[0]
    return lane


def first(values: Values) -> Values:
    """The last axis first, in memory too: each addition then reads neighbours."""
    return np.ascontiguousarray(np.moveaxis(values, -1, 0))
