# SPDX-License-Identifier: Apache-2.0
"""Orders of summation, one row each.

An order is the tree in which addends meet. It knows no number format: the additions are those of
the arithmetic that it is given, so the same row serves float32, bfloat16 or a proof. What a bound
needs, the depth of the tree and the error that follows from it, stands beside the tree.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from precision_lab.arithmetic.orders import onnxruntime as onnxruntime_orders
from precision_lab.arithmetic.orders import plain as plain_orders
from precision_lab.arithmetic.orders import torch as torch_orders
from precision_lab.arithmetic.orders import torch_welford
from precision_lab.arithmetic.orders import xla as xla_orders
from precision_lab.arithmetic.orders.error_factors import chain_factor, kahan_factor, wider_factor
from precision_lab.arithmetic.orders.order import Order, Statistic
from precision_lab.exceptions import InputError
from precision_lab.numbers import Format, formats
from precision_lab.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from precision_lab.arithmetic.protocol import Adder, Values


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


def wider(higher: Format) -> Order:
    """In turn in the wider format `higher`, then rounded once."""
    return Order(
        name=f"wider:{higher.name}",
        description=f"in turn in a {higher.name} accumulator, rounded once at the end",
        tree=partial(plain_orders.wider, higher),
        depth=plain_orders.sequential_depth,
        factor=partial(wider_factor, higher),
        additive=False,
    )


def accumulator(target: Format) -> Order:
    """In turn in an accumulator of the format `target`, the addends as they are.

    Its error has no bound in units of the sum's format: the accumulator may overflow and underflow
    where that format does not.
    """
    return Order(
        name=f"accumulator:{target.name}",
        description=f"in turn in a {target.name} accumulator",
        tree=partial(plain_orders.accumulator, target),
        depth=plain_orders.sequential_depth,
        factor=lambda n, _: math.inf if n else 0.0,
        additive=False,
    )


class Orders(Table[Order]):
    """The table of orders; names with other parameters than a row's make a new order.

    ``blocked:B``, ``lanes:WxV``, ``wider:FORMAT`` and ``accumulator:FORMAT`` are found for every
    B, W, V >= 1 and format.
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
    "accumulator": "accumulator:FORMAT, FORMAT the name of a format, such as accumulator:bfloat16",
}
"""How the names of orders with parameters are formed, by what stands before the colon."""


def _parametrised(name: str) -> Order | None:
    """The order that a name with parameters stands for, if it is one."""
    kind, colon, parameters = name.partition(":")
    numbers = parameters.split("x")
    positive = all(number.isascii() and number.isdigit() and int(number) for number in numbers)
    match kind, len(numbers):
        case "blocked", 1 if positive:
            return blocked(int(parameters))
        case "lanes", 2 if positive and int(numbers[0]).bit_count() == 1:
            return lanes(*map(int, numbers))
        case "wider", 1 if parameters:
            return wider(formats[parameters])
        case "accumulator", 1 if parameters:
            return accumulator(formats[parameters])
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
            partial(onnxruntime_orders.laned, onnxruntime_orders.ORT_LANES),
            partial(onnxruntime_orders.laned_depth, onnxruntime_orders.ORT_LANES),
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
