# SPDX-License-Identifier: Apache-2.0
"""What a kernel is called with so that its outputs tell plans apart, and what it answered."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.inputs import Draws
from precision_lab.norm import Inputs, Norm, check

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from precision_lab.arithmetic import Floats
    from precision_lab.numbers import Format

SIZES = {3: 160, 40: 64}
"""Elements of a row, and the rows of such: in short rows n and n − 1 differ, in long ones sums."""
ELEMENTS, FEWEST_ROWS = 2560, 8
"""Of a call with rows of another size: rows are as many as give the elements."""
EPS = (1e-6, 1e-5)
NEAR_EPS = (0.01, 0.1, 1.0, 10.0)
"""Row RMS in units of √eps, where the place of eps shows."""
OFFSETS = (3.0, 30.0, 1000.0)
"""Means, in standard deviations, where the kind of statistic shows."""
SIZES_OF_X = (1.0, 8.0, 300.0, 3000.0)
"""Standard deviations: from 256 on float16's squares overflow."""
ROWS_OF_X, WEIGHT, BIAS = 0, 2, 3
"""Streams of random numbers."""
REFUSALS = (NotImplementedError, ValueError, TypeError, AssertionError, RuntimeError)
"""Errors by which a kernel may say that it takes no bias."""


@dataclass(frozen=True, eq=False)
class KernelAnswer:
    """One call and its answer.

    Parameters
    ----------
    inputs
        What was asked.
    y
        [rows, hidden]: what came back, in float64.
    """

    inputs: Inputs
    y: Floats

    @cached_property
    def bits(self) -> NDArray[np.int64]:
        """The answer's bits, every NaN the same."""
        return bits(self.y)

    def of(self, **changes: Any) -> KernelAnswer:
        """The same answer, taken for one to another question: another norm or eps."""
        return KernelAnswer(dataclasses.replace(self.inputs, **changes), self.y)


def bits(y: NDArray[Any]) -> NDArray[np.int64]:
    """Values as the bits of float64, every NaN the same: signs of zeros count."""
    wide = y.astype(np.float64)
    return np.where(np.isnan(wide), np.nan, wide).view(np.int64)


def deviations(inputs: Inputs) -> Floats:
    """What a norm multiplies by the root: x, less its mean where the norm is centred."""
    x = inputs.x.astype(np.float64)
    return x - np.mean(x, -1, keepdims=True) if inputs.norm.centred else x


def rows_by_size(sizes: Iterable[int]) -> dict[int, int]:
    """How many rows of each size a call has."""
    return {n: max(FEWEST_ROWS, ELEMENTS // n) for n in sizes}


def make_queries(
    norm: Norm,
    format: Format,
    weight_format: Format,
    *,
    sizes: Mapping[int, int] = MappingProxyType(SIZES),
    eps: Sequence[float] = EPS,
    weight_offset: float = 0.0,
    biased: bool = True,
    weighted: bool = True,
    seed: int = 0,
) -> Iterator[Inputs]:
    """The inputs of the calls, in order.

    Rows near √eps, rows with a mean of many standard deviations, and rows of several sizes, with a
    random gain; for a LayerNorm with a random bias.

    Parameters
    ----------
    norm, format, weight_format, weight_offset
        As for `identify`.
    sizes
        Elements of a row, and the rows of such.
    eps
        The values given.
    biased
        Whether a LayerNorm is given a bias.
    weighted
        Whether a weight is given.
    seed
        Of the inputs.
    """
    draws = Draws(seed)
    limit = format.largest / 4
    for n, rows in sizes.items():
        normal = draws.normal(ROWS_OF_X, rows, n)
        gain = 1 + draws.normal(WEIGHT, n) / 2 - weight_offset
        bias = draws.normal(BIAS, n) if norm.centred and biased else None
        for one in eps:
            spreads = [*(np.sqrt(one) * share for share in NEAR_EPS), *SIZES_OF_X]
            kinds = [(spread, 0.0) for spread in spreads] + [(1.0, offset) for offset in OFFSETS]
            chosen = np.array([kinds[i % len(kinds)] for i in range(rows)])
            x = chosen[:, :1] * normal + chosen[:, 1:]
            yield check(
                norm,
                format.cast(np.clip(x, -limit, limit)),
                weight_format.cast(gain) if weighted else None,
                None if bias is None else weight_format.cast(bias),
                eps=one,
                weight_offset=weight_offset,
            )


def ask(kernel: Callable[..., Any], inputs: Inputs) -> KernelAnswer:
    """Call a kernel; its answer is an array, or a dict that holds it as ``y``."""
    x, weight, bias = inputs.arguments()
    answer = kernel(x.copy(), weight, bias, inputs.eps)
    y = answer["y"] if isinstance(answer, dict) else answer
    return KernelAnswer(inputs, np.asarray(y).astype(np.float64))


def ask_all(
    kernel: Callable[..., Any], norm: Norm, *given: Any, **chosen: Any
) -> list[KernelAnswer]:
    """Ask every question of `make_queries`, without a bias where a LayerNorm refuses one."""
    try:
        return [ask(kernel, inputs) for inputs in make_queries(norm, *given, **chosen)]
    except REFUSALS as refused:
        if not norm.centred:
            raise
        try:
            without = make_queries(norm, *given, biased=False, **chosen)
            return [ask(kernel, inputs) for inputs in without]
        except REFUSALS:
            # It was not the bias.
            raise refused from None
