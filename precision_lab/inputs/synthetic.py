# SPDX-License-Identifier: Apache-2.0
"""Families of synthetic inputs, one row each.

A family is a rule with a few parameters that turns random draws into rows of float64, before any
rounding to a format. The same seed gives the same bits on every machine, and row i is the same
however many rows are asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.exceptions import InputError, check_integer, unknown
from precision_lab.inputs.draws import Draws, exponential, tree_sum
from precision_lab.norm import check_eps
from precision_lab.numbers import Format, formats
from precision_lab.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from precision_lab.arithmetic import Floats


# What is drawn for one purpose does not change with another.
VALUES, PLACES, SIGNS = range(3)
MOST = 2**27
"""Elements of the largest array that is made: 1 GiB, and a few times that on the way."""
LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True, kw_only=True)
class FamilyRequest:
    """What a family is asked for: a shape, a seed, and what some families relate to.

    `format` is for families that lie in a format's range, `eps` for those that lie near its root.
    """

    draws: Draws
    rows: int
    hidden: int
    format: Format
    eps: float

    @property
    def shape(self) -> tuple[int, int]:
        """[rows, hidden]."""
        return self.rows, self.hidden

    def normal(self) -> Floats:
        """Standard normal values; the families built on them share them."""
        return self.draws.normal(VALUES, *self.shape)

    def uniform(self) -> Floats:
        """Uniform values on (0, 1)."""
        return self.draws.uniform(VALUES, *self.shape)


@dataclass(frozen=True)
class Family:
    """A family of inputs.

    Parameters
    ----------
    make
        The rule: a request and the parameters to [rows, hidden] float64.
    parameters, limits
        Their names and default values; the least and the largest value of those that have such.
    needs_format
        Whether the values lie somewhere in a format's range.
    """

    name: str
    description: str
    make: Callable[..., Floats]
    parameters: Mapping[str, float] = field(default_factory=dict)
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    needs_format: bool = False

    def check(self, parameters: Mapping[str, float]) -> dict[str, float]:
        """All parameters: those of the caller, checked, and the default values of the others."""
        for name in parameters:
            if name not in self.parameters:
                choices = self.parameters or ["(none)"]
                raise unknown(f"parameter of family {self.name!r}", name, choices)
        return {
            name: _number(name, value, self.limits.get(name, (-LARGEST, LARGEST)))
            for name, value in {**self.parameters, **parameters}.items()
        }


def make_inputs(
    family: Family | str,
    *,
    rows: int,
    hidden: int,
    seed: int,
    format: Format | str | None = None,
    eps: float = 1e-6,
    **parameters: float,
) -> Floats:
    """Make rows of a family, before they are rounded to any format.

    Parameters
    ----------
    family
        A row of `families` or its name.
    rows, hidden
        The shape; 0 rows are fine.
    seed
        From 0 to 2^64 − 1; the same seed gives the same bits on every machine.
    format
        For the families that lie in a format's range (``subnormal``, ``near-largest``); float32
        where none is given.
    eps
        For ``near-zero``.
    **parameters
        The family's own, where they shall not have their default values.

    Returns
    -------
    ndarray of float64, [rows, hidden]

    Raises
    ------
    InputError
        For an unknown family, format or parameter, a shape or seed out of range, a parameter that
        is no finite number or outside its limits.

    Examples
    --------
    >>> make_inputs("mean-offset", rows=2, hidden=3, seed=1, offset=1000.0).shape
    (2, 3)
    """
    row = families.find(family)
    request = FamilyRequest(
        draws=Draws(check_integer("seed", seed, 0, 2**64 - 1)),
        rows=check_integer("rows", rows, 0, MOST),
        hidden=check_integer("hidden", hidden, 1, MOST),
        format=formats.find("float32" if format is None else format),
        eps=check_eps(eps),
    )
    if request.rows * request.hidden > MOST:
        raise InputError(f"{rows} rows of {hidden} are more than {MOST} elements")
    checked = row.check(parameters)
    with np.errstate(over="ignore", invalid="ignore"):
        x = row.make(request, **checked)
    if not np.isfinite(x).all():
        values = ", ".join(f"{name}={value:g}" for name, value in checked.items())
        raise InputError(f"family {row.name!r} leaves float64's range with {values}")
    return x


def _number(name: str, value: object, limits: tuple[float, float]) -> float:
    """A finite number between limits."""
    if not isinstance(value, int | float | np.floating | np.integer) or isinstance(value, bool):
        raise InputError(f"parameter {name!r} is {value!r}: give a number")
    low, high = limits
    if not low <= value <= high:
        raise InputError(f"parameter {name!r} is {value}: give a number from {low:g} to {high:g}")
    return float(value)


def _one_outlier(r: FamilyRequest, scale: float, magnitude: float) -> Floats:
    x = scale * r.normal()
    places = r.draws.below(r.hidden, PLACES, r.rows)
    x[np.arange(r.rows), places] = magnitude * r.draws.signs(SIGNS, r.rows)
    return x


def _massive(
    r: FamilyRequest, scale: float, magnitude: float, channels: float, every: float
) -> Floats:
    if channels % 1 or every % 1:
        raise InputError(f"channels={channels:g} and every={every:g}: give whole numbers")
    x = scale * r.normal()
    # The same few channels in every row that has them, as in a residual stream.
    places = np.argsort(r.draws.bits(PLACES, r.hidden), kind="stable")[: int(channels)]
    x[:: int(every), places] = magnitude * r.draws.signs(SIGNS, r.hidden)[places]
    return x


def _near_zero(r: FamilyRequest, ratio: float) -> Floats:
    x = r.normal()
    rms: Floats = np.sqrt(tree_sum(x * x) / r.hidden)
    return x * (ratio * math.sqrt(r.eps) / rms)[:, np.newaxis]


def _alternating(r: FamilyRequest, scale: float, spread: float) -> Floats:
    signs: Floats = np.where(np.arange(r.hidden) % 2 == 0, 1.0, -1.0)
    return signs * (scale * (1.0 + spread * (2.0 * r.uniform() - 1.0)))


def _near_largest(r: FamilyRequest, low: float) -> Floats:
    magnitude = r.format.largest * (low + (1.0 - low) * r.uniform())
    return r.draws.signs(SIGNS, *r.shape) * magnitude


families: Table[Family] = Table(
    "input family",
    [
        Family(
            "normal", "normal values of standard deviation scale",
            lambda r, scale: scale * r.normal(), {"scale": 1.0},
        ),
        Family(
            "uniform", "uniform values between low and high",
            lambda r, low, high: low + (high - low) * r.uniform(), {"low": -1.0, "high": 1.0},
        ),
        Family(
            "lognormal", "scale times the exponential of sigma times normal values: positive",
            lambda r, scale, sigma: scale * exponential(sigma * r.normal()),
            {"scale": 1.0, "sigma": 1.0},
        ),
        Family(
            "heavy-tailed", "scale times Student's t with so many degrees of freedom",
            lambda r, scale, freedom: scale * r.draws.student(freedom, VALUES, *r.shape),
            {"scale": 1.0, "freedom": 2.0}, {"freedom": (0.5, 1e6)},
        ),
        Family(
            "one-outlier", "normal values; in each row one element, anywhere, is ±magnitude",
            _one_outlier, {"scale": 1.0, "magnitude": 1000.0},
        ),
        Family(
            "massive-activations",
            "normal values; in row 0 and every so many rows after, the same few channels are"
            " ±magnitude, as in the residual stream of a language model",
            _massive, {"scale": 8.0, "magnitude": 24000.0, "channels": 2.0, "every": 8.0},
            {"channels": (0, 2**32), "every": (1, 2**32)},
        ),
        Family(
            "near-zero", "normal values scaled so that each row's rms is ratio times √eps",
            _near_zero, {"ratio": 1.0}, {"ratio": (0.0, LARGEST)},
        ),
        Family(
            "subnormal", "uniform values between minus and plus the format's smallest normal value",
            lambda r: r.format.tiny * (2.0 * r.uniform() - 1.0), needs_format=True,
        ),
        Family(
            "constant", "in each row one normal value times scale, repeated",
            lambda r, scale: np.repeat(scale * r.draws.normal(VALUES, r.rows, 1), r.hidden, axis=1),
            {"scale": 1.0},
        ),
        Family("zero", "zeros", lambda r: np.zeros(r.shape)),
        Family(
            "mean-offset", "normal values times scale around offset",
            lambda r, scale, offset: offset + scale * r.normal(), {"scale": 1.0, "offset": 100.0},
        ),
        Family(
            "alternating", "signs that alternate, magnitudes within spread of scale",
            _alternating, {"scale": 1.0, "spread": 0.1},
        ),
        Family(
            "near-largest", "either sign, magnitudes between low times the format's largest and it",
            _near_largest, {"low": 0.5}, {"low": (0.0, 1.0)}, needs_format=True,
        ),
    ],
)  # fmt: skip
