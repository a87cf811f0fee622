# SPDX-License-Identifier: Apache-2.0
"""How the tests of other projects draw their inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from precision_lab.arithmetic import Floats
from precision_lab.inputs import Draws
from precision_lab.numbers import Format

Drawing: TypeAlias = Callable[[Draws, int, int, int, Format], Floats]
"""(draws, stream, rows, hidden, format) -> values, to be cast to the format."""

SPARE = 16
"""A drawing's further streams lie so far from its first."""


def normal(draws: Draws, stream: int, rows: int, hidden: int, _format: Format) -> Floats:
    """Standard normal values."""
    return draws.normal(stream, rows, hidden)


def normal_over_twice_hidden(
    draws: Draws, stream: int, rows: int, hidden: int, _format: Format
) -> Floats:
    """Standard normal values divided by twice the length of the row."""
    return draws.normal(stream, rows, hidden) / (2 * hidden)


def normal_about(mean: float, deviation: float) -> Drawing:
    """Normal values about a mean."""
    return lambda draws, stream, rows, hidden, _format: (
        mean + deviation * draws.normal(stream, rows, hidden)
    )


def uniform(low: float, high: float) -> Drawing:
    """Values spread evenly from low to high."""
    return lambda draws, stream, rows, hidden, _format: (
        low + (high - low) * draws.uniform(stream, rows, hidden)
    )


def constant(value: float) -> Drawing:
    """One value throughout."""
    return lambda _draws, _stream, rows, hidden, _format: np.full((rows, hidden), value)


def limit(value: Callable[[Format], float]) -> Drawing:
    """One value throughout that depends on the format."""
    return lambda _draws, _stream, rows, hidden, row: np.full((rows, hidden), value(row))


def sprinkled(value: float, share: float) -> Drawing:
    """Standard normal values, a share of which are another value."""

    def draw(draws: Draws, stream: int, rows: int, hidden: int, _format: Format) -> Floats:
        taken = draws.uniform(stream + SPARE, rows, hidden) < share
        return np.where(taken, value, draws.normal(stream, rows, hidden))

    return draw


def with_nan_row(draws: Draws, stream: int, rows: int, hidden: int, _format: Format) -> Floats:
    """Standard normal values, and a NaN in the row in the middle."""
    values = draws.normal(stream, rows, hidden)
    values[rows // 2, hidden // 2] = np.nan
    return values


def with_limits_first(draws: Draws, stream: int, rows: int, hidden: int, format: Format) -> Floats:
    """Standard normal values that begin with 0, both ends of the range, infinity and NaN."""
    values = draws.normal(stream, rows, hidden)
    values.flat[:5] = [0.0, format.largest, -format.largest, np.inf, np.nan]
    return values
