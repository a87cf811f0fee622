# SPDX-License-Identifier: Apache-2.0
"""Gains and biases, one row each: [hidden] float64, with the same bits on every machine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.exceptions import check_integer
from precision_lab.inputs.draws import Draws
from precision_lab.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from precision_lab.arithmetic import Floats


# Streams of their own: a gain does not repeat the values of the inputs beside it.
GAIN, GAIN_SIGNS, BIAS, SIZES = range(16, 20)


@dataclass(frozen=True)
class Vector:
    """A way to choose a gain or a bias: [hidden] float64 from draws, or None."""

    name: str
    description: str
    make: Callable[[Draws, int], Floats | None]
    aliases: tuple[str, ...] = ()


def make_gain(gain: Vector | str, *, hidden: int, seed: int) -> Floats | None:
    """Make a gain of `gains`: [hidden] float64, or None for ``none``.

    Raises
    ------
    InputError
        For an unknown gain, a hidden size below 1 or a seed out of range.
    """
    return _vector(gains.find(gain), hidden, seed)


def make_bias(bias: Vector | str, *, hidden: int, seed: int) -> Floats | None:
    """Make a bias of `biases`, as `make_gain` does."""
    return _vector(biases.find(bias), hidden, seed)


def _vector(row: Vector, hidden: int, seed: int) -> Floats | None:
    draws = Draws(check_integer("seed", seed, 0, 2**64 - 1))
    return row.make(draws, check_integer("hidden", hidden, 1, 2**27))


def _powers(draws: Draws, hidden: int) -> Floats:
    powers = draws.below(7, GAIN, hidden) - 3
    return draws.signs(GAIN_SIGNS, hidden) * np.ldexp(1.0, powers.astype(np.int32))


def _scaled(draws: Draws, hidden: int, *, least: int, count: int) -> Floats:
    """±2^k (1 + N/10) with so many k from the least up."""
    powers = draws.below(count, SIZES, hidden) + least
    near = 1.0 + 0.1 * draws.normal(GAIN, hidden)
    return draws.signs(GAIN_SIGNS, hidden) * np.ldexp(near, powers.astype(np.int32))


def _mixed(draws: Draws, hidden: int) -> Floats:
    """Element by element another of the gains that are numbers, but for the huge ones."""
    kinds = [
        row.make(draws, hidden) for row in gains.values()
        if row.name not in ("none", "huge", "mixed")
    ]  # fmt: skip
    return np.choose(np.arange(hidden) % len(kinds), kinds)  # type: ignore[arg-type]


gains: Table[Vector] = Table(
    "gain",
    [
        Vector("none", "no gain", lambda _draws, _hidden: None),
        Vector("ones", "1", lambda _draws, hidden: np.ones(hidden), ("one",)),
        Vector(
            "random", "1 + N/10 for standard normal N",
            lambda draws, hidden: 1.0 + 0.1 * draws.normal(GAIN, hidden), ("normal",),
        ),
        Vector("wide", "N, of both signs", lambda draws, hidden: draws.normal(GAIN, hidden)),
        Vector(
            "negative", "−1 − N/10", lambda draws, hidden: -1.0 - 0.1 * draws.normal(GAIN, hidden)
        ),
        Vector(
            "tiny", "2^-10 (1 + N/10)",
            lambda draws, hidden: 2.0**-10 * (1.0 + 0.1 * draws.normal(GAIN, hidden)),
        ),
        Vector("powers-of-two", "±2^k with k from −3 to 3: exact in every format", _powers),
        Vector(
            "many-sizes", "±2^k (1 + N/10) with k from −24 to 3",
            partial(_scaled, least=-24, count=28),
        ),
        Vector("huge", "±2^k (1 + N/10) with k from 4 to 16", partial(_scaled, least=4, count=13)),
        Vector("zero", "0", lambda _draws, hidden: np.zeros(hidden)),
        Vector("mixed", "one of each kind in turn, but for huge ones", _mixed),
    ],
)  # fmt: skip

biases: Table[Vector] = Table(
    "bias",
    [
        Vector("none", "no bias", lambda _draws, _hidden: None),
        Vector("random", "N", lambda draws, hidden: draws.normal(BIAS, hidden), ("normal",)),
    ],
)
