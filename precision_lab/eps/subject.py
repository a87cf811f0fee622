# SPDX-License-Identifier: Apache-2.0
"""What an eps is asked about: a model in the format and plan that it will run in."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.eps.evidence import LayerEvidence, assumed, seen
from precision_lab.eps.model_lookup import Given, find, limited_eps
from precision_lab.eps.representable import grid_of
from precision_lab.exceptions import InputError
from precision_lab.numbers import Format, formats
from precision_lab.plan import Plan, plans

if TYPE_CHECKING:
    from precision_lab.norm import Norm

OWN = {"rms": "hf-llama", "layer": "torch-layer-norm"}
"""The plan of a model of which only the norm is known."""


LONGEST = 80
"""Characters of a value that a message quotes."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Subject:
    """A model in the format and plan that it will run in, with its evidence.

    Parameters
    ----------
    given
        What the model says of itself.
    format, plan, settled
        What it runs in; the plan's formats left open, and settled.
    eps, eps_from
        The eps in question, and in words where it comes from; None for a new design without one.
    new
        Whether eps is still free.
    amplification
        For a new design: the largest factor by which noise in a row near zero may grow.
    layers
        The evidence.
    """

    given: Given
    format: Format
    plan: Plan
    settled: Plan
    eps: float | None
    eps_from: str
    new: bool
    amplification: float
    layers: tuple[LayerEvidence, ...]

    @property
    def norm(self) -> str:
        """The norm's name."""
        return self.given.norm

    @property
    def model_type(self) -> str:
        """The model's type, "" where unknown."""
        return self.given.model_type

    @property
    def configured_eps(self) -> float | None:
        """What the model itself is configured with."""
        return self.given.eps

    @property
    def default_eps(self) -> float | None:
        """What its class takes."""
        return self.given.default_eps

    @property
    def released_eps(self) -> float | None:
        """What the known model was released with."""
        return self.given.released_eps

    @property
    def released_name(self) -> str:
        """The known model's name."""
        return self.given.released_name

    @property
    def adding_format(self) -> str:
        """The format that eps is added in."""
        return grid_of(self.settled).format.name

    @property
    def least(self) -> float:
        """The least value above zero of that format."""
        return grid_of(self.settled).format.smallest

    @property
    def output_format(self) -> str:
        """The format of the outputs."""
        return self.settled.output_format


def subject(
    model: Any = None, *, norm: Norm | str | None = None, hidden_size: int | None = None,
    eps: float | None = None, format: Format | str | None = None, plan: Plan | str | None = None,
    activations: Any = None, new: bool = False, rms: tuple[float, float] = (0.1, 100.0),
    amplification: float = 1024.0, weight_offset: float | None = None,
) -> Subject:  # fmt: skip
    """Find the model, and settle what it runs in; arguments as of `recommend_eps`."""
    given = find(model, norm=norm, hidden_size=hidden_size)
    if activations is not None:
        given = _with_rows(given, activations)
    given = _overridden(given, eps=eps, offset=weight_offset)
    most = _number("amplification", amplification, "1024", positive=True)
    sizes = _sizes(rms)
    if format is None and given.unknown_format:
        raise InputError(
            f"{given.model[:LONGEST]} is stored in {given.unknown_format[:LONGEST]!r}, which is no "
            "format known here: say which it runs in, such as format='bfloat16' (--format)"
        )
    own = formats.find(format if format is not None else given.format or "float32")
    chosen = plan_for(given, plan)
    asked, origin = _asked(given, new=new)
    layers = _evidence(given, own, sizes)
    return Subject(
        given=given, format=own, plan=chosen, settled=chosen.formats_for(own, own), eps=asked,
        eps_from=origin, new=new, amplification=most, layers=layers,
    )  # fmt: skip


def plan_for(given: Given, plan: Plan | str | None) -> Plan:
    """The plan asked for, or the model's own, with the gain that the model has.

    Raises
    ------
    InputError
        If it is unknown, or does not compute the model's norm.
    """
    chosen = plans.find(plan if plan is not None else given.plan or OWN[given.norm])
    chosen.norm_for(given.norm)
    if chosen.gain == "ignored" or given.offset not in (0.0, 1.0):
        return chosen
    gain = "one_plus" if given.offset else "plain"
    if chosen.gain == gain:
        return chosen
    return dataclasses.replace(chosen, gain=gain)


def _sizes(rms: object) -> tuple[float, float]:
    """The least and the largest root mean square of assumed rows."""
    if not isinstance(rms, (tuple, list)) or len(rms) != 2:
        raise InputError(
            f"rms is {repr(rms)[:LONGEST]}: give two positive numbers, such as 0.1 and 100"
        )
    low, high = (_number("rms", each, "0.1 and 100") for each in rms)
    return low, high


def _number(name: str, value: object, such: str, *, positive: bool = False) -> float:
    """A finite real number."""
    real = isinstance(value, Real | np.floating | np.integer) and not isinstance(value, bool)
    number = _float(value) if real else math.nan
    if not math.isfinite(number) or (positive and number <= 0):
        kind = "positive" if positive else "finite"
        raise InputError(f"{name} is {repr(value)[:LONGEST]}: give a {kind} number, such as {such}")
    return number


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _overridden(given: Given, *, eps: float | None, offset: float | None) -> Given:
    changes: dict[str, Any] = {}
    if eps is not None:
        changes["eps"] = limited_eps(eps)
    if offset is not None:
        changes["offset"] = _number("weight_offset", offset, "0 or 1")
    return dataclasses.replace(given, **changes)


def _with_rows(given: Given, activations: Any) -> Given:
    """The model with the rows of a capture, and with its weights' offset unless that is told."""
    found = find(activations)
    of = f" of {found.model}" if found.model else ""
    name = given.model or "the model"
    if not found.has_rows:
        raise InputError(f"activations {str(activations)[:LONGEST]} hold no rows: give a capture")
    if found.norm != given.norm:
        raise InputError(
            f"the activations{of} are of {found.norm!r} norms, and {name} has {given.norm!r} norms"
        )
    if not found.widths & given.widths:
        raise InputError(
            f"the activations{of} have rows of {_sizes_told(found)}, and {name} has norms "
            f"of {_sizes_told(given)}"
        )
    return dataclasses.replace(given, layers=found.layers, offset=found.offset or given.offset)


def _sizes_told(given: Given) -> str:
    sizes = [str(width) for width in sorted(given.widths)]
    return ", ".join(sizes[:5]) + (" and others" if len(sizes) > 5 else "")


def _asked(given: Given, *, new: bool) -> tuple[float | None, str]:
    """The eps in question and where it comes from."""
    if given.eps is not None:
        return given.eps, "as configured"
    if new:
        return None, ""
    if given.default_eps is not None:
        return given.default_eps, f"what {given.model_type or 'its class'} takes then"
    if given.released_eps is not None:
        return given.released_eps, f"what {given.released_name} was released with"
    raise InputError(
        f"{given.model or 'the model'} names no eps, and none is known for it: give one, such as"
        " eps=1e-6, or new=True for a new design"
    )


def _evidence(
    given: Given, own: Format, sizes: tuple[float, float]
) -> tuple[LayerEvidence, ...]:  # fmt: skip
    if given.layers:
        return tuple(
            seen(name, given.norm, x, weight, bias, format=own, offset=given.offset)
            if isinstance(x, np.ndarray)
            else assumed(
                name, given.norm, len(weight) if weight is not None else int(x), format=own,
                sizes=sizes, weight=weight, bias=bias, offset=given.offset,
            )
            for name, (x, weight, bias) in given.layers.items()
        )  # fmt: skip
    widths = {"norm": given.hidden_size, **given.other_sizes}
    return tuple(
        assumed(name, given.norm, width, format=own, sizes=sizes, offset=given.offset)
        for name, width in widths.items()
    )
