# SPDX-License-Identifier: Apache-2.0
"""In which order is a row summed? `orders` has a row for each.

It must not know what the sum is for.
"""

from __future__ import annotations

from precision_lab.arithmetic.orders.error_factors import chain_factor
from precision_lab.arithmetic.orders.onnxruntime import (
    DOUBLES,
    ORT_LANES,
    fused_mean_square,
    fused_two_pass,
    laned_depth,
)
from precision_lab.arithmetic.orders.order import Order
from precision_lab.arithmetic.orders.table import RULES, orders
from precision_lab.arithmetic.orders.torch_welford import (
    WELFORD_LANES,
    Layout,
    chunked_welford,
    counted,
    shares,
)

__all__ = [
    "DOUBLES",
    "ORT_LANES",
    "RULES",
    "WELFORD_LANES",
    "Layout",
    "Order",
    "chain_factor",
    "chunked_welford",
    "counted",
    "fused_mean_square",
    "fused_two_pass",
    "laned_depth",
    "orders",
    "shares",
]
