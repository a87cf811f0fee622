# SPDX-License-Identifier: Apache-2.0
"""Orders of summation, one row each.

An order is the tree in which addends meet. It knows no number format: the additions are those of
the arithmetic that it is given, so the same row serves float32, bfloat16 or a proof. What a bound
needs, the depth of the tree and the error that follows from it, stands beside the tree.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from precision_lab import (
    onnxruntime_orders,
    plain_orders,
    torch_orders,
    torch_welford,
    xla_orders,
)
from precision_lab.formats import Format, formats
from precision_lab.sum_errors import MARGIN, chain_factor, kahan_factor, wider_factor
from precision_lab.table import InputError, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from precision_lab.trees import Adder, Fusing, Values

Statistic: TypeAlias = "Callable[[Values, Fusing, Format], tuple[Values, Values]]"
"""From x [rows, n], an arithmetic and the format that x had: the mean (for ``mean_square`` 0) and
the sum of squares about it, [rows] each."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """An order of summation.

    Parameters
    ----------
    name
        The name that finds it, parameters included: ``"blocked:128"``.
    description
        One sentence.
    tree
        Sums [rows, n] with n >= 1 over the last axis, every addition done by the arithmetic.
    depth
        From n, the most additions that an addend passes through; additions of zero, which no
        format rounds, do not count.
    factor
        From n and the format, a rigorous f with abs(computed − exact) <= f · Σ abs(addend), for
        addends of the format, additions rounded to nearest and no overflow.
    additive
        Whether it only adds: then, rounding being monotone, no partial sum of non-negative addends
        falls below one of them.
    statistics
        For kinds of a plan's ``statistic``: how the implementation that has this order computes it,
        where that is more than sums of rounded numbers. All of it is in the format of the sum.
    """

    name: str
    description: str
    tree: Callable[[Values, Adder], Values]
    depth: Callable[[int], int]
    factor: Callable[[int, Format], float]
    additive: bool = True
    statistics: Mapping[str, Statistic] = field(default_factory=dict, hash=False)

    def least(self, n: int, target: Format) -> float:
        """A rigorous g with computed >= g · Σ addend for non-negative addends, as for `factor`."""
        known = [0.0, 1.0 - self.factor(n, target)]
        if self.additive and n > 1:
            known += [1.0 / n, (1.0 - target.unit_roundoff) ** self.depth(n)]
        return max(known) / MARGIN

    def sum(self, values: Values, arithmetic: Adder) -> Values:
        """Sum over the last axis.

        Parameters
        ----------
        values
            [..., n], values of the arithmetic's format.
        arithmetic
            Does the additions.

        Returns
        -------
        ndarray
            [...]. A sum of nothing is 0, and so is a sum of negative zeros: accumulators start
            at +0.
        """
        lead, n = values.shape[:-1], values.shape[-1]
        if values.size == 0:
            return np.zeros(lead, values.dtype)
        total = self.tree(values.reshape(-1, n), arithmetic)
        return total.reshape(lead) + total.dtype.type(0)


def _chain(
    name: str,
    description: str,
    tree: Callable[[Values, Adder], Values],
    depth: Callable[[int], int],
    **statistics: Statistic,
) -> Order:
    def factor(n: int, target: Format) -> float:
        return chain_factor(n, depth(n), target.unit_roundoff)

    return Order(
        name=name,
        description=description,
        tree=tree,
        depth=depth,
        factor=factor,
        statistics=statistics,
    )


# The table ----------------------------------------------------------------------------------------


def blocked(size: int) -> Order:
    """Blocks of `size` addends summed in turn, then the block sums in turn."""
    return _chain(
        f"blocked:{size}",
        f"blocks of {size} summed in turn, then the block sums in turn",
        partial(plain_orders.blocked, size),
        partial(plain_orders.blocked_depth, size),
    )


def lanes(width: int, vector: int) -> Order:
    """A GPU block of `width` threads, each reading vectors of `vector` addends.

    Thread t adds up the elements of vectors t, t + W, t + 2W, … in turn; the threads' sums then
    meet in a butterfly with offsets W/2, W/4, …, 1.

    Raises
    ------
    InputError
        If `width` is no power of two, which a butterfly needs.
    """
    if width & (width - 1):
        raise InputError(f"lanes of width {width}: a butterfly needs a power of two, such as 256")
    return _chain(
        f"lanes:{width}x{vector}",
        f"{width} threads with vectors of {vector}, each in turn, then a butterfly",
        partial(plain_orders.lanes, width, vector),
        partial(plain_orders.lanes_depth, width, vector),
    )


def wider(wide: Format) -> Order:
    """In turn in the wider format `wide`, then rounded once."""
    return Order(
        name=f"wider:{wide.name}",
        description=f"in turn in a {wide.name} accumulator, rounded once at the end",
        tree=partial(plain_orders.wider, wide),
        depth=plain_orders.sequential_depth,
        factor=partial(wider_factor, wide),
        additive=False,
    )


class Orders(Table[Order]):
    """The table of orders; names with other parameters than a row's make a new order.

    ``blocked:B``, ``lanes:WxV`` and ``wider:FORMAT`` are found for every B, W, V >= 1 and format.
    """

    def __getitem__(self, name: str) -> Order:
        made = _parametrised(name) if isinstance(name, str) else None
        return made or super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and self[name] is not None
        except InputError:
            return False


RULES = {
    "blocked": "blocked:B, B an integer from 1 up, such as blocked:128",
    "lanes": "lanes:WxV, W a power of two and V an integer from 1 up, such as lanes:256x4",
    "wider": "wider:FORMAT, FORMAT the name of a format, such as wider:float64",
}
"""How the names of orders with parameters are formed, by what stands before the colon."""


def _parametrised(name: str) -> Order | None:
    """The order that a name with parameters stands for, if it is one."""
    kind, colon, given = name.partition(":")
    numbers = given.split("x")
    whole = all(number.isascii() and number.isdigit() and int(number) for number in numbers)
    match kind, len(numbers):
        case "blocked", 1 if whole:
            return blocked(int(given))
        case "lanes", 2 if whole and int(numbers[0]).bit_count() == 1:
            return lanes(*map(int, numbers))
        case "wider", 1 if given:
            return wider(formats[given])
        case _ if colon and kind in RULES:
            raise InputError(f"no order {name!r}: write {RULES[kind]}")
        case _:
            return None


orders = Orders(
    "order",
    [
        _chain(
            "sequential",
            "one after the other",
            plain_orders.sequential,
            plain_orders.sequential_depth,
        ),
        _chain(
            "pairwise",
            "NumPy's: halves down to blocks of 128, which are summed in 8 lanes",
            plain_orders.pairwise,
            plain_orders.pairwise_depth,
        ),
        blocked(128),
        lanes(256, 4),
        Order(
            name="kahan",
            description="one after the other, with Kahan's compensation",
            tree=plain_orders.kahan,
            depth=plain_orders.sequential_depth,
            factor=kahan_factor,
            additive=False,
        ),
        wider(formats["float64"]),
        _chain(
            "torch-cascade",
            "torch's on a CPU: 8 lanes, four accumulators, a cascade of four levels in each",
            torch_orders.cascade,
            torch_orders.cascade_depth,
            welford=torch_welford.chunked_welford,
        ),
        _chain(
            "mlas",
            "onnxruntime's on a CPU with AVX2: 8 lanes, then halves, squares fused into their sum",
            partial(onnxruntime_orders.laned, onnxruntime_orders.LANES),
            partial(onnxruntime_orders.laned_depth, onnxruntime_orders.LANES),
            mean_square=onnxruntime_orders.fused_mean_square,
            two_pass=onnxruntime_orders.fused_two_pass,
        ),
        _chain(
            "xla-windows",
            "XLA's on a CPU: windows of 32 in turn, then the windows' sums in the same way",
            xla_orders.windowed,
            xla_orders.windowed_depth,
        ),
        Order(
            name="ynn",
            description="YNNPACK's for XLA: 16 lanes in fours, compensated every 1024 addends",
            tree=xla_orders.ynn,
            depth=xla_orders.ynn_depth,
            factor=xla_orders.ynn_factor,
            additive=False,
        ),
    ],
)
