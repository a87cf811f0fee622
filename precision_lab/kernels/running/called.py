# SPDX-License-Identifier: Apache-2.0
"""A kernel as the function that a run calls: arrays in, whatever it gave out."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from precision_lab.kernels.torch import tensors as bridge
from precision_lab.processes import findable

if TYPE_CHECKING:
    from collections.abc import Callable

    from precision_lab.kernels.kernel import Kernel


def called(kernel: Kernel) -> Callable[..., Any]:
    """The function ``(x, weight, bias, eps) -> y`` of a kernel, which raises what the kernel does.

    Calling the kernel itself makes one sentence of every error; a run wants the errors, and what
    was done beside computing.

    Parameters
    ----------
    kernel
        Of NumPy's arrays or of torch's tensors: those are made here, and seen as arrays again.
    """
    place = kernel.where.rpartition(":")[0]
    plain = _of_tensors(kernel) if kernel.framework == "torch" else kernel.function

    def function(*arguments: Any) -> Any:
        with findable(place):
            return plain(*arguments)

    return function


def _of_tensors(kernel: Kernel) -> Callable[..., Any]:
    import torch

    def function(x: Any, weight: Any, bias: Any, eps: float) -> Any:
        tensors = [
            None if one is None else bridge.tensor(one, kernel.device) for one in (x, weight, bias)
        ]
        with torch.no_grad():
            given = kernel.function(*tensors, eps)
        if isinstance(given, Mapping) and "y" in given:
            given = given["y"]
        return bridge.array(given) if bridge.is_tensor(given) else given

    return function


def keep_subnormals() -> None:
    """Have the processor keep subnormal numbers again, where torch is there to tell it."""
    if torch := sys.modules.get("torch"):
        torch.set_flush_denormal(False)
