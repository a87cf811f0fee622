# SPDX-License-Identifier: Apache-2.0
"""Ways in which code changes how its thread computes, and kernels that leave one behind."""

from __future__ import annotations

import ctypes
import platform
from contextlib import contextmanager

import pytest

linux = pytest.mark.skipif(
    (platform.system(), platform.machine()) != ("Linux", "x86_64"),
    reason="the numbers of the modes are those of another processor or library",
)
ROUNDING = {"up": 0x800, "down": 0x400, "toward zero": 0xC00}
FLUSHING = {"FTZ": 0x8000, "DAZ": 0x40}
"""Bits of the MXCSR, which glibc keeps in the eighth word of an environment."""
KINDS = {**dict.fromkeys(ROUNDING, "rounding"), **dict.fromkeys(FLUSHING, "flush")}
"""What a verdict calls each."""

SETTING = f"""
import ctypes

ROUNDING, FLUSHING = {ROUNDING}, {FLUSHING}
LIBRARY = ctypes.CDLL("libm.so.6")

def set_mode(name):
    if name in ROUNDING:
        LIBRARY.fesetround(ROUNDING[name])
        return
    environment = (ctypes.c_uint32 * 8)()
    LIBRARY.fegetenv(environment)
    environment[7] |= FLUSHING[name]
    LIBRARY.fesetenv(environment)
"""
TEXT = f"""{SETTING}
import numpy as np

def sound(x, weight, bias, eps):
    wide = x.astype(np.float32)
    y = wide / np.sqrt(np.mean(wide * wide, axis=-1, keepdims=True) + np.float32(eps))
    return (y if weight is None else y * weight.astype(np.float32)).astype(x.dtype)

def leaves(name):
    def kernel(x, weight, bias, eps):
        y = sound(x, weight, bias, eps)
        set_mode(name)
        return y
    return kernel

def raises(name):
    def kernel(x, weight, bias, eps):
        set_mode(name)
        raise ValueError("no")
    return kernel

up, down, toward_zero, FTZ, DAZ = map(leaves, ("up", "down", "toward zero", "FTZ", "DAZ"))
raises_up, raises_FTZ = map(raises, ("up", "FTZ"))

def error_state(x, weight, bias, eps):
    y = sound(x, weight, bias, eps)
    np.seterr(all="raise")
    return y
"""
NAMES = {name: name.replace(" ", "_") for name in KINDS}
"""The kernel of the file that leaves each."""


@contextmanager
def mode(name):
    """This thread in a mode, which is put back by C's own function."""
    made = {}
    exec(SETTING, made)  # noqa: S102 - the text above
    saved = (ctypes.c_uint32 * 8)()
    made["LIBRARY"].fegetenv(saved)
    made["set_mode"](name)
    try:
        yield
    finally:
        made["LIBRARY"].fesetenv(saved)
