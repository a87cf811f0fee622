# SPDX-License-Identifier: Apache-2.0
"""Black boxes that claim to compute a norm: functions of NumPy arrays or of torch tensors.

`find_kernel` finds one by the name of its file or module and gives a `Kernel`, which is called with
NumPy's and ml_dtypes' arrays whatever it takes, and gives such an array. A `Probe` finds them in a
process of its own. `load` finds any function, `load_values` anything.
"""

from __future__ import annotations

from precision_lab.kernels.finding import find_kernel, found_again
from precision_lab.kernels.kernel import DEVICES, FRAMEWORKS, Kernel
from precision_lab.kernels.loading import RefusedError, findable, guarded, load, load_values
from precision_lab.kernels.probing import Probe

__all__ = [
    "DEVICES",
    "FRAMEWORKS",
    "Kernel",
    "Probe",
    "RefusedError",
    "find_kernel",
    "findable",
    "found_again",
    "guarded",
    "load",
    "load_values",
]
