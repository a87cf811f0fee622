# SPDX-License-Identifier: Apache-2.0
"""What is computed: each norm once, as its textbook formula over any arithmetic.

An arithmetic is an object with the operations named in `Arithmetic`; balls, exact intervals and
emulated formats all have them, so that the one formula below yields a proved enclosure, a value to
any number of digits, or what a format makes of it.

Sources: Ba, Kiros and Hinton, "Layer Normalization", 2016; Zhang and Sennrich, "Root Mean Square
Layer Normalization", 2019; eps inside the root, as every current framework has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from precision_lab.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from precision_lab.arithmetic import Arithmetic


def rms(a: Arithmetic, x: Any, entering: Any, eps: Any) -> Any:
    """x / sqrt(mean(z^2) + eps), where z are the elements of x that enter the statistic."""
    return a.multiply(x, a.rsqrt(a.add(a.mean(a.square(entering)), eps)))


def layer(a: Arithmetic, x: Any, entering: Any, eps: Any) -> Any:
    """(x - m) / sqrt(mean((z - m)^2) + eps), where m = mean(z)."""
    m = a.mean(entering)
    d = a.subtract(x, m)
    spread = d if entering is x else a.subtract(entering, m)
    return a.multiply(d, a.rsqrt(a.add(a.mean(a.square(spread)), eps)))


def affine(a: Arithmetic, v: Any, gain: Any | None, bias: Any | None) -> Any:
    """v g + b, each part where it is given."""
    scaled = v if gain is None else a.multiply(v, gain)
    return scaled if bias is None else a.add(scaled, bias)


@dataclass(frozen=True)
class Norm:
    """A norm: its formula without gain and bias."""

    name: str
    title: str
    centred: bool
    """Whether the mean is subtracted first."""
    normalise: Callable[[Arithmetic, Any, Any, Any], Any]
    """Of an arithmetic, x, what of it enters the statistic (x itself where all does), and eps."""


norms: Table[Norm] = Table(
    "norm",
    [
        Norm("rms", "RMSNorm", centred=False, normalise=rms),
        Norm("layer", "LayerNorm", centred=True, normalise=layer),
    ],
)
