# SPDX-License-Identifier: Apache-2.0
"""What an eps is asked about: a model, found under any of its names, and what it will run in."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.eps.effects import grid_of
from precision_lab.eps.evidence import LayerEvidence, assumed, seen
from precision_lab.files import Capture
from precision_lab.files.gains import read_gains
from precision_lab.files.model_configs import ModelConfig, read_model_config
from precision_lab.formats import Format, formats
from precision_lab.inputs import CaptureFile, PackagedCapture, capture_file, captures
from precision_lab.known_models import KnownModel, known_models
from precision_lab.norms import Norm, check_eps, norms
from precision_lab.plans import Plan, plans
from precision_lab.table import InputError, unknown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

OWN = {"rms": "hf-llama", "layer": "torch-layer-norm"}
"""The plan of a model of which only the norm is known."""

WIDEST = 1 << 17
"""Elements of a row that are still run through a plan."""


@dataclass(frozen=True, kw_only=True)
class Given:
    """What a model says of itself, before anything is said about how it runs.

    Parameters
    ----------
    model, model_type, norm, plan
        Names; the type and the plan are "" where unknown.
    eps
        As configured, None where it is missing.
    hidden_size
        The width of the model's norms.
    other_sizes
        Widths of further norms.
    format
        Which it is stored in, "" where unknown.
    default_eps
        What its class takes where a config names none.
    released_eps, released_name
        Of a known model that this one seems to be.
    offset
        What it adds to its weights.
    layers
        Rows and parameters of its norms (x, weight, bias; x None where no row is known).
    """

    model: str
    norm: str
    eps: float | None
    hidden_size: int
    model_type: str = ""
    plan: str = ""
    other_sizes: Mapping[str, int] = field(default_factory=dict)
    format: str = ""
    default_eps: float | None = None
    released_eps: float | None = None
    released_name: str = ""
    offset: float = 0.0
    layers: Mapping[str, tuple[Any, Any, Any]] = field(default_factory=dict)


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
    given = _overridden(
        find(model, norm=norm, hidden_size=hidden_size), eps=eps, offset=weight_offset
    )
    if activations is not None:
        given = _with_rows(given, activations)
    if not (np.isfinite(amplification) and amplification > 0):
        raise InputError(
            f"amplification is {amplification:g}: give a positive number, such as 1024"
        )
    own = formats.find(format if format is not None else given.format or "float32")
    chosen = plan_for(given, plan)
    asked, origin = _asked(given, new=new)
    layers = _evidence(given, own, rms)
    return Subject(
        given=given, format=own, plan=chosen, settled=chosen.formats_for(own, own), eps=asked,
        eps_from=origin, new=new, amplification=float(amplification), layers=layers,
    )  # fmt: skip


def find(model: Any, *, norm: Norm | str | None = None, hidden_size: int | None = None) -> Given:
    """What a model says of itself.

    Parameters
    ----------
    model
        A path (a config's .json file or folder, or a capture), the name of a known model or of a
        packaged capture, a record of any of these, a torch module, or None.
    norm, hidden_size
        What is known where there is no model.

    Raises
    ------
    InputError
        Where nothing of that name is found, or it can't be read.
    """
    match model:
        case None:
            return _bare(norm, hidden_size)
        case Given():
            return model
        case Capture():
            return _of_capture(model)
        case CaptureFile() | PackagedCapture():
            return _of_capture(model.load())
        case ModelConfig():
            return _of_config(model)
        case KnownModel():
            return _of_known(model)
        case str() | os.PathLike():
            return _of_name(os.fspath(model), norm)
    if hasattr(model, "named_modules"):
        return _of_module(model)
    raise InputError(
        f"a {type(model).__name__} is no model: give a path, a name, a capture or a torch module"
    )


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


def _bare(norm: Norm | str | None, hidden_size: int | None) -> Given:
    if norm is None or hidden_size is None:
        raise InputError(
            "without a model there must be a norm and a hidden_size: norm='rms', hidden_size=4096"
        )
    if isinstance(hidden_size, bool) or not isinstance(hidden_size, int) or not (
        1 <= hidden_size <= WIDEST
    ):  # fmt: skip
        raise InputError(f"hidden_size is {hidden_size!r}: give a whole number from 1 to {WIDEST}")
    return Given(model="", norm=norms.find(norm).name, eps=None, hidden_size=hidden_size)


def _of_name(name: str, norm: Norm | str | None) -> Given:
    path = Path(name)
    there = "\0" not in name and path.exists()
    if there and path.suffix.lower() == ".safetensors" and path.is_file():
        return _of_capture(capture_file(path).load())
    if there or path.suffix.lower() in (".json", ".safetensors") or name.endswith(os.sep):
        return _of_config(read_model_config(path, norm=None if norm is None else str(norm)))
    if name in captures:
        return _of_capture(captures[name].load())
    if name in known_models:
        return _of_known(known_models[name])
    raise unknown("model", name[:80], [*known_models, *captures])


def _of_capture(capture: Capture) -> Given:
    known = known_models.get(capture.model)
    known = None if known is None or known.norm != capture.norm else known
    first = capture.layers[0]
    return Given(
        model=capture.model, norm=capture.norm, eps=capture.eps, hidden_size=first.x.shape[1],
        format=_format_name(first.x), offset=capture.weight_offset,
        layers={layer.name: (layer.x, layer.weight, layer.bias) for layer in capture.layers},
        **_of_type(known),
    )  # fmt: skip


def _of_type(known: KnownModel | None) -> dict[str, Any]:
    """What is known of a model beside its own words."""
    if known is None:
        return {}
    return {
        "model_type": known.model_type, "plan": known.plan, "default_eps": known.type.eps_default,
        "released_eps": known.eps if known.released else None, "released_name": known.name,
    }  # fmt: skip


def _of_config(config: ModelConfig) -> Given:
    known = next((known_models[name] for name in (config.model, config.base)
                  if name and name in known_models), None)  # fmt: skip
    released = known is not None and known.released
    gains = read_gains(config.path.parent)
    return Given(
        model=config.model, model_type=config.model_type, norm=config.norm, plan=config.plan,
        eps=config.eps, hidden_size=config.hidden_size, other_sizes=config.other_sizes,
        format=config.dtype, default_eps=config.default_eps, offset=config.weight_offset,
        released_eps=known.eps if known is not None and released else None,
        released_name=known.name if known is not None else "",
        layers={name: (None, weight, bias) for name, (weight, bias) in gains.items()},
    )  # fmt: skip


def _of_known(known: KnownModel) -> Given:
    return Given(
        model=known.name, norm=known.norm, eps=known.eps, hidden_size=known.hidden_size,
        other_sizes=known.other_sizes, format="bfloat16" if known.norm == "rms" else "float32",
        offset=known.type.weight_offset, **_of_type(known),
    )  # fmt: skip


def _of_module(module: Any) -> Given:
    """A torch module, which is not run: its norms, their eps and parameters."""
    from precision_lab.kernels.torch_recording import layers_of

    found = layers_of(module)
    if not found:
        raise InputError(f"{type(module).__name__} holds no norm that is known")
    first = found[0]
    kinds = {(one.norm, one.eps, one.weight_offset) for one in found}
    if len(kinds) > 1:
        told = ", ".join(f"{norm} with eps {eps:g}" for norm, eps, _ in sorted(kinds))
        raise InputError(
            f"{type(module).__name__} has norms of several kinds ({told}): ask about one of its "
            "parts"
        )
    widths = [one.hidden for one in found if one.hidden]
    if not widths:
        raise InputError(f"no norm of {type(module).__name__} tells its width: capture it instead")
    known = known_models.get(type(module).__name__)
    return Given(
        model=type(module).__name__, norm=first.norm, eps=first.eps, hidden_size=widths[0],
        format="" if first.weight is None else _format_name(first.weight),
        offset=first.weight_offset,
        layers={one.name: (one.hidden, one.weight, one.bias) for one in found if one.hidden},
        **_of_type(known),
    )  # fmt: skip


def _format_name(array: NDArray[Any]) -> str:
    from precision_lab.formats import format_of

    return format_of(array).name


def _overridden(given: Given, *, eps: float | None, offset: float | None) -> Given:
    changes: dict[str, Any] = {}
    if eps is not None:
        changes["eps"] = check_eps(eps)
    if offset is not None:
        changes["offset"] = float(offset)
    return dataclasses.replace(given, **changes)


def _with_rows(given: Given, activations: Any) -> Given:
    """The model with the rows of a capture."""
    found = find(activations)
    if not any(isinstance(x, np.ndarray) for x, _, _ in found.layers.values()):
        raise InputError(f"activations {activations} hold no rows: give a capture")
    if found.norm != given.norm:
        raise InputError(
            f"the activations are of a {found.norm!r} norm, and {given.model or 'the model'} has "
            f"{given.norm!r} norms"
        )
    return dataclasses.replace(given, layers=found.layers, offset=found.offset)


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
