# SPDX-License-Identifier: Apache-2.0
"""Rows whose sums pass float32's range: what any float32 kernel gives for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from precision_lab.validation.soundness import Allowance, Exact, last_cast

if TYPE_CHECKING:
    from precision_lab.arithmetic import Floats, Mask
    from precision_lab.kernels.running import Claim
    from precision_lab.norm import Inputs

SAFE = 2.0**120
"""Up to this, n times the largest square passes no range."""

LOOSE = 2.0**-10
"""What a scaled statistic in float32 may err by, relative, with room to spare."""


def wrong_beyond_range(inputs: Inputs, y: Floats, claim: Claim) -> tuple[Mask, int]:
    """[rows, hidden]: outputs that no float32 computation gives; and how many are not judged.

    Of a row whose squares or their sum overflow, the root is 0 and the outputs are 0, or the bias;
    with a wider or a scaled statistic they are exact but for rounding; a mean that overflows makes
    them infinite or NaN.
    """
    wrong = np.zeros(y.shape, bool)
    size = np.abs(inputs.x.astype(np.float64)).max(-1, initial=0.0)
    with np.errstate(all="ignore"):
        rows = np.nonzero(np.isfinite(size) & (size**2 * y.shape[1] > SAFE))[0]
    if not rows.size:
        return wrong, 0
    exact = Exact(inputs.take(rows))
    with np.errstate(all="ignore"):
        beyond = ~Allowance(exact).judged[:, 0] & exact.finite[:, 0]
        rest = last_cast(claim).of_bias(exact.inputs.bias)
        value, gain = exact.output[0], exact.normalised[0] * exact.gain
        scale = np.abs(gain) + (0.0 if exact.bias is None else np.abs(exact.bias))
        target = claim.output_format
        reach = scale * (4 * target.epsilon + LOOSE) + target.ulp(value)
        some = y[rows]
        right = ~np.isfinite(some) | (some == rest) | (np.abs(some - value) <= reach)
        right |= (np.abs(value) > target.largest) & (np.abs(some) == target.largest)
    wrong[rows] = ~right & beyond[:, None]
    return wrong, int(np.count_nonzero(beyond)) * y.shape[1]
