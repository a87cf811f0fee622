# SPDX-License-Identifier: Apache-2.0
"""What an order of summation is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from precision_lab.arithmetic.orders.error_factors import MARGIN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from precision_lab.arithmetic.protocol import Adder, Fusing, Values
    from precision_lab.numbers import Format


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
