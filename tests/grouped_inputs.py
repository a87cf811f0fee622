# SPDX-License-Identifier: Apache-2.0
"""Norms of other groups than rows, built by hand from `Inputs`."""

from __future__ import annotations

import numpy as np

from precision_lab.norm import textbook
from precision_lab.norm.arguments import Inputs
from precision_lab.norm.groups import Groups
from precision_lab.norm.norm import norms
from precision_lab.numbers.table import formats


def made(norm, x, weight, bias, *, groups, eps, offset=0.0):
    """Inputs of these groups; gain and bias run along the channels."""
    weight, bias = (
        None if part is None else groups.unfold_parameter(part) for part in (weight, bias)
    )
    return Inputs(norms[norm], groups.unfold(x), weight, bias, eps, offset, groups)


def group_norm(x, count, weight=None, bias=None, *, eps=1e-5):
    """GroupNorm of [N, C, …] with so many groups a sample."""
    elements = int(np.prod(x.shape[1:])) // count
    return made("layer", x, weight, bias, eps=eps,
                groups=Groups(x.shape, elements, channels=1))  # fmt: skip


def batch_norm(x, weight=None, bias=None, *, eps=1e-5):
    """BatchNorm of [N, C], whose gain and bias are one number a group."""
    groups = Groups(x.shape, len(x), order=(1, 0), channels=1)
    weight, bias = (None if part is None else part[:, None] for part in (weight, bias))
    return Inputs(norms["layer"], groups.unfold(x), weight, bias, eps, 0.0, groups)


def partial_norm(norm, x, entering, weight=None, bias=None, *, eps=1e-5, offset=0.0):
    """A norm of [..., hidden] whose statistic is over some elements of each row."""
    groups = Groups(x.shape, x.shape[-1], np.asarray(entering, bool))
    return made(norm, x, weight, bias, groups=groups, eps=eps, offset=offset)


def first(hidden, share):
    """[hidden]: the first elements, at least one."""
    return np.arange(hidden) < max(1, int(hidden * share))


def mpmath_rounding(inputs, name, group, element):
    """One output rounded to a format narrower than float64 by mpmath alone."""
    low, high = textbook.neighbours(inputs, group, element)
    # Of the neighbours the one with last bit 1 rounds to any narrower format as the number does.
    odd = low if low == high or int(np.float64(abs(low)).view(np.int64)) % 2 else high
    return float(formats[name].round(odd))
