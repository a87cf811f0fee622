# SPDX-License-Identifier: Apache-2.0
"""A model, found under any of its names: what it says of its norms, its eps and its parameters."""

from __future__ import annotations

import dataclasses
import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.eps.listed_parts import group_listed
from precision_lab.eps.model_parts import PartGroup, group_parts
from precision_lab.exceptions import InputError, unknown
from precision_lab.inputs import (
    Capture,
    CaptureFile,
    PackagedCapture,
    capture_file,
    captures,
)
from precision_lab.models import (
    DEFAULT,
    KnownModel,
    ModelConfig,
    NormPart,
    Unjudged,
    base_of_adapter,
    has_known_suffix,
    known_models,
    read_gains,
    read_model_config,
    refuse_address,
)
from precision_lab.norm import Norm, check_eps, norms

if TYPE_CHECKING:
    from collections.abc import Mapping

WIDEST = 1 << 16
"""Elements of a row that are still run through a plan; 2 s at most."""

LARGEST_EPS = 1.0
"""The largest eps that is asked about, as in a config."""


@dataclass(frozen=True, kw_only=True)
class ModelNorms:
    """What a model says of itself, before anything is said about how it runs.

    Parameters
    ----------
    eps, default_eps
        As configured, and what its class takes where a config names none; None where missing.
    hidden_size, other_sizes
        The width of its norms, and widths of further norms by name.
    format, unknown_format
        Which it is stored in, "" where unknown; and what its config calls one that is not known.
    released_eps, released_name
        Of a known model that this one seems to be.
    offset
        What it adds to its weights.
    layers
        x, weight, bias of its norms by name; in place of x the width or None where no row is known.
    label, places
        The name of the norm that has no other; what enters each norm, by its name.
    eps_key
        The config's key that eps was read from, "" where it was not.
    parts, unjudged, notes
        As of `ModelConfig`: of this group of norms alone, and of the whole model.
    others
        Its norms of another kind, eps, gain offset or plan: a group each.
    readings
        What it may be as well, where it was guessed.
    """

    name: str
    norm: str
    eps: float | None
    hidden_size: int
    model_type: str = ""
    plan: str = ""
    other_sizes: Mapping[str, int] = field(default_factory=dict)
    format: str = ""
    unknown_format: str = ""
    default_eps: float | None = None
    released_eps: float | None = None
    released_name: str = ""
    offset: float = 0.0
    layers: Mapping[str, tuple[Any, Any, Any]] = field(default_factory=dict)
    label: str = "norm"
    places: Mapping[str, str] = field(default_factory=dict)
    eps_key: str = ""
    parts: tuple[NormPart, ...] = ()
    unjudged: tuple[Unjudged, ...] = ()
    notes: tuple[str, ...] = ()
    others: tuple[ModelNorms, ...] = ()
    readings: tuple[ModelNorms, ...] = ()

    @property
    def widths(self) -> set[int]:
        """Elements of a row of its norms."""
        if not self.layers:
            return {self.hidden_size, *self.other_sizes.values()}
        return {width_of(x, weight) for x, weight, _ in self.layers.values()}

    @property
    def has_rows(self) -> bool:
        """Whether rows of it were seen."""
        return any(isinstance(x, np.ndarray) for x, _, _ in self.layers.values())


def width_of(x: Any, weight: Any) -> int:
    """Elements of a row of a norm, of which rows, the weight or the width alone are known."""
    if isinstance(x, np.ndarray):
        return int(x.shape[1])
    return int(x) if weight is None else len(weight)


def limited_eps(eps: object, *, of: str = "eps") -> float:
    """An eps from 0 to 1, as configs may name; `of` says in the message what it is."""
    try:
        value = check_eps(eps)
    except OverflowError:
        value = math.inf
    if value > LARGEST_EPS:
        raise InputError(f"{of} is {value:g}, not a number from 0 to 1 such as 1e-05")
    return value


def find_model(
    model: Any, *, norm: Norm | str | None = None, hidden_size: int | None = None
) -> ModelNorms:
    """What a model says of itself: its eps from 0 to 1, its norms no wider than `WIDEST`.

    Parameters
    ----------
    model
        A path (a config's .json file or folder, or a capture), the name of a known model or of a
        packaged capture, a record of any of these, a torch module, or None.
    norm, hidden_size
        What is known where there is no model.
    """
    found = _describe(model, norm, hidden_size)
    _refuse_wide(found)
    if model is not None and norm is not None and (name := norms.find(norm).name) != found.norm:
        raise InputError(
            f"norm is {name!r}, but {found.name or 'the model'} has {found.norm!r} norms"
        )
    if found.eps is not None:
        limited_eps(found.eps, of=f"the eps of {found.name or 'the model'}")
    return found


def _refuse_wide(model: ModelNorms) -> None:
    """Refuse rows that would be drawn too long; those that were seen may have any length."""
    widths = {"hidden_size": model.hidden_size, **model.other_sizes}
    if model.layers:
        widths = {
            f"the width of {name}": width_of(x, weight)
            for name, (x, weight, _) in model.layers.items()
            if not isinstance(x, np.ndarray)
        }
    for name, width in widths.items():
        if width > WIDEST:
            of = f" of {model.name}" if model.name else ""
            raise InputError(f"{name}{of} is {width}: rows have at most {WIDEST} elements here")


def _describe(model: Any, norm: Norm | str | None, hidden_size: int | None) -> ModelNorms:
    from precision_lab.eps.named_norms import from_capture, from_module

    match model:
        case None:
            return _from_norm(norm, hidden_size)
        case ModelNorms():
            return model
        case Capture():
            return from_capture(model)
        case CaptureFile() | PackagedCapture():
            return from_capture(model.load())
        case ModelConfig():
            return _from_config(model)
        case KnownModel():
            return _from_known(model)
        case str() | os.PathLike():
            return _from_name(os.fspath(model), norm)
    if hasattr(model, "named_modules"):
        return from_module(model)
    raise InputError(
        f"a {type(model).__name__} is no model: give a path, a name, a capture or a torch module"
    )


def _from_norm(norm: Norm | str | None, hidden_size: int | None) -> ModelNorms:
    if norm is None or hidden_size is None:
        raise InputError(
            "without a model there must be a norm and a hidden_size: norm='rms', hidden_size=4096"
        )
    if isinstance(hidden_size, bool) or not isinstance(hidden_size, int) or not (
        1 <= hidden_size <= WIDEST
    ):  # fmt: skip
        raise InputError(f"hidden_size is {hidden_size!r}: give a whole number from 1 to {WIDEST}")
    return ModelNorms(name="", norm=norms.find(norm).name, eps=None, hidden_size=hidden_size)


def _from_name(name: str, norm: Norm | str | None) -> ModelNorms:
    from precision_lab.eps.named_norms import from_capture

    path = Path(name)
    there = os.path.exists(name)  # noqa: PTH110 - a name may be too long for a path
    if there and path.suffix.lower() == ".safetensors" and path.is_file():
        return from_capture(capture_file(path).load())
    if not there:
        refuse_address(name)
    if there or has_known_suffix(name) or path.suffix.lower() in (".json", ".safetensors") or (
        name.endswith(os.sep)
    ):  # fmt: skip
        base = base_of_adapter(path)
        if base is not None:
            return _from_base(path, base, norm)
        return _from_config(_read_config(path, norm))
    if name in captures:
        return from_capture(captures[name].load())
    if name in known_models:
        return _from_known(known_models[name])
    raise unknown("model", name[:80], [*known_models, *captures])


def _from_base(path: Path, base: str, norm: Norm | str | None) -> ModelNorms:
    """What an adapter's base model says of its norms."""
    if not os.path.exists(base) and base not in known_models:  # noqa: PTH110 - as above
        raise InputError(
            f"{path} is an adapter of {base[:80]!r}, which is neither a known model (--list) nor a "
            "path here: give that model's config.json"
        )
    note = f"{path.name} is an adapter: the norms are those of {base[:80]}"
    found = _from_name(base, norm)
    return dataclasses.replace(found, notes=(*found.notes, note))


def _read_config(path: Path, norm: Norm | str | None) -> ModelConfig:
    """The config by itself; where it names no norm, with the one that the caller named."""
    try:
        return read_model_config(path)
    except InputError:
        if norm is None:
            raise
    return read_model_config(path, norm=norms.find(norm).name)


def known_facts(known: KnownModel | None) -> dict[str, Any]:
    """What the tables know of a model."""
    if known is None:
        return {}
    return {
        "model_type": known.model_type, "plan": known.plan, "default_eps": known.type.eps_default,
        "released_eps": known.eps if known.released else None, "released_name": known.name,
    }  # fmt: skip


def _from_config(config: ModelConfig) -> ModelNorms:
    known = next((known_models[name] for name in (config.model, config.base)
                  if name and name in known_models), None)  # fmt: skip
    gains = read_gains(config.path.parent) if config.gains is None else config.gains
    lengths = {len(weight) for weight, _ in gains.values()}
    if config.gains is None and lengths and config.hidden_size not in lengths:
        name, (weight, _) = next(iter(gains.items()))
        raise InputError(
            f"{config.path} has norms of {config.hidden_size}, and no gain beside it is of that "
            f"length: {name[:80]} has {len(weight)}"
        )
    facts = {
        "model_type": config.model_type, "plan": config.plan, "default_eps": config.default_eps,
    }  # fmt: skip
    main = ModelNorms(
        name=config.model, norm=config.norm, eps=config.eps, hidden_size=config.hidden_size,
        other_sizes=config.other_sizes, format=config.dtype, unknown_format=config.unknown_dtype,
        offset=config.weight_offset, eps_key=config.eps_key, notes=config.notes,
        layers={name: (None, weight, bias) for name, (weight, bias) in gains.items()},
        **(known_facts(known) | facts),
    )  # fmt: skip
    if not config.parts:
        return main
    if config.gains is None:
        groups, unjudged = group_parts(config.parts, gains)
    else:
        groups, unjudged = group_listed(config.parts, gains), []
    rest = [_group(config, each) for each in groups[1:]]
    return dataclasses.replace(
        main, **_group_facts(groups[0]), unjudged=(*config.unjudged, *unjudged),
        others=tuple(rest), readings=_readings(main) if config.guessed else (),
    )  # fmt: skip


def _group_facts(group: PartGroup) -> dict[str, Any]:
    """Widths, places, gains and parts of a group."""
    (label, hidden), *others = group.sizes.items()
    return {
        "hidden_size": hidden, "other_sizes": dict(others), "label": label, "places": group.places,
        "layers": {name: (None, *both) for name, both in group.gains.items()}
        | {name: (width, None, None) for name, width in group.bare.items()},
        "parts": tuple(group.parts),
    }  # fmt: skip


def _group(config: ModelConfig, group: PartGroup) -> ModelNorms:
    """A group that is not the main one."""
    first = group.parts[0]
    known = first.eps_from != DEFAULT
    return ModelNorms(
        name=config.model, norm=first.norm, eps=first.eps if known else None,
        default_eps=None if known else first.eps, plan=first.plan, offset=first.weight_offset,
        format=config.dtype, eps_key=first.eps_key, **_group_facts(group),
    )  # fmt: skip


def _readings(model: ModelNorms) -> tuple[ModelNorms, ...]:
    """What a model of an unknown type may be as well: the other norm, and another plan."""
    other = "layer" if model.norm == "rms" else "rms"
    found = [dataclasses.replace(model, norm=other, plan="", layers={}, parts=(), notes=())]
    if model.norm == "rms":
        found.append(dataclasses.replace(model, plan="hf-gemma", layers={}, parts=(), notes=()))
    return tuple(found)


def _from_known(known: KnownModel) -> ModelNorms:
    main = ModelNorms(
        name=known.name, norm=known.norm, eps=known.eps, hidden_size=known.hidden_size,
        format="bfloat16" if known.norm == "rms" else "float32", offset=known.type.weight_offset,
        eps_key=known.type.eps_key, notes=(known.doubt,) if known.doubt else (),
        **known_facts(known),
    )  # fmt: skip
    groups, _ = group_parts(known.parts, {})
    rest = [
        ModelNorms(
            name=known.name, norm=each.parts[0].norm, eps=each.parts[0].eps, format=main.format,
            plan=each.parts[0].plan, offset=each.parts[0].weight_offset,
            eps_key=each.parts[0].eps_key, **_group_facts(each),
        )
        for each in groups[1:]
    ]  # fmt: skip
    return dataclasses.replace(main, **_group_facts(groups[0]), others=tuple(rest))
