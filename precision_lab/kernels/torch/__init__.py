# SPDX-License-Identifier: Apache-2.0
"""Kernels of torch: functions, modules, modules inside a model, and what enters their norms.

torch is imported only where a kernel needs it.
"""

from __future__ import annotations

from precision_lab.kernels.torch.model_capture import ROWS, Recorded, capture
from precision_lab.kernels.torch.model_norms import UnreadNorm, norms_of, unread_norms

__all__ = ["ROWS", "Recorded", "UnreadNorm", "capture", "norms_of", "unread_norms"]
