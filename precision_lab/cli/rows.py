# SPDX-License-Identifier: Apache-2.0
"""The row that a command works on: written down, synthetic, or captured from a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.cli import numbers
from precision_lab.table import InputError, unknown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from precision_lab.formats import Format

    Vector = NDArray[np.floating]


@dataclass(frozen=True, kw_only=True, eq=False)
class Row:
    """A row with its gain and bias, before they are rounded to any format.

    Parameters
    ----------
    title
        What it is.
    x, weight, bias
        [hidden]; weight and bias may be None.
    norm, eps
        Of the captured model; None where the input does not say.
    """

    title: str
    x: Vector
    weight: Vector | None
    bias: Vector | None
    norm: str | None = None
    eps: float | None = None


def assignments(texts: Iterable[str]) -> dict[str, str]:
    """NAME=VALUE, as often as it is given."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"{text!r} sets nothing: write NAME=VALUE")
        found[name.strip()] = value.strip()
    return found


def written(texts: Iterable[str], held: Format) -> Vector:
    """Numbers as they were written, each rounded once to the format that holds them."""
    return np.array([numbers.rounded(numbers.read(text), held) for text in texts], np.float64)


def captured(source: str, place: int) -> Row:
    """A row of a captured layer, from CAPTURE:LAYER."""
    from precision_lab.inputs import captures

    name, _, wanted = source.partition(":")
    capture = captures[name].load()
    layers = {layer.name: layer for layer in capture.layers}
    if wanted not in layers:
        raise unknown(f"layer of {name}", wanted, layers)
    layer = layers[wanted]
    return Row(
        title=f"{capture.model}, {layer.name}, row {place}",
        x=layer.x[row_of(place, layer.x.shape[0])],
        weight=layer.weight,
        bias=layer.bias,
        norm=capture.norm,
        eps=capture.eps,
    )


def synthetic(
    family: str,
    *,
    place: int,
    hidden: int,
    seed: int,
    held: Format,
    eps: float,
    parameters: Iterable[str],
) -> Row:
    """A row of a family."""
    from precision_lab.inputs import make_inputs

    own = {name: numbers.one(text) for name, text in assignments(parameters).items()}
    rows = row_of(place, 2**16) + 1
    x = make_inputs(family, rows=rows, hidden=hidden, seed=seed, format=held, eps=eps, **own)
    return Row(title=f"{family}, seed {seed}, row {place}", x=x[place], weight=None, bias=None)


def row_of(place: int, count: int) -> int:
    """A row's number, checked."""
    if not 0 <= place < count:
        raise InputError(f"there is no row {place}: rows go from 0 to {count - 1}")
    return place
