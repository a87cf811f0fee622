# SPDX-License-Identifier: Apache-2.0
"""Black boxes that claim to compute a norm: found by name, adapted, run through one function.

It must not know whether a kernel is right.
"""

from __future__ import annotations

from precision_lab.kernels.finding import find_kernel, found_again
from precision_lab.kernels.installed_norms import installed
from precision_lab.kernels.kernel import DEVICES, FRAMEWORKS, Kernel

__all__ = ["DEVICES", "FRAMEWORKS", "Kernel", "find_kernel", "found_again", "installed"]
