# SPDX-License-Identifier: Apache-2.0
"""A model, found under any of its names: what it says of its norms, its eps and its parameters."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.exceptions import InputError, unknown
from precision_lab.inputs import Capture, CaptureFile, PackagedCapture, capture_file, captures
from precision_lab.models import (
    KnownModel,
    ModelConfig,
    known_models,
    model_types,
    read_gains,
    read_model_config,
)
from precision_lab.norm import Norm, check_eps, norms
from precision_lab.numbers import format_of

if TYPE_CHECKING:
    from collections.abc import Mapping

WIDEST = 1 << 16
"""Elements of a row that are still run through a plan; 2 s at most."""

CLASS = re.compile(r"(RMSNorm|LayerNorm)\w*$")
"""What ends the names of classes of norms, after the model's."""

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
    match model:
        case None:
            return _from_norm(norm, hidden_size)
        case ModelNorms():
            return model
        case Capture():
            return _from_capture(model)
        case CaptureFile() | PackagedCapture():
            return _from_capture(model.load())
        case ModelConfig():
            return _from_config(model)
        case KnownModel():
            return _from_known(model)
        case str() | os.PathLike():
            return _from_name(os.fspath(model), norm)
    if hasattr(model, "named_modules"):
        return _from_module(model)
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
    path = Path(name)
    there = os.path.exists(name)  # noqa: PTH110 - a name may be too long for a path
    if there and path.suffix.lower() == ".safetensors" and path.is_file():
        return _from_capture(capture_file(path).load())
    if there or path.suffix.lower() in (".json", ".safetensors") or name.endswith(os.sep):
        return _from_config(_read_config(path, norm))
    if name in captures:
        return _from_capture(captures[name].load())
    if name in known_models:
        return _from_known(known_models[name])
    raise unknown("model", name[:80], [*known_models, *captures])


def _read_config(path: Path, norm: Norm | str | None) -> ModelConfig:
    """The config by itself; where it names no norm, with the one that the caller named."""
    try:
        return read_model_config(path)
    except InputError:
        if norm is None:
            raise
    return read_model_config(path, norm=norms.find(norm).name)


def _from_capture(capture: Capture) -> ModelNorms:
    known = known_models.get(capture.model)
    first = capture.layers[0]
    plans = {
        layer.plan or plan_of_class(layer.class_name, capture.norm) for layer in capture.layers
    }
    facts = _known_facts(known if known is not None and known.norm == capture.norm else None)
    if plans != {""}:
        facts["plan"] = plans.pop() if len(plans) == 1 else ""
    return ModelNorms(
        name=capture.model, norm=capture.norm, eps=capture.eps, hidden_size=first.x.shape[1],
        format=format_of(first.x).name, offset=capture.weight_offset,
        layers={layer.name: (layer.x, layer.weight, layer.bias) for layer in capture.layers},
        **facts,
    )  # fmt: skip


def _known_facts(known: KnownModel | None) -> dict[str, Any]:
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
    gains = read_gains(config.path.parent)
    lengths = {len(weight) for weight, _ in gains.values()}
    if lengths and config.hidden_size not in lengths:
        name, (weight, _) = next(iter(gains.items()))
        raise InputError(
            f"{config.path} has norms of {config.hidden_size}, and no gain beside it is of that "
            f"length: {name[:80]} has {len(weight)}"
        )
    facts = {
        "model_type": config.model_type, "plan": config.plan, "default_eps": config.default_eps,
    }  # fmt: skip
    return ModelNorms(
        name=config.model, norm=config.norm, eps=config.eps, hidden_size=config.hidden_size,
        other_sizes=config.other_sizes, format=config.dtype, unknown_format=config.unknown_dtype,
        offset=config.weight_offset,
        layers={name: (None, weight, bias) for name, (weight, bias) in gains.items()},
        **(_known_facts(known) | facts),
    )  # fmt: skip


def _from_known(known: KnownModel) -> ModelNorms:
    return ModelNorms(
        name=known.name, norm=known.norm, eps=known.eps, hidden_size=known.hidden_size,
        other_sizes=known.other_sizes, format="bfloat16" if known.norm == "rms" else "float32",
        offset=known.type.weight_offset, **_known_facts(known),
    )  # fmt: skip


def _from_module(module: Any) -> ModelNorms:
    """A torch module, which is not run: its norms, their eps and parameters."""
    from precision_lab.kernels.torch import norms_of

    found = [one for _, one in norms_of(module)]
    if not found:
        raise InputError(f"{type(module).__name__} holds no norm that is known")
    first = found[0]
    kinds = {(one.norm, one.eps, one.weight_offset) for one in found}
    if len(kinds) > 1:
        names = ", ".join(f"{norm} with eps {eps:g}" for norm, eps, _ in sorted(kinds))
        raise InputError(
            f"{type(module).__name__} has norms of several kinds ({names}): ask about one of its "
            "parts"
        )
    widths = [one.hidden for one in found if one.hidden]
    if not widths:
        raise InputError(f"no norm of {type(module).__name__} tells its width: capture it instead")
    known = known_models.get(type(module).__name__)
    plans = list(
        dict.fromkeys(one.plan or plan_of_class(one.class_name, one.norm) for one in found)
    )
    return ModelNorms(
        name=type(module).__name__, norm=first.norm, eps=first.eps, hidden_size=widths[0],
        format="" if first.weight is None else format_of(first.weight).name,
        offset=first.weight_offset,
        layers={one.name: (one.hidden, one.weight, one.bias) for one in found if one.hidden},
        **{"plan": plans[0], **_known_facts(known)},
    )  # fmt: skip


def plan_of_class(class_name: str, norm: str) -> str:
    """The plan that a class of norms follows, as its name tells; "" where it tells none."""
    name = class_name.rpartition(".")[2]
    stem = _letters(CLASS.sub("", name))
    types = (row for row in model_types.values() if row.norm == norm and stem != _letters(name))
    return next((row.plan for row in types if _letters(row.name) == stem), "")


def _letters(name: str) -> str:
    """What a class and its model's type share: ``Gemma3RMSNorm`` is of ``gemma3_text``."""
    return re.sub(r"[_-]", "", name).lower().removesuffix("text")
