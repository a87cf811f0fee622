# SPDX-License-Identifier: Apache-2.0
"""Orders of summation, one row each.

An order is the tree in which addends meet. It knows no number format: the additions are those of
the arithmetic that it is given, so the same row serves float32, bfloat16 or a proof. What a bound
needs, the depth of the tree and the error that follows from it, stands beside the tree.

Sources: NumPy's pairwise sum (``loops_utils.h.src``, blocks of 128 and 8 accumulators); Kahan,
"Further remarks on reducing truncation errors" (CACM 8, 1965).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from precision_lab import onnxruntime_orders, torch_orders, torch_welford, xla_orders
from precision_lab.formats import Format, formats
from precision_lab.sum_errors import MARGIN, chain_factor, kahan_factor, wider_factor
from precision_lab.table import InputError, Table
from precision_lab.trees import first, in_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from precision_lab.trees import Adder, Fusing, Values

PAIRWISE_BLOCK = 128
PAIRWISE_LANES = 8


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


# Sequential ---------------------------------------------------------------------------------------


def _sequential(values: Values, arithmetic: Adder) -> Values:
    return in_turn(first(values), arithmetic)


def _sequential_depth(n: int) -> int:
    return max(n - 1, 0)


# NumPy's pairwise sum -----------------------------------------------------------------------------


def _half(n: int) -> int:
    """Where NumPy cuts a run that is too long for a block."""
    return n // 2 - n // 2 % PAIRWISE_LANES


@lru_cache(maxsize=256)
def _blocks(n: int) -> tuple[int, ...]:
    """Sizes of the blocks that NumPy cuts n addends into."""
    return (n,) if n <= PAIRWISE_BLOCK else _blocks(_half(n)) + _blocks(n - _half(n))


def _block_sum(values: Values, arithmetic: Adder) -> Values:
    """[..., n] with n <= 128: eight accumulators, joined in pairs, then what is left over."""
    n = values.shape[-1]
    whole = n - n % PAIRWISE_LANES
    parts = first(values)
    if whole == 0:
        return in_turn(parts, arithmetic)
    r = in_turn(parts[:whole].reshape(-1, PAIRWISE_LANES, *parts.shape[1:]), arithmetic)
    while len(r) > 1:
        r = arithmetic.add(r[0::2], r[1::2])
    return in_turn(np.concatenate([r, parts[whole:]]), arithmetic)


def _pairwise(values: Values, arithmetic: Adder) -> Values:
    n = values.shape[-1]
    sizes = np.array(_blocks(n))
    starts = np.cumsum(sizes) - sizes
    sums = np.empty((sizes.size, values.shape[0]), values.dtype)
    for size in np.unique(sizes):
        chosen = sizes == size
        if chosen.all():
            blocks = values.reshape(-1, sizes.size, size)
        else:
            blocks = values[:, starts[chosen, None] + np.arange(size)]
        sums[chosen] = _block_sum(blocks, arithmetic).T
    in_turn = iter(sums)

    def joined(n: int) -> Values:
        if n <= PAIRWISE_BLOCK:
            return next(in_turn)
        left = joined(_half(n))
        return arithmetic.add(left, joined(n - _half(n)))

    return joined(n)


@lru_cache(maxsize=256)
def _pairwise_depth(n: int) -> int:
    if n < PAIRWISE_LANES:
        return _sequential_depth(n)
    if n <= PAIRWISE_BLOCK:
        return n // PAIRWISE_LANES - 1 + 3 + n % PAIRWISE_LANES
    return 1 + max(_pairwise_depth(_half(n)), _pairwise_depth(n - _half(n)))


# Blocks and lanes ---------------------------------------------------------------------------------


def _padded(values: Values, multiple: int) -> Values:
    """Zeros at the end up to a whole multiple: adding one changes nothing."""
    return np.pad(values, [(0, 0), (0, -values.shape[-1] % multiple)])


def _blocked(size: int, values: Values, arithmetic: Adder) -> Values:
    if values.shape[-1] <= size:
        return _sequential(values, arithmetic)
    blocks = _padded(values, size).reshape(values.shape[0], -1, size)
    return _sequential(_sequential(blocks, arithmetic), arithmetic)


def _blocked_depth(size: int, n: int) -> int:
    return 0 if n == 0 else min(size, n) - 1 + -(-n // size) - 1


def _lanes(width: int, vector: int, values: Values, arithmetic: Adder) -> Values:
    rows, n = values.shape
    # Threads that get no element of a short row only add zeros.
    width = min(width, 1 << (-(-n // vector) - 1).bit_length())
    parts = _padded(values, width * vector).reshape(rows, -1, width, vector)
    # Thread by thread, its vectors in turn and each vector's elements in turn.
    threads = parts.transpose(0, 2, 1, 3).reshape(rows, width, -1)
    sums = np.moveaxis(_sequential(threads, arithmetic), -1, 0)
    while len(sums) > 1:
        half = len(sums) // 2
        sums = arithmetic.add(sums[:half], sums[half:])
    total: Values = sums[0]
    return total


def _lanes_depth(width: int, vector: int, n: int) -> int:
    if n == 0:
        return 0
    first = sum(min(vector, n - start) for start in range(0, n, width * vector))
    busy = min(width, -(-n // vector))
    return first - 1 + (busy - 1).bit_length()


# Compensated and wider ----------------------------------------------------------------------------


def _kahan(values: Values, arithmetic: Adder) -> Values:
    parts = first(values)
    total: Values = parts[0]
    lost: Values = np.zeros_like(total)
    for part in parts[1:]:
        y = arithmetic.subtract(part, lost)
        raised = arithmetic.add(total, y)
        lost = arithmetic.subtract(arithmetic.subtract(raised, total), y)
        total = raised
    return total


def _wider(wide: Format, values: Values, arithmetic: Adder) -> Values:
    inner = arithmetic.widened(wide)
    return arithmetic.cast(_sequential(inner.cast(values), inner))


# The table ----------------------------------------------------------------------------------------


def blocked(size: int) -> Order:
    """Blocks of `size` addends summed in turn, then the block sums in turn."""
    return _chain(
        f"blocked:{size}",
        f"blocks of {size} summed in turn, then the block sums in turn",
        partial(_blocked, size),
        partial(_blocked_depth, size),
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
        partial(_lanes, width, vector),
        partial(_lanes_depth, width, vector),
    )


def wider(wide: Format) -> Order:
    """In turn in the wider format `wide`, then rounded once."""
    return Order(
        name=f"wider:{wide.name}",
        description=f"in turn in a {wide.name} accumulator, rounded once at the end",
        tree=partial(_wider, wide),
        depth=_sequential_depth,
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
        _chain("sequential", "one after the other", _sequential, _sequential_depth),
        _chain(
            "pairwise",
            "NumPy's: halves down to blocks of 128, which are summed in 8 lanes",
            _pairwise,
            _pairwise_depth,
        ),
        blocked(128),
        lanes(256, 4),
        Order(
            name="kahan",
            description="one after the other, with Kahan's compensation",
            tree=_kahan,
            depth=_sequential_depth,
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
