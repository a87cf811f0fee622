# SPDX-License-Identifier: Apache-2.0
"""Rows of what enters the norms of a torch model, kept while the model runs.

Rows are kept by the fractional part of their number times the golden ratio: the smallest are kept.
Such rows lie evenly among all rows seen so far, however many follow, never in step with the length
of a sentence, and are the same on every run (three-distance theorem; Knuth, The Art of Computer
Programming, volume 3, section 6.4).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.exceptions import InputError
from precision_lab.kernels.torch import tensors as bridge

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from precision_lab.kernels.torch.model_norms import ModelNorm

    Array = NDArray[Any]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""The golden ratio's fractional part in units of 2⁻⁶⁴, odd, so that no two rows share a key."""
BITS = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}
INPUTS = ("input", "x", "hidden_states", "hidden_state", "inputs")
RESIDUALS = ("residual", "residuals")


@dataclass
class RowSample:
    """The rows kept of what entered one norm."""

    most: int
    hidden: int | None
    count: int = 0
    x: Array | None = None
    numbers: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    trouble: str = ""

    def add(self, tensor: Any) -> None:
        """Take what entered in one call, of shape [..., hidden]."""
        hidden = self.hidden or int(tensor.shape[-1])
        if tensor.numel() % hidden or not _ends_in(tensor.shape, hidden):
            self.trouble = f"it was given {tuple(tensor.shape)}, whose rows are not of {hidden}"
            return
        self.hidden = hidden
        flat = tensor.detach().reshape(-1, hidden)
        numbers = np.arange(self.count, self.count + len(flat), dtype=np.uint64)
        self.count += len(flat)
        everyone = np.concatenate([self.numbers, numbers])
        with np.errstate(over="ignore"):
            keys = everyone * GOLDEN
        chosen = np.sort(np.argsort(keys, kind="stable")[: self.most])
        old = chosen[chosen < len(self.numbers)]
        new = chosen[chosen >= len(self.numbers)] - len(self.numbers)
        entered = _gather(flat, new)
        self.numbers = everyone[chosen]
        if self.x is None:
            self.x = entered
            return
        kept = self.x[old]
        if kept.dtype != entered.dtype:
            # Both are exact in a wider type.
            wide = np.float64 if 8 in (kept.itemsize, entered.itemsize) else np.float32
            kept, entered = kept.astype(wide), entered.astype(wide)
        self.x = np.concatenate([kept, entered])


class Recorder:
    """Hooks in front of norms, from `start` to `stop`.

    Parameters
    ----------
    found
        Modules and what is known of them.
    most
        Rows kept for each.
    """

    def __init__(self, found: list[tuple[Any, ModelNorm]], most: int) -> None:
        self.norms = [norm for _, norm in found]
        self.rows = [RowSample(most, norm.hidden) for norm in self.norms]
        self._modules = [module for module, _ in found]
        self._handles: list[Any] = []

    def start(self) -> None:
        """Put the hooks in."""
        if self._handles:
            raise InputError("the model is being recorded already: leave the with block first")
        try:
            for module, rows in zip(self._modules, self.rows, strict=True):
                hook = _hook(rows)
                self._handles.append(module.register_forward_pre_hook(hook, with_kwargs=True))
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Take them out; nothing else of the model was touched."""
        while self._handles:
            self._handles.pop().remove()


def _hook(rows: RowSample) -> Any:
    import torch

    def before(_module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        tensors = [*args, *(kwargs[name] for name in INPUTS if name in kwargs), *kwargs.values()]
        x = next((one for one in tensors if isinstance(one, torch.Tensor)), None)
        if x is None or not x.is_floating_point():
            rows.trouble = "it was given no tensor of numbers"
        elif any(kwargs.get(name) is not None for name in RESIDUALS):
            rows.trouble = "it adds a residual to its input, which is not seen"
        elif not torch.compiler.is_compiling():
            with torch.no_grad():
                rows.add(x)

    return before


def _gather(flat: Any, chosen: NDArray[np.intp]) -> Array:
    """Rows of a tensor, bit for bit, whatever its type and device."""
    import torch

    # As integers, for there are types that torch does not index.
    bits = flat.resolve_conj().resolve_neg().view(getattr(torch, BITS[flat.element_size()]))
    rows = bits[torch.from_numpy(chosen).to(flat.device)].cpu()
    return np.array(bridge.array(rows.view(flat.dtype)))


def _ends_in(shape: Any, hidden: int) -> bool:
    """Whether the last dimensions make a row."""
    size = 1
    for length in reversed(shape):
        size *= int(length)
        if size == hidden:
            return True
        if size > hidden:
            return False
    return False
