# SPDX-License-Identifier: Apache-2.0
"""What an eps is asked about: a model in the format and plan that it will run in."""

from __future__ import annotations

import dataclasses
import math
import re
from contextlib import suppress
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.eps.evidence import (
    ROW_SIZES,
    LayerEvidence,
    assumed_evidence,
    check_sizes,
    recorded_evidence,
    with_parameters,
)
from precision_lab.eps.model_lookup import ModelNorms, find_model, limited_eps, width_of
from precision_lab.eps.representable import eps_grid
from precision_lab.eps.run_formats import RunFormats, run_formats
from precision_lab.exceptions import InputError
from precision_lab.plan import Plan, plans

if TYPE_CHECKING:
    from precision_lab.norm import Norm
    from precision_lab.numbers import Format

DEFAULT_PLANS = {"rms": "hf-llama", "layer": "torch-layer-norm"}
"""The plan of a model of which only the norm is known."""
QUOTE = 80
"""Characters of a value that a message quotes."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Subject:
    """A model in the format and plan that it will run in, with its evidence.

    Parameters
    ----------
    plan, settled
        With the formats that it leaves open, and with `format` in their place.
    eps, eps_from
        The eps in question, and in words where it comes from; None for a new design without one.
    new
        Whether eps is still free.
    amplification
        For a new design: the largest factor by which noise in a row near zero may grow.
    plan_assumed, format_assumed
        Whether nothing tells how the model computes its norms, or the format that it runs in.
    """

    model: ModelNorms
    format: Format
    plan: Plan
    settled: Plan
    eps: float | None
    eps_from: str
    new: bool
    amplification: float
    layers: tuple[LayerEvidence, ...]
    plan_assumed: bool = False
    format_assumed: bool = False
    others: tuple[Subject, ...] = ()
    readings: tuple[Subject, ...] = ()

    @property
    def adding_format(self) -> str:
        """The format that eps is added in."""
        return eps_grid(self.settled).format.name

    @property
    def least(self) -> float:
        """The least value above zero of that format."""
        return eps_grid(self.settled).format.smallest

    @property
    def output_format(self) -> str:
        """The format of the outputs."""
        return self.settled.output_format


def subject(
    model: Any = None, *, norm: Norm | str | None = None, hidden_size: int | None = None,
    eps: float | None = None, format: Format | str | None = None, plan: Plan | str | None = None,
    activations: Any = None, new: bool = False, rms: tuple[float, float] | None = None,
    amplification: float = 1024.0, weight_offset: float | None = None,
) -> Subject:  # fmt: skip
    """Find the model, and settle what it runs in; arguments as of `recommend_eps`."""
    found = find_model(model, norm=norm, hidden_size=hidden_size)
    if activations is not None:
        found = _with_rows(found, activations)
    if eps is not None:
        found = with_eps(found, limited_eps(eps))
    if weight_offset is not None:
        offset = _number("weight_offset", weight_offset, "0 or 1")
        found = dataclasses.replace(found, offset=offset)
    largest = _number("amplification", amplification, "1024", positive=True)
    sizes = None if rms is None else _sizes(rms)
    if format is None and found.unknown_format:
        raise InputError(
            f"{found.name[:QUOTE]} is stored in {found.unknown_format[:QUOTE]!r}, "
            "which is no format known here: say which it runs in, such as format='bfloat16' "
            "(--format)"
        )
    run = run_formats(format, found.format)
    if plan is not None:
        plans.find(plan).norm_for(found.norm)

    def settle(group: ModelNorms) -> Subject:
        asked = plan
        if group is not found and plan is not None:
            # A plan of the main norms' kind alone leaves the others as they are.
            asked = plan if plans.find(plan).norm in ("any", group.norm) else None
        chosen = run.apply(plan_for(group, asked))
        value, origin = _eps_in_question(group, new=new)
        return Subject(
            model=group, format=run.x, plan=chosen, settled=chosen.formats_for(run.x, run.x),
            eps=value, eps_from=origin, new=new, amplification=largest,
            layers=_evidence(group, run, sizes), plan_assumed=asked is None and not group.plan,
            format_assumed=format is None and not found.format,
        )  # fmt: skip

    return dataclasses.replace(
        settle(found), others=tuple(map(settle, found.others)),
        readings=() if plan is not None or new else tuple(map(settle, found.readings)),
    )  # fmt: skip


def with_eps(model: ModelNorms, eps: float) -> ModelNorms:
    """The model with another eps, in all norms that follow the key of its main norms."""
    return dataclasses.replace(
        model, eps=eps, parts=tuple(dataclasses.replace(part, eps=eps) for part in model.parts),
        others=tuple(
            with_eps(each, eps) if model.eps_key and each.eps_key == model.eps_key else each
            for each in model.others
        ),
        readings=tuple(dataclasses.replace(each, eps=eps) for each in model.readings),
    )  # fmt: skip


def plan_for(model: ModelNorms, plan: Plan | str | None) -> Plan:
    """The plan asked for, or the model's own, with the gain that the model has."""
    chosen = plans.find(plan if plan is not None else model.plan or DEFAULT_PLANS[model.norm])
    chosen.norm_for(model.norm)
    if chosen.gain == "ignored" or model.offset not in (0.0, 1.0):
        return chosen
    gain = "one_plus" if model.offset else "plain"
    if chosen.gain == gain:
        return chosen
    return dataclasses.replace(chosen, gain=gain)


def _sizes(rms: object) -> tuple[float, float]:
    """The least and the largest root mean square of assumed rows."""
    if not isinstance(rms, (tuple, list)) or len(rms) != 2:
        raise InputError(
            f"rms is {repr(rms)[:QUOTE]}: give two positive numbers, such as 0.01 and 100"
        )
    low, high = (_number("rms", each, "0.01 and 100", positive=True) for each in rms)
    return check_sizes((low, high))


def _number(name: str, value: object, such: str, *, positive: bool = False) -> float:
    """A finite real number."""
    number = math.nan
    if isinstance(value, Real | np.floating | np.integer) and not isinstance(value, bool):
        with suppress(OverflowError):
            number = float(value)
    if not math.isfinite(number) or (positive and number <= 0):
        kind = "positive" if positive else "finite"
        raise InputError(f"{name} is {repr(value)[:QUOTE]}: give a {kind} number, such as {such}")
    return number


def _with_rows(model: ModelNorms, activations: Any) -> ModelNorms:
    """The model with the rows of a capture, and with its weights' offset where it has one."""
    found = find_model(activations)
    rows = {name: row for each in (found, *found.others) for name, row in each.layers.items()}
    found = dataclasses.replace(found, layers=rows)
    of = f" of {found.name}" if found.name else ""
    name = model.name or "the model"
    if not found.has_rows:
        raise InputError(f"activations {str(activations)[:QUOTE]} hold no rows: give a capture")
    if found.norm != model.norm:
        raise InputError(
            f"the activations{of} are of {found.norm!r} norms, and {name} has {model.norm!r} norms"
        )
    if not found.widths & model.widths:
        raise InputError(
            f"the activations{of} have rows of {_describe_widths(found)}, and {name} has norms "
            f"of {_describe_widths(model)}"
        )
    return dataclasses.replace(model, layers=found.layers, offset=found.offset or model.offset)


def _describe_widths(model: ModelNorms) -> str:
    sizes = [str(width) for width in sorted(model.widths)]
    return ", ".join(sizes[:5]) + (" and others" if len(sizes) > 5 else "")


def _eps_in_question(model: ModelNorms, *, new: bool) -> tuple[float | None, str]:
    """The eps in question and where it comes from."""
    if model.eps is not None:
        return model.eps, "as configured"
    if new:
        return None, ""
    if model.default_eps is not None:
        return model.default_eps, f"what {model.model_type or 'its class'} takes then"
    if model.released_eps is not None:
        return model.released_eps, f"what {model.released_name} was released with"
    raise InputError(
        f"{model.name or 'the model'} names no eps, and none is known for it: give one, such as"
        " eps=1e-6, or new=True for a new design"
    )


def _evidence(
    model: ModelNorms, run: RunFormats, sizes: tuple[float, float] | None
) -> tuple[LayerEvidence, ...]:  # fmt: skip
    widths = {model.label: model.hidden_size, **model.other_sizes}
    layers = model.layers or {name: (width, None, None) for name, width in widths.items()}
    found = []
    for name, (x, weight, bias) in layers.items():
        if isinstance(x, np.ndarray):
            rows = recorded_evidence(name, model.norm, x, None, None, format=run.x)
        else:
            place = model.places.get(name) or _place(name)
            rows = assumed_evidence(
                name, model.norm, width_of(x, weight), format=run.x,
                sizes=sizes or ROW_SIZES[place],
            )  # fmt: skip
        found.append(with_parameters(rows, weight, bias, offset=model.offset, format=run.gain))
    return tuple(found)


def _place(name: str) -> str:
    """What enters a norm of this name, a key of `ROW_SIZES`."""
    last = name.rpartition(".")[2]
    if re.fullmatch(r"(q|k|qk|query|key)(_(layer)?norm)?", last):
        return "qk"
    if re.fullmatch(r"(q|kv)_(lora|a)(_(layer)?norm)?", last):
        return "latent"
    return "embedding" if "embed" in name else "stream"
