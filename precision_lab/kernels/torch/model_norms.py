# SPDX-License-Identifier: Apache-2.0
"""The norms of a torch model: found and read, the model not run.

What a norm computes is asked of the norm itself: on four rows its output is compared with RMSNorm
and LayerNorm, with the weight as it is and with 1 + weight. Only where it can't be asked alone, or
where its weight leaves it open, does its name decide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.exceptions import InputError
from precision_lab.inputs import short_decimal
from precision_lab.kernels.torch import tensors as bridge
from precision_lab.kernels.torch.modules import BIAS, DEFAULT_EPS, EPS, WEIGHT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Array = NDArray[Any]

TEST_ROWS = 4
"""Rows on which a norm is asked what it computes."""
UNKNOWN_SIZE = 16
"""Elements of these rows where nothing tells the norm's size."""
CLOSE = {"float64": 1e-4, "float32": 1e-3, "float16": 2e-2, "bfloat16": 6e-2}
"""How far such outputs may be from a norm's, against its largest: eps may be in another place."""


@dataclass(frozen=True, kw_only=True)
class ModelNorm:
    """One norm of a torch model.

    Parameters
    ----------
    name
        Its place in the model; its class where it is the whole model.
    norm
        ``rms`` or ``layer``.
    eps
        As its author wrote it; where nn.RMSNorm has None, what torch adds then.
    hidden
        Elements of a row; None for a norm without a weight that does not tell.
    weight, bias
        [hidden], copies; None where it has none.
    weight_offset
        1 where its gain is 1 + weight, else 0.
    class_name
        Its class, with its module.
    plan
        The row of `plans` that it follows, where it is torch's own; "" elsewhere.
    """

    name: str
    norm: str
    eps: float
    hidden: int | None
    weight: Array | None
    bias: Array | None
    weight_offset: float
    class_name: str
    plan: str


@dataclass(frozen=True)
class UnreadNorm:
    """A module that is called a norm and is none that can be judged; and why, in a few words."""

    name: str
    why: str


def norms_of(model: Any) -> Iterator[tuple[Any, ModelNorm]]:
    """Every norm's module and what is known of it, in the model's order; the model is not run.

    A norm that stands in two places counts once.

    Raises
    ------
    InputError
        A norm's parameters are not there, or of no format; or its eps is no number from 0 up.
    """
    for module, found in _candidates(model):
        if isinstance(found, ModelNorm):
            yield module, found


def unread_norms(model: Any) -> Iterator[UnreadNorm]:
    """Every module that is called a norm and that `norms_of` leaves out, in the model's order.

    Raises
    ------
    InputError
        As for `norms_of`.
    """
    for _, found in _candidates(model):
        if isinstance(found, UnreadNorm):
            yield found


def _candidates(model: Any) -> Iterator[tuple[Any, ModelNorm | UnreadNorm]]:
    for name, module in model.named_modules():
        found = _norm_of(name or type(module).__name__, module)
        if isinstance(found, str):
            yield module, UnreadNorm(name or type(module).__name__, found)
        elif found is not None:
            yield module, found


def refuse_traced(model: Any) -> None:
    """Refuse a model whose norms run where no hook is called.

    Raises
    ------
    InputError
        It is compiled or scripted, or a part of it is.
    """
    import torch

    for name, module in model.named_modules():
        where = f"its part {name!r}" if name else "the model"
        if isinstance(module, torch.jit.ScriptModule):
            raise InputError(f"{where} is scripted, which calls no hooks: give the module it was")
        compiled = getattr(module, "_compiled_call_impl", None) is not None
        if compiled or hasattr(module, "_orig_mod"):
            raise InputError(
                f"{where} is compiled, which calls no hooks: give the module before torch.compile"
            )


# What a norm is -----------------------------------------------------------------------------------


def _norm_of(name: str, module: Any) -> ModelNorm | str | None:
    """What is known of a module; in words why it is no norm over the last dimension, if called one.

    None where it is no norm at all.
    """
    import torch

    nn = torch.nn
    batch = nn.modules.batchnorm._NormBase  # noqa: SLF001 - torch has no public name for it
    if isinstance(module, batch | nn.GroupNorm | nn.LocalResponseNorm):
        return f"a {type(module).__name__} does not norm the last dimension"
    eps = _eps(name, module)
    weight, bias = _stored_tensor(module, WEIGHT), _stored_tensor(module, BIAS)
    shape = getattr(module, "normalized_shape", None)
    shape = (shape,) if isinstance(shape, int) else shape
    named_norm = "norm" in type(module).__name__.lower() and not list(module.children())
    if eps is None or (weight is None and shape is None and not named_norm):
        return None
    known = {id(one) for one in (weight, bias)}
    if any(id(one) not in known for one in module.parameters()):
        return "it has more parameters than a weight and a bias" if named_norm else None
    weight, bias = (None if one is None else one.detach() for one in (weight, bias))
    for one in (weight, bias):
        if one is not None and one.is_meta:
            raise InputError(f"the weight of {name} is on the device meta: load the model first")
    if weight is not None and shape is None and weight.dim() > 1:
        if not named_norm:
            return None
        return f"its weight has the shape {tuple(weight.shape)}: each head has a gain of its own"
    hidden = _hidden(weight, shape)
    if weight is not None and weight.dim() == 0:
        # A scale for all: 1 where a model leaves the weight out.
        weight = None if float(weight) == 1 else weight.expand(hidden or UNKNOWN_SIZE)
    kind = _kind(module, eps, weight, bias, shape=shape or (hidden or UNKNOWN_SIZE,))
    if kind is None:
        return "it computes neither RMSNorm nor LayerNorm" if named_norm else None
    norm, offset = kind
    return ModelNorm(
        name=name,
        norm=norm,
        eps=eps,
        hidden=hidden,
        weight=_copy(name, weight),
        bias=_copy(name, bias),
        weight_offset=offset,
        class_name=f"{type(module).__module__}.{type(module).__qualname__}",
        plan=_own_plan(module),
    )


def _own_plan(module: Any) -> str:
    """The plan of a norm that runs torch's own code; "" of any other."""
    import torch

    nn = torch.nn
    plans = ((nn.RMSNorm, "torch-rms-norm"), (nn.LayerNorm, "torch-layer-norm"))
    return next((plan for own, plan in plans if type(module).forward is own.forward), "")


def _hidden(weight: Any, shape: tuple[int, ...] | None) -> int | None:
    """Elements of a row; None where nothing tells."""
    if shape is not None:
        return math.prod(int(size) for size in shape)
    return int(weight.shape[0]) if weight is not None and weight.dim() == 1 else None


def _eps(name: str, module: Any) -> float | None:
    """The eps that a module itself holds; None where it has none."""
    for key in EPS:
        value = getattr(module, key, ...)
        if value is None and type(module).__name__ == "RMSNorm":
            weight = _stored_tensor(module, WEIGHT)
            return 2.0**-52 if weight is not None and weight.element_size() == 8 else DEFAULT_EPS
        if isinstance(value, float | int) and not isinstance(value, bool):
            if not math.isfinite(value) or value < 0:
                raise InputError(f"the eps of {name} is {value}: it must be a number from 0 up")
            return short_decimal(float(value))
    return None


def _stored_tensor(module: Any, names: tuple[str, ...]) -> Any:
    """A parameter or a buffer of a module's own, by one of these names."""
    import torch

    found = (getattr(module, name, None) for name in names)
    return next((one for one in found if isinstance(one, torch.Tensor)), None)


def _copy(name: str, tensor: Any) -> Array | None:
    if tensor is None:
        return None
    try:
        return np.array(bridge.array(tensor.detach()).reshape(-1))
    except InputError as error:
        raise InputError(f"the parameters of {name} cannot be read: {error}") from None


def _kind(
    module: Any, eps: float, weight: Any, bias: Any, *, shape: tuple[int, ...]
) -> tuple[str, float] | None:
    """The norm and the weight's offset; None where what it computes is neither norm."""
    import torch

    if isinstance(module, torch.nn.LayerNorm):
        named = "layer"
    else:
        named = "rms" if "rms" in type(module).__name__.lower() or bias is None else "layer"
    size = math.prod(shape)
    x = torch.arange(TEST_ROWS * size, dtype=torch.float64)
    x = (2 + 3 * torch.sin(x * x + 1)).reshape(TEST_ROWS, *shape)
    like = weight if weight is not None else torch.zeros((), dtype=torch.float32)
    x = x.to(device=like.device, dtype=like.dtype)
    dtype = str(like.dtype).removeprefix("torch.")
    try:
        with torch.no_grad():
            # Past the hooks, which are the user's.
            y = module.forward(x)
        wide = y.double().reshape(TEST_ROWS, size)
    except Exception:  # noqa: BLE001 - it may want more arguments, or another shape
        return named, 0.0
    if dtype not in CLOSE or not bool(wide.isfinite().all()):
        return named, 0.0
    rows = x.double().reshape(TEST_ROWS, size)
    fitting = []
    for norm in (named, "layer" if named == "rms" else "rms"):
        centred = rows - rows.mean(-1, keepdim=True) if norm == "layer" else rows
        unit = centred / (centred.square().mean(-1, keepdim=True) + eps).sqrt()
        for offset in (0.0, 1.0) if weight is not None else (0.0,):
            gain = 1.0 if weight is None else weight.double().reshape(-1) + offset
            expected = unit * gain + (0.0 if bias is None else bias.double().reshape(-1))
            scale = max(float(expected.abs().max()), float(wide.abs().max()))
            if float((expected - wide).abs().max()) <= CLOSE[dtype] * scale:
                fitting.append((norm, offset))
    return fitting[0] if fitting else None
