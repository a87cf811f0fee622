# SPDX-License-Identifier: Apache-2.0
"""Specimens: kernels of which it is known whether they are right, to try a validator on.

They are black boxes: plain NumPy in float32, without a step of the package's own emulation. Faults
are those that public reports tell of, and those that other projects' tests were seen to accept.

What no black box of this kind can show, and so has no specimen: overflow before the norm (the
residual stream, a fused residual addition), the backward pass, races and orders of summation that
change from run to run or with the batch (properties, not values), scales of quantised outputs,
layouts with strides, more than 2^31 elements, a default eps that nobody passed, and ties that are
rounded away from zero, which no computation with float32 statistics can be held to.
"""

from __future__ import annotations

from precision_lab.validation.specimens.specimen import Specimen
from precision_lab.validation.specimens.table import specimens

__all__ = ["Specimen", "specimens"]
