# SPDX-License-Identifier: Apache-2.0
"""What outputs say of the reciprocal root of their row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from precision_lab.identification.queries import deviations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from precision_lab.arithmetic import Floats
    from precision_lab.identification.queries import KernelAnswer


def least_squares_roots(calls: Sequence[KernelAnswer], gain: str, place: str) -> Floats:
    """The root of each row by least squares over its outputs.

    NaN where it left the range, infinite where the row says nothing of it: all deviations are 0.
    """
    found = []
    with np.errstate(all="ignore"):
        for call in calls:
            inputs, y = call.inputs, call.y
            g: Floats = np.ones(1)
            if inputs.weight is not None and gain != "ignored":
                g = inputs.weight.astype(np.float64) + (gain == "one_plus")
            if inputs.bias is not None:
                bias = inputs.bias.astype(np.float64)
                y = y - (bias if place == "after_gain" else bias * g)
            z = deviations(inputs) * g
            root = np.sum(y * z, -1) / np.sum(z * z, -1)
            root[np.isinf(root)] = np.nan
            found.append(np.where(z.any(-1), root, np.inf))
    return np.concatenate(found)


def distance(root: Floats, observed: Floats) -> float:
    """How far roots are from those observed, relative, in the mean of rows; 1 each at most.

    Rows of zeros, or of one value where the mean is subtracted, say nothing of their root: it is
    observed as infinite.
    """
    seen = ~np.isinf(observed)
    root, observed = root[seen], observed[seen]
    if not len(root):
        return 0.0
    with np.errstate(all="ignore"):
        larger = np.maximum(np.abs(root), np.abs(observed))
        distances = np.minimum(np.abs(root - observed) / larger, 1.0)
    lost, unseen = (~np.isfinite(values) | (values == 0) for values in (root, observed))
    return float(np.mean(np.where(lost | unseen, 1.0 * (lost != unseen), distances)))
