# SPDX-License-Identifier: Apache-2.0
"""Kernels as a user writes them, sound and not, for tests to put into a file."""

from __future__ import annotations

TEXT = """
import os, signal, time
import numpy as np
from pathlib import Path

def late(x, weight, bias, eps):
    from precision_lab import emulate
    return emulate(x, weight, bias, eps=eps, plan="late")

def plain(x, weight, bias, eps):
    wide = x.astype(np.float32)
    y = wide / np.sqrt(np.mean(wide * wide, axis=-1, keepdims=True) + np.float32(eps))
    return (y if weight is None else y * weight.astype(np.float32)).astype(x.dtype)

def wide(x, weight, bias, eps):
    return plain(x.astype(np.float32), weight, bias, eps)

def picky(x, weight, bias, eps):
    if x.dtype == np.float16:
        raise ValueError("no half precision")
    return plain(x, weight, bias, eps)

def deadly(x, weight, bias, eps):
    if x.dtype == np.float16:
        os.kill(os.getpid(), signal.SIGKILL)
    return plain(x, weight, bias, eps)

def hangs(x, weight, bias, eps):
    if x.dtype == np.float16:
        time.sleep(1000)
    return plain(x, weight, bias, eps)
"""
