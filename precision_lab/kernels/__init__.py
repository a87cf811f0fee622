# SPDX-License-Identifier: Apache-2.0
"""Which black box claims to compute a norm? `find_kernel` finds it by name and adapts it.

It must not know whether a kernel is right.
"""

from __future__ import annotations

from precision_lab.kernels.finding import find_kernel, recover_kernel
from precision_lab.kernels.installed_norms import installed
from precision_lab.kernels.kernel import Kernel

__all__ = ["Kernel", "find_kernel", "installed", "recover_kernel"]
