# SPDX-License-Identifier: Apache-2.0
"""Kernels that do what no kernel should, for tests to put into a file."""

from __future__ import annotations

TEXT = """
import os, signal, sys, time
import numpy as np

def sound(x, weight, bias, eps):
    f = x.astype(np.float32)
    y = f / np.sqrt(np.mean(f * f, axis=-1, keepdims=True) + np.float32(eps))
    return (y if weight is None else y * weight.astype(np.float32)).astype(x.dtype)

def odd(x):
    return x.shape[-1] == 8

def exits(x, weight, bias, eps):
    if odd(x):
        os._exit(3)
    return sound(x, weight, bias, eps)

def killed(x, weight, bias, eps):
    if odd(x):
        os.kill(os.getpid(), signal.SIGKILL)
    return sound(x, weight, bias, eps)

def faults(x, weight, bias, eps):
    if odd(x):
        os.kill(os.getpid(), signal.SIGSEGV)
    return sound(x, weight, bias, eps)

def hangs(x, weight, bias, eps):
    if odd(x):
        time.sleep(600)
    return sound(x, weight, bias, eps)

def raises(x, weight, bias, eps):
    if odd(x) and bool((x == x[..., :1]).all()):
        raise ZeroDivisionError("no such luck")
    return sound(x, weight, bias, eps)

def interrupts(x, weight, bias, eps):
    if odd(x):
        raise KeyboardInterrupt
    return sound(x, weight, bias, eps)

def leaves(x, weight, bias, eps):
    if odd(x):
        sys.exit(4)
    return sound(x, weight, bias, eps)

def prints(x, weight, bias, eps):
    if odd(x):
        print("a word")
    return sound(x, weight, bias, eps)

def writes(x, weight, bias, eps):
    if odd(x):
        os.write(1, b"past Python")
    return sound(x, weight, bias, eps)

def buffers(x, weight, bias, eps):
    if odd(x):
        sys.stdout.buffer.write(b"bytes")
    return sound(x, weight, bias, eps)

def reads(x, weight, bias, eps):
    if odd(x):
        assert sys.stdin.read() == ""
    return sound(x, weight, bias, eps)

def strict(x, weight, bias, eps):
    np.seterr(all="raise")
    return sound(x, weight, bias, eps)

def flushes(x, weight, bias, eps):
    import torch
    torch.set_flush_denormal(True)
    return sound(x, weight, bias, eps)

def shape(x, weight, bias, eps):
    return sound(x, weight, bias, eps)[:, :1]

def type_(x, weight, bias, eps):
    return sound(x, weight, bias, eps).tolist()

def wrong(x, weight, bias, eps):
    y = sound(x, weight, bias, eps)
    if odd(x):
        y[..., -1] = 0
    return y

def signature(x):
    return x

number = 3
"""
