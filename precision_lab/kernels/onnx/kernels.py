# SPDX-License-Identifier: Apache-2.0
"""ONNX models that hold one norm, run by onnxruntime on the CPU.

A file's numbers are data and stay so: no library of operators is loaded, and no number is read from
outside the file.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.exceptions import InputError
from precision_lab.kernels.declared import Adapted, Declared
from precision_lab.kernels.onnx.models import OneNorm, extract_norm
from precision_lab.numbers import formats
from precision_lab.processes import describe_error

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

LEVEL = 4
"""onnxruntime prints fatal errors alone; the others are raised."""


def version() -> str:
    """The version of onnxruntime.

    Raises
    ------
    InputError
        It is not installed.
    """
    return str(_runtime().__version__)


def _runtime() -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise InputError(
            f"an ONNX model needs onnxruntime, which cannot be imported ({error}): "
            "pip install 'precision-lab[onnx]'"
        ) from error
    return onnxruntime


def adapt(path: Path, *, weight_offset: float = 0.0) -> Adapted:
    """The norm of a model as a kernel of arrays.

    The weight and the bias of each call stand in the place of the model's own.

    Parameters
    ----------
    path
        The file.
    weight_offset
        What the model adds to its weight.

    Raises
    ------
    InputError
        As for `onnx_models.one_norm`, or onnxruntime is not there or cannot run it.
    """
    norm = extract_norm(path)
    session = _session(norm, path)
    note = ""
    if norm.others:
        nodes, were = ("node", "was") if norm.others == 1 else ("nodes", "were")
        note = (
            f"judged: its norm alone; {norm.others} other {nodes} of the model's graph"
            f" {were} not run"
        )
    declared = Declared(
        hidden=norm.hidden,
        eps=norm.eps,
        format=norm.format,
        weight_format=norm.weight_format,
        note=note,
    )

    def function(
        x: NDArray[Any], weight: NDArray[Any] | None, bias: NDArray[Any] | None, eps: float
    ) -> NDArray[Any]:
        hidden = x.shape[-1]
        declared.refuse(hidden=hidden, eps=eps)
        feeds = {
            norm.x: _check_format(x, norm.format, "x").reshape(*[1] * (norm.rank - 2), *x.shape)
        }
        if norm.skip:
            # Only −0 leaves every x what it is, 0 and −0 too.
            feeds[norm.skip] = formats[norm.format].cast(np.full(x.shape, -0.0))
        parameters = (
            ("weight", norm.weight, weight, 1.0 - weight_offset),
            ("bias", norm.bias, bias, 0.0),
        )
        for role, name, value, absent in parameters:
            if name:
                neutral = formats[norm.weight_format].cast(np.full(hidden, absent))
                feeds[name] = _check_format(
                    neutral if value is None else value, norm.weight_format, role
                )
            elif value is not None:
                raise NotImplementedError(f"it has no {role}")
        return _first_output(session, feeds).reshape(x.shape)

    return Adapted(function=function, framework="onnx", norm=norm.norm, declared=declared)


def _session(norm: OneNorm, path: Path) -> Any:
    runtime = _runtime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = LEVEL
    try:
        return runtime.InferenceSession(norm.model, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        # Its errors have a root of their own for each code, and none in common.
        raise InputError(
            f"{path}: onnxruntime cannot run its {norm.operator} in {norm.format}:"
            f" {describe_error(error)}"
        ) from error


def _check_format(array: NDArray[Any], format: str, role: str) -> NDArray[Any]:
    if array.dtype != formats[format].dtype:
        raise NotImplementedError(f"its {role} is {format}, not {array.dtype}")
    return np.ascontiguousarray(array)


def _first_output(session: Any, feeds: dict[str, NDArray[Any]]) -> NDArray[Any]:
    """The first output; bfloat16 goes in and out by its bits."""
    if all(array.dtype.name != "bfloat16" for array in feeds.values()):
        found: NDArray[Any] = session.run(None, feeds)[0]
        return found
    runtime = _runtime()
    values = {name: _value(runtime, array) for name, array in feeds.items()}
    value = session.run_with_ort_values([session.get_outputs()[0].name], values)[0]
    if "bfloat16" not in value.data_type():
        plain: NDArray[Any] = value.numpy()
        return plain
    shape = tuple(value.shape())
    size = int(np.prod(shape))
    bits = np.zeros(size, np.uint16)
    if size:
        ctypes.memmove(bits.ctypes.data, value.data_ptr(), 2 * size)
    return bits.view(formats["bfloat16"].dtype).reshape(shape)


def _value(runtime: Any, array: NDArray[Any]) -> Any:
    if array.dtype.name != "bfloat16":
        return runtime.OrtValue.ortvalue_from_numpy(array)
    # The number that stands for BFLOAT16 in ONNX's TensorProto.
    wrap = runtime.OrtValue.ortvalue_from_numpy_with_onnx_type
    return wrap(array.view(np.uint16), 16)
