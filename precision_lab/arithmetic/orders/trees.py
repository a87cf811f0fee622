# SPDX-License-Identifier: Apache-2.0
"""What the trees of orders are built from, and what they ask of an arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from precision_lab.arithmetic.protocol import Adder, Values


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
