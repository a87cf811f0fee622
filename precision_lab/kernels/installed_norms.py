# SPDX-License-Identifier: Apache-2.0
"""The norms of libraries that are installed here, as kernels: one row each.

Each is called through the library's own function or module, with arrays in and arrays out.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from precision_lab.kernels.torch import tensors as bridge
from precision_lab.table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

Function: TypeAlias = Callable[..., Any]
MEASURED = ("float32", "bfloat16", "float16")


@dataclass(frozen=True, kw_only=True)
class InstalledNorm:
    """A library's norm, ``"rms"`` or ``"layer"``, in the formats of x that it takes.

    `name` is the library's and its function's or class's, and `package` what must be installed.
    `make` imports the library and gives kernel(x, weight, bias, eps) -> y on arrays.
    """

    name: str
    package: str
    norm: str
    make: Callable[[], Function]
    weight_offset: float = 0.0
    formats: tuple[str, ...] = MEASURED


def _functional(name: str) -> Callable[[], Function]:
    """A function of torch.nn.functional."""

    def make() -> Function:
        import torch

        function = getattr(torch.nn.functional, name)

        def kernel(x: Array, weight: Array | None, bias: Array | None, eps: float) -> Any:
            def norm_of_tensors(x: Any, weight: Any, bias: Any, eps: float) -> Any:
                more = () if name == "rms_norm" else (bias,)
                return function(x, x.shape[-1:], weight, *more, eps=eps)

            return bridge.array(bridge.call(norm_of_tensors, [x, weight, bias], eps, "cpu"))

        return kernel

    return make


def _module(path: str, kind: str, *, offset: float = 0.0) -> Callable[[], Function]:
    """A module of transformers, made for each size and eps, with the call's own weight."""

    def make() -> Function:
        import torch

        kind_of_norm = getattr(importlib.import_module(path), kind)

        def kernel(x: Array, weight: Array | None, bias: Array | None, eps: float) -> Any:
            def norm_of_tensors(x: Any, weight: Any, _bias: Any, eps: float) -> Any:
                module = kind_of_norm(x.shape[-1], eps=eps)
                if weight is None:
                    weight = torch.full(x.shape[-1:], 1.0 - offset, dtype=x.dtype)
                module.weight.data = weight
                return module(x)

            return bridge.array(bridge.call(norm_of_tensors, [x, weight, bias], eps, "cpu"))

        return kernel

    return make


@lru_cache(maxsize=256)
def _session(operator: str, format: str, eps: float, parts: int) -> Any:
    """onnxruntime with a model of one node."""
    import onnx
    import onnxruntime

    kind = onnx.TensorProto.FLOAT if format == "float32" else onnx.TensorProto.FLOAT16
    names = ["x", "weight", "bias"][:parts]
    value, helper = onnx.helper.make_tensor_value_info, onnx.helper
    node = helper.make_node(operator, names, ["y"], axis=-1, epsilon=eps)
    inputs = [value(names[0], kind, ["rows", "hidden"])]
    inputs += [value(name, kind, ["hidden"]) for name in names[1:]]
    graph = helper.make_graph([node], "norm", inputs, [value("y", kind, ["rows", "hidden"])])
    version = 23 if operator == "RMSNormalization" else 17
    sets = [helper.make_opsetid("", version)]
    model = helper.make_model(graph, opset_imports=sets, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def _onnx(operator: str) -> Callable[[], Function]:
    """An operator of ONNX as onnxruntime runs it on the CPU."""

    def make() -> Function:
        importlib.import_module("onnx")
        importlib.import_module("onnxruntime")

        def kernel(x: Array, weight: Array | None, bias: Array | None, eps: float) -> Any:
            feeds = {"x": x, "weight": np.ones(x.shape[-1:], x.dtype) if weight is None else weight}
            if bias is not None:
                feeds["bias"] = bias
            return _session(operator, x.dtype.name, eps, len(feeds)).run(None, feeds)[0]

        return kernel

    return make


def _flax(kind: str) -> Callable[[], Function]:
    """A module of flax.linen."""

    def make() -> Function:
        import jax.numpy as jnp
        from flax import linen

        def kernel(x: Array, weight: Array | None, bias: Array | None, eps: float) -> Any:
            options: dict[str, Any] = {"epsilon": eps, "dtype": x.dtype, "param_dtype": x.dtype}
            options["use_scale"] = weight is not None
            params = {} if weight is None else {"scale": jnp.asarray(weight)}
            if kind == "LayerNorm":
                options["use_bias"] = bias is not None
                params |= {} if bias is None else {"bias": jnp.asarray(bias)}
            module = getattr(linen, kind)(**options)
            return np.asarray(module.apply({"params": params}, jnp.asarray(x)))

        return kernel

    return make


def _transformers(model: str, kind: str, *, offset: float = 0.0) -> InstalledNorm:
    path = f"transformers.models.{model}.modeling_{model}"
    return InstalledNorm(
        name=f"transformers {kind}",
        package="transformers",
        norm="rms",
        make=_module(path, kind, offset=offset),
        weight_offset=offset,
    )


installed: Table[InstalledNorm] = Table(
    "installed norm",
    [
        InstalledNorm(
            name="torch rms_norm", package="torch", norm="rms", make=_functional("rms_norm")
        ),
        InstalledNorm(
            name="torch layer_norm", package="torch", norm="layer", make=_functional("layer_norm")
        ),
        _transformers("llama", "LlamaRMSNorm"),
        _transformers("t5", "T5LayerNorm"),
        _transformers("gemma", "GemmaRMSNorm", offset=1.0),
        _transformers("gemma3n", "Gemma3nRMSNorm"),
        _transformers("olmo2", "Olmo2RMSNorm"),
        _transformers("qwen3", "Qwen3RMSNorm"),
        InstalledNorm(
            name="onnxruntime RMSNormalization", package="onnxruntime", norm="rms",
            make=_onnx("RMSNormalization"), formats=("float32", "float16"),
        ),
        InstalledNorm(
            name="onnxruntime LayerNormalization", package="onnxruntime", norm="layer",
            make=_onnx("LayerNormalization"), formats=("float32", "float16"),
        ),
        InstalledNorm(
            name="flax RMSNorm", package="flax", norm="rms", make=_flax("RMSNorm")
        ),
        InstalledNorm(
            name="flax LayerNorm", package="flax", norm="layer", make=_flax("LayerNorm")
        ),
    ],
)  # fmt: skip
"""Every row, by name; what is not installed fails when it is made."""
