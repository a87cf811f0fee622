# SPDX-License-Identifier: Apache-2.0
"""What every way to compute offers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from precision_lab.numbers import Format


Values: TypeAlias = NDArray[np.floating[Any]]
Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Index: TypeAlias = NDArray[np.intp]


class Arithmetic(Protocol):
    """A way to compute: rows in, rows out, reductions along the last axis."""

    def square(self, x: Any, /) -> Any:
        """x^2."""
        ...

    def mean(self, x: Any, /) -> Any:
        """The mean of each row."""
        ...

    def add(self, x: Any, y: Any, /) -> Any:
        """x + y."""
        ...

    def subtract(self, x: Any, y: Any, /) -> Any:
        """x - y."""
        ...

    def multiply(self, x: Any, y: Any, /) -> Any:
        """x y."""
        ...

    def rsqrt(self, x: Any, /) -> Any:
        """1 / sqrt(x)."""
        ...


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

    def in_format(self, target: Format, /) -> Adder:
        """The same arithmetic in another format."""
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
