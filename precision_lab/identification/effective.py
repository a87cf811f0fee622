# SPDX-License-Identifier: Apache-2.0
"""The eps that outputs show, where it is not the one that was given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from precision_lab.identification.observed_roots import least_squares_roots
from precision_lab.identification.queries import deviations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from precision_lab.identification.queries import KernelAnswer

SMALL = 4.0
"""Rows whose mean square is at most so many eps show it."""

DECADE = 0.2
"""How far from a power of ten, in decades, an eps may be seen."""


def effective_eps(calls: Sequence[KernelAnswer], weight_offset: float = 0.0) -> list[float] | None:
    """The eps of each call as its outputs show it, to the decade; None where it is the given one.

    A row shows ms + eps = 1/r². Of all rows near √eps the middle one is taken. Where two calls with
    other eps show the same, that is the number seen; else the given one times a power of ten.
    """
    shown = []
    roots = least_squares_roots(calls, "one_plus" if weight_offset == 1 else "plain", "after_gain")
    start = 0
    for call in calls:
        square = np.mean(np.square(deviations(call.inputs)), -1)
        root = roots[start : start + len(square)]
        start += len(square)
        small = (square <= SMALL * call.inputs.eps) & np.isfinite(root) & (root > 0)
        if not small.any():
            return None
        shown.append(float(np.median(1 / np.square(root[small]) - square[small])))
    configured = np.array([call.inputs.eps for call in calls])
    found = np.array(shown)
    if not (found > 0).all():
        return None
    shown = 10.0 ** np.round(np.log10(found))
    if len(set(configured)) > 1 and len(set(shown)) == 1:
        return [float(one) for one in shown]
    steps = np.log10(found / configured)
    step = round(float(np.median(steps)))
    if step == 0 or np.abs(steps - step).max() > DECADE:
        return None
    return [one * 10.0**step for one in configured.tolist()]
