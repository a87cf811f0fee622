# SPDX-License-Identifier: Apache-2.0
"""What libraries give at many hidden sizes, beside the plans that should give the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import flax_norms
import numpy as np
import onnxruntime_norms
import torch_norms
from library_inputs import EPS, FORMATS, differing, made_for_a_size, revealing_bias

from precision_lab.plan.emulation import emulate
from precision_lab.plan.table import plans

if TYPE_CHECKING:
    from precision_lab.plan.plan import Plan


class LibraryOutput(NamedTuple):
    """What an implementation gave, and the plan that should give it."""

    title: str
    plan: Plan
    eps: float
    x: np.ndarray
    gain: np.ndarray | None
    bias: np.ndarray | None
    y: np.ndarray

    def differing(self, *, signs=True):
        """How many outputs differ in a bit from the plan's; zeros may have another's sign."""
        actual = emulate(self.x, self.gain, self.bias, eps=self.eps, plan=self.plan)
        if not signs:
            actual = np.where((self.y == 0) & (actual == 0), self.y, actual)
        return differing(self.y, actual)

    def __repr__(self):
        """In a line."""
        parts = [name for name in ("gain", "bias") if getattr(self, name) is not None]
        return f"{self.title} {self.x.dtype.name} {self.x.shape} {self.eps} {' '.join(parts)}"


def torch_sizes(name, format, sizes, seed):
    """torch's norms and transformers' modules, by the name of their plan."""
    title, plan = ".".join(torch_norms.MODULES[name]), plans[name]
    for hidden in sizes:
        eps = EPS[hidden % len(EPS)]
        x, gain, bias = made_for_a_size(format, hidden, seed)
        cases = [(x, *parts) for parts in torch_norms.parameters(name, gain, bias)]
        if plan.norm == "layer":
            walk = x[4:5]
            cases.append((walk, gain, revealing_bias(walk, gain, eps=eps, plan=name)))
        for rows, weight, shift in cases:
            y = torch_norms.real(name, rows, weight, eps, bias=shift)
            yield LibraryOutput(title, plan, eps, rows, weight, shift, y)


def onnxruntime_sizes(operator, format, sizes, seed):
    """onnxruntime's operators, whose gain must be there."""
    if (operator, format) == ("RMSNormalization", "bfloat16"):
        return
    eps, layer = 1e-5, onnxruntime_norms.OPERATORS[operator][0] == "layer"
    runs = [
        onnxruntime_norms.session(operator, format, "hidden", bias=bias, eps=eps)
        for bias in ((False, True) if layer else (False,))
    ]
    for hidden in sizes:
        plan = onnxruntime_norms.plan_of(operator, format, hidden)
        x, gain, bias = made_for_a_size(format, hidden, seed)
        cases = [(x, None)]
        if layer:
            walk = x[4:5]
            revealing = revealing_bias(walk, gain, eps=eps, plan=plan.name)
            cases += [(x, bias), (walk, revealing)]
        for rows, shift in cases:
            parts = {} if shift is None else {"bias": shift}
            y = onnxruntime_norms.real(runs[len(parts)], x=rows, weight=gain, **parts)
            yield LibraryOutput(f"onnxruntime {operator}", plan, eps, rows, gain, shift, y)


def flax_sizes(sizes, seed, folder):
    """flax's norms with a rounded root: small arrays of an even size, large ones of an odd one."""
    eps, arrays = 1e-6, []
    for hidden in sizes:
        for format in FORMATS:
            x, gain, bias = made_for_a_size(format, hidden, seed)
            if hidden % 2:
                x = np.tile(x, (-(-flax_norms.LARGE // x.size), 1))
            if flax_norms.compared(x):
                arrays += [
                    (f"{norm}/{format}/linen/{eps}/{hidden}", x, gain, part)
                    for norm, part in (("rms", None), ("layer", bias))
                ]
    outputs = flax_norms.outputs(folder, arrays, flags=flax_norms.FLAG)
    for name, x, gain, bias in arrays:
        plan = flax_norms.plan_of(name, x, inverse="reciprocal_sqrt")
        yield LibraryOutput("flax with a rounded root", plan, eps, x, gain, bias, outputs[name])
