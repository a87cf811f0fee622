# SPDX-License-Identifier: Apache-2.0
"""A failing call made small: fewer rows, fewer elements, simpler values, while it still fails."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from precision_lab.norm import Inputs

    Array = NDArray[Any]
    Fails = Callable[[Inputs], bool]

TRIES = 120
"""Calls of the kernel at most."""

WORK = 1 << 21
"""Elements at most, all tries together."""


@dataclass(eq=False)
class Shrinking:
    """A search with a budget.

    Parameters
    ----------
    inputs
        The smallest that fails so far.
    fails
        Whether a kernel fails on inputs.
    """

    inputs: Inputs
    fails: Fails
    tries: int = TRIES
    work: int = WORK

    def attempt(self, inputs: Inputs) -> bool:
        """Try smaller inputs, and keep them where they fail."""
        if self.tries <= 0 or self.work < inputs.x.size:
            return False
        self.tries -= 1
        self.work -= inputs.x.size
        if not self.fails(inputs):
            return False
        self.inputs = inputs
        return True


def shrink(inputs: Inputs, row: int, element: int, fails: Fails) -> Inputs:
    """Smaller inputs that still fail.

    Parameters
    ----------
    inputs
        A failing call.
    row, element
        Where it fails worst: that is kept.
    fails
        Whether the kernel fails on inputs; it may be called `TRIES` times.
    """
    state = Shrinking(inputs, fails)
    row, element = min(row, len(inputs.x) - 1), min(element, inputs.x.shape[1] - 1)
    for rows in _runs(len(inputs.x), row):
        if state.attempt(inputs.take(rows)):
            break
    for elements in _runs(inputs.x.shape[1], element):
        if state.attempt(state.inputs.take_elements(elements)):
            element -= elements.start
            break
    for name in ("bias", "weight"):
        if getattr(state.inputs, name) is not None:
            state.attempt(_with(state.inputs, name, lambda _array: None))
    for name in ("weight", "bias", "x"):
        if getattr(state.inputs, name) is not None:
            _simplify(state, name)
    return state.inputs


def _runs(count: int, kept: int) -> Iterator[slice]:
    """Runs that hold a place, the shortest first: ending there, and starting at 0."""
    size = 1
    while size < count:
        last = min(count, max(kept + 1, size))
        yield slice(last - size, last)
        if kept < size and last != size:
            yield slice(0, size)
        size = size + 1 if size < 4 else 2 * size


def _simplify(state: Shrinking, name: str) -> None:
    """Values of one argument: all alike, then halves of them 0, then with fewer bits."""
    filler = 1.0 if name == "weight" else 0.0
    for value in (filler, filler + 1.0):
        if state.attempt(_with(state.inputs, name, partial(np.full_like, fill_value=value))):
            return
    for bits in (1, 2, 3, 4, 6):
        if state.attempt(_with(state.inputs, name, partial(_short, bits=bits))):
            break
    size = getattr(state.inputs, name).shape[-1]
    step = size // 2
    while step:
        for start in range(0, size, step):
            part = slice(start, start + step)
            if (np.asarray(getattr(state.inputs, name)[..., part], np.float64) != filler).any():
                state.attempt(_with(state.inputs, name, partial(_filled, part=part, value=filler)))
        step //= 2
        if size // max(step, 1) > 16:
            break


def _with(inputs: Inputs, name: str, change: Callable[[Array], Array | None]) -> Inputs:
    return dataclasses.replace(inputs, **{name: change(getattr(inputs, name))})  # type: ignore[arg-type]


def _filled(array: Array, part: slice, value: float) -> Array:
    array = array.copy()
    array[..., part] = value
    return array


def _short(array: Array, bits: int) -> Array:
    """Values with so many bits."""
    with np.errstate(all="ignore"):
        significand, exponent = np.frexp(array.astype(np.float64))
        rounded = np.ldexp(np.round(np.ldexp(significand, bits)), exponent - bits)
        short = rounded.astype(np.float32).astype(array.dtype)
        finite = np.isfinite(short.astype(np.float64))
        return np.where(finite, short, array).astype(array.dtype)
