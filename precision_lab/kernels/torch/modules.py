# SPDX-License-Identifier: Apache-2.0
"""torch's own norms, and modules that hold one: built, found in a model, and called as a kernel.

A module gets the weight and the bias of each call in the place of its own parameters, and is left
as it was. One that is built here has the size and the eps of the call; in one that is there
already both are fixed.
"""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Any

from precision_lab.exceptions import InputError, the_nearest
from precision_lab.kernels.declared import Adapted, Declared
from precision_lab.processes import RefusedError, guard_call

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Names that constructors and modules in use have for the same thing.
HIDDEN = (
    "hidden", "hidden_size", "normalized_shape", "dim", "size", "d_model", "features", "n_embd",
    "embed_dim", "num_features", "num_channels", "width", "ndim", "d", "n",
)  # fmt: skip
EPS = (
    "eps", "variance_epsilon", "epsilon", "layer_norm_eps", "rms_norm_eps", "layer_norm_epsilon",
    "norm_eps", "layernorm_epsilon",
)  # fmt: skip
WEIGHT = ("weight", "gamma", "scale", "gain", "g", "w", "a_2")
BIAS = ("bias", "beta", "shift", "b", "b_2")

KEPT = 2
"""Modules of a size and an eps that are kept: one size is asked with two eps in turn."""

NAMED = 6
"""Norms of a model that a message names."""

NO_NORM = "no RMSNorm or LayerNorm: give rms_norm, layer_norm or a function of your own"
"""What is said of torch's other functions and modules."""

OTHER_NORMS = (
    "GroupNorm", "LocalResponseNorm", "SyncBatchNorm",
    *(f"{kind}{axes}d" for kind in ("BatchNorm", "InstanceNorm") for axes in (1, 2, 3)),
)  # fmt: skip
"""torch's modules that normalise over other elements than those of a row."""

DEFAULT_EPS = 2.0**-23
"""What torch's RMSNorm adds where its eps is None, in every format that is computed in float32."""


def adapt(
    target: Any, source: str, *, part: str = "", device: str = "cpu", weight_offset: float = 0.0
) -> Adapted | None:
    """One of torch's norms, a module or what makes one, as a kernel; None for anything else.

    Parameters
    ----------
    target
        What a name stood for: a function, a module's class or a module.
    source
        How messages name it.
    part
        The dotted name of a norm inside the module.
    device
        Where it is to run.
    weight_offset
        What it adds to its weight: a call without a weight gets one that makes the gain 1.

    Raises
    ------
    InputError
        It cannot be built, has no such part, or holds more than one norm.
    """
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "nn"):
        # A function that makes a module may import torch itself, but not before it is called.
        return (
            _from_factory(target, source, part, device, weight_offset)
            if _is_factory(target)
            else None
        )
    if target in (torch.nn.functional.rms_norm, getattr(torch, "rms_norm", None)):
        return Adapted(function=_rms_norm, framework="torch", norm="rms")
    if target in (torch.nn.functional.layer_norm, torch.layer_norm):
        return Adapted(function=_layer_norm, framework="torch", norm="layer")
    if isinstance(target, type):
        _refuse_other_norms(target, source)
    if isinstance(target, torch.nn.Module):
        return _module(_part(target, part, source), source, device, weight_offset)
    if (isinstance(target, type) and issubclass(target, torch.nn.Module)) or _is_factory(target):
        return _from_factory(target, source, part, device, weight_offset)
    if part:
        raise InputError(f"{source} is no module: only a module has a part {part!r}")
    if _is_torch_function(torch, target):
        raise InputError(f"{source} is a function of torch, and {NO_NORM}")
    return None


def is_of_torch(target: Any) -> bool:
    """Whether it is a module of torch, its class, or a function that torch has itself."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "nn"):
        return False
    kind = target if isinstance(target, type) else type(target)
    return issubclass(kind, torch.nn.Module) or _is_torch_function(torch, target)


def _is_torch_function(torch: Any, target: Any) -> bool:
    name = getattr(target, "__name__", "")
    places = (torch.nn.functional, torch)
    return bool(name) and any(getattr(place, name, None) is target for place in places)


def _refuse_other_norms(target: Any, source: str) -> None:
    """Refuse torch's norms over other groups, built or to be built; one group is a LayerNorm."""
    torch = sys.modules["torch"]
    kind = target if isinstance(target, type) else type(target)
    others = tuple(getattr(torch.nn, name) for name in OTHER_NORMS)
    if issubclass(kind, others) and getattr(target, "num_groups", 0) != 1:
        raise InputError(f"{source} is torch's {kind.__name__}, and {NO_NORM}")


def _rms_norm(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    import torch

    if bias is not None:
        raise NotImplementedError("it has no bias")
    return torch.nn.functional.rms_norm(x, (x.shape[-1],), weight, eps)


def _layer_norm(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    import torch

    return torch.nn.functional.layer_norm(x, (x.shape[-1],), weight, bias, eps)


# Built here ---------------------------------------------------------------------------------------


def _is_factory(target: Any) -> bool:
    """Whether a function takes what makes a norm, and not what a norm takes."""
    if isinstance(target, type) or not callable(target):
        return False
    try:
        parameters = list(inspect.signature(target).parameters.values())
    except (TypeError, ValueError):
        return False
    named = [one for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    if len(named) < len(parameters):
        return False
    return not named or (
        named[0].name in HIDDEN + EPS
        and all(one.default is not one.empty or one.name in HIDDEN + EPS for one in named)
    )


def _from_factory(
    target: Callable[..., Any], source: str, part: str, device: str, offset: float
) -> Adapted:
    """A class or a function that makes a module."""
    roles = _arguments(target, source)

    def build(hidden: int, eps: float) -> Any:
        arguments = {
            name: {"hidden": hidden, "eps": eps, "bias": True}[role] for name, role in roles.items()
        }
        try:
            with guard_call(f"building {source}"):
                module = target(**arguments)
        except RefusedError as error:
            raise InputError(f"{source} cannot be built: it raised {error}") from error
        torch = sys.modules.get("torch")
        if torch is None or not isinstance(module, torch.nn.Module):
            raise InputError(
                f"{source} takes no (x, weight, bias, eps), and what it makes is"
                f" {type(module).__name__}, not a torch module"
            )
        return _part(module, part, source).to(device).eval()

    first = build(8, 1e-5)
    if "hidden" not in roles.values():
        # Its size is its own business: nothing of it can be chosen.
        return _module(first, source, device, offset)
    kept: dict[tuple[int, float], Any] = {}
    names = _parameters(first, source)
    fixed_eps = None if "eps" in roles.values() else _eps_of(first)

    def function(x: Any, weight: Any, bias: Any, eps: float) -> Any:
        Declared(eps=fixed_eps).refuse(hidden=x.shape[-1], eps=eps)
        key = (int(x.shape[-1]), eps)
        if key not in kept:
            if len(kept) >= KEPT:
                del kept[next(iter(kept))]
            kept[key] = build(*key)
        return _call_module(kept[key], names, (x, weight, bias), offset)

    return Adapted(
        function=function,
        framework="torch",
        norm=_norm(first, names),
        declared=Declared(eps=fixed_eps),
        parameters=tuple(names),
    )


def _arguments(target: Callable[..., Any], source: str) -> dict[str, str]:
    """Which arguments a constructor is given, and what: hidden, eps or bias."""
    try:
        parameters = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        raise InputError(f"{source} does not say what it takes: give a function of none") from None
    roles: dict[str, str] = {}
    for one in parameters:
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            continue
        if one.name in HIDDEN and "hidden" not in roles.values():
            roles[one.name] = "hidden"
        elif one.name in EPS:
            roles[one.name] = "eps"
        elif one.default is one.empty and one.name == "bias":
            roles[one.name] = "bias"
        elif one.default is one.empty:
            raise InputError(
                f"{source} cannot be built: it wants {one.name!r}, and only a hidden size"
                f" ({', '.join(HIDDEN[:4])}, …) and an eps are known: give a function of none that"
                " makes one"
            )
    return roles


# Modules that are there ---------------------------------------------------------------------------


def _module(module: Any, source: str, device: str, offset: float) -> Adapted:
    """A module whose size and eps are fixed."""
    names = _parameters(module, source)
    weight = dict(module.named_parameters()).get(names.get("weight", ""))
    shape = getattr(module, "normalized_shape", None)
    hidden = None
    if weight is not None:
        hidden = int(weight.shape[-1])
    elif isinstance(shape, tuple) and len(shape) == 1:
        hidden = int(shape[0])
    declared = Declared(hidden=hidden, eps=_eps_of(module))
    if device != "cpu":
        module = module.to(device)

    def function(x: Any, weight: Any, bias: Any, eps: float) -> Any:
        declared.refuse(hidden=int(x.shape[-1]), eps=eps)
        return _call_module(module, names, (x, weight, bias), offset)

    return Adapted(
        function=function, framework="torch", norm=_norm(module, names), declared=declared,
        parameters=tuple(names),
    )  # fmt: skip


def _part(module: Any, part: str, source: str) -> Any:
    if not part:
        _refuse_other_norms(module, source)
        return module
    norms = _norms(module)
    try:
        found = module.get_submodule(part)
    except AttributeError:
        known = norms or [name for name, _ in module.named_modules() if name]
        near = the_nearest(part, known) if known else "it has none"
        raise InputError(f"{source} has no part {part!r}: {near}") from None
    _refuse_other_norms(found, f"{source}#{part}")
    # Told here, for the part itself does not know what lies beside it.
    _parameters(found, f"{source}#{part}", others=norms)
    return found


def _norms(module: Any) -> list[str]:
    """The names of the norms inside a module, as far as names tell."""
    return [
        place
        for place, inner in module.named_modules()
        if place and "norm" in (place.rpartition(".")[2] + type(inner).__name__).lower()
    ]


def _parameters(module: Any, source: str, others: Sequence[str] = ()) -> dict[str, str]:
    """The names of a norm's weight and bias, each where there is one.

    `others` are the norms of the model that it is a part of.
    """
    found: dict[str, str] = {}
    for name, parameter in module.named_parameters():
        last = name.rpartition(".")[2]
        role = "bias" if last in BIAS else "weight" if last in WEIGHT else ""
        if parameter.dim() != 1 or role in found or not role:
            if norms := _norms(module):
                advice = f", name its norm, such as {norms[0]!r}"
            else:
                more = ", …" if len(others) > NAMED else ""
                advice = f"; the norms are {', '.join(others[:NAMED])}{more}" if others else ""
            raise InputError(
                f"{source} is no single norm, for it has the parameter {name!r} of shape"
                f" {tuple(parameter.shape)}{advice}"
            )
        found[role] = name
    return found


def _eps_of(module: Any) -> float | None:
    """The eps that a module holds; None where none is seen."""
    for inner in module.modules():
        for name in EPS:
            value = getattr(inner, name, ...)
            if isinstance(value, float | int) and not isinstance(value, bool):
                return float(value)
            if value is None and type(inner).__name__ == "RMSNorm":
                return DEFAULT_EPS
    return None


def _norm(module: Any, names: dict[str, str]) -> str:
    """The norm that a module computes, as far as its kind tells."""
    import torch

    if isinstance(module, torch.nn.LayerNorm) or "bias" in names:
        return "layer"
    return "rms" if "rms" in type(module).__name__.lower() else ""


def _call_module(
    module: Any, names: dict[str, str], arguments: tuple[Any, Any, Any], offset: float
) -> Any:
    """What a module gives with the weight and bias of a call, which stay its own for this call."""
    import torch

    x, weight, bias = arguments
    parameters = {}
    for role, value, absent in (("weight", weight, 1.0 - offset), ("bias", bias, 0.0)):
        if role in names and value is not None:
            parameters[names[role]] = value
        elif role in names:
            neutral = torch.full((x.shape[-1],), absent, dtype=x.dtype, device=x.device)
            parameters[names[role]] = neutral
        elif value is not None:
            raise NotImplementedError(f"it has no {role}")
    return torch.func.functional_call(module, parameters, (x,))
