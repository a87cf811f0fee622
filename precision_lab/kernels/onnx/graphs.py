# SPDX-License-Identifier: Apache-2.0
"""What an ONNX graph says of its values, and norms that are written out in simple operators."""

from __future__ import annotations

import contextlib
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.exceptions import InputError

if TYPE_CHECKING:
    from pathlib import Path

CODES = {1: "float32", 10: "float16", 11: "float64", 16: "bfloat16"}
"""ONNX's numbers of the element types that a norm may have."""

SIMPLE = {
    "Abs", "Add", "Cast", "Constant", "Div", "Identity", "Max", "Mul", "Neg", "Pow", "Reciprocal",
    "ReduceMean", "ReduceSum", "ReduceSumSquare", "ReduceL2", "Sqrt", "Sub",
}  # fmt: skip
"""Operators of which a norm may be written out."""

REDUCE = {"ReduceMean", "ReduceSum", "ReduceSumSquare", "ReduceL2"}


class Graph:
    """A model's main graph.

    Parameters
    ----------
    model
        The model.
    path
        Its file, for messages.
    """

    def __init__(self, model: Any, path: Path) -> None:
        self.model = model
        self.path = path
        self.stored = {one.name: one for one in model.graph.initializer}

    @cached_property
    def _types(self) -> dict[str, Any]:
        """The tensor type of each value that has one."""
        import onnx

        model = self.model
        # What cannot be inferred is asked for by name, if it is wanted at all.
        with contextlib.suppress(Exception):
            model = onnx.shape_inference.infer_shapes(model)
        graph = model.graph
        return {
            one.name: one.type.tensor_type
            for one in (*graph.value_info, *graph.output, *graph.input)
            if one.type.HasField("tensor_type")
        }

    def format(self, name: str) -> str:
        """The format of a value, "" where it is not said or is none."""
        if name in self.stored:
            return CODES.get(self.stored[name].data_type, "")
        found = self._types.get(name)
        return "" if found is None else CODES.get(found.elem_type, "")

    def code(self, format: str) -> int:
        """ONNX's number of a format."""
        return next(code for code, name in CODES.items() if name == format)

    def shape(self, name: str) -> list[int] | None:
        """The sizes of a value, 0 for one that is open; None where nothing is said."""
        if name in self.stored:
            return [int(size) for size in self.stored[name].dims]
        found = self._types.get(name)
        if found is None or not found.HasField("shape"):
            return None
        return [int(size.dim_value) for size in found.shape.dim]

    @cached_property
    def constants(self) -> dict[str, Any]:
        """Stored tensors and the values of nodes that are constants."""
        found = dict(self.stored)
        for node in self.model.graph.node:
            for attribute in node.attribute if node.op_type == "Constant" else ():
                if attribute.name == "value":
                    found[node.output[0]] = attribute.t
        return found

    def number(self, name: str) -> float | None:
        """The one number of a constant that has one; None for anything else."""
        import onnx

        tensor = self.constants.get(name)
        if tensor is None or int(np.prod(tensor.dims)) != 1:
            return None
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            raise InputError(f"{self.path} keeps the number {name!r} outside the file")
        try:
            return float(onnx.numpy_helper.to_array(tensor).astype(np.float64).reshape(()))
        except Exception as error:
            raise InputError(f"{self.path} holds {name!r}, which is no number") from error


def elementwise_norm(graph: Graph) -> dict[str, Any]:
    """A graph that is a norm as a whole: what `OneNorm` is made of.

    Raises
    ------
    InputError
        It is none, or more than one.
    """
    path, nodes = graph.path, list(graph.model.graph.node)
    kinds = [node.op_type for node in nodes]
    roots = sum(kind in ("Sqrt", "ReduceL2") for kind in kinds) + sum(
        node.op_type == "Pow" and abs(graph.number(node.input[1]) or 0.0) == 0.5 for node in nodes
    )
    strange = sorted({kind for kind in kinds if kind not in SIMPLE})
    if roots > 1:
        raise InputError(f"{path} holds several norms, or at least {roots} roots: give it one norm")
    if strange or not roots or not REDUCE & set(kinds):
        why = f" with {strange[0]}" if strange else ""
        raise InputError(
            f"{path} holds no norm: it has no node such as LayerNormalization or RMSNormalization,"
            f" and its graph of {len(nodes)} nodes{why} is none as a whole"
        )
    x, weight, bias = _inputs(graph)
    format = graph.format(x)
    if not format:
        raise InputError(f"{path} does not say of which type its input {x!r} is")
    shape = graph.shape(x)
    if not shape or len(shape) < 2:
        raise InputError(f"{path} has an input {x!r} that has no rows")
    parameter = graph.shape(weight or bias) if weight or bias else None
    hidden = shape[-1] or (parameter[-1] if parameter else 0)
    return {
        "model": _with_parameters_as_inputs(graph, x, [name for name in (weight, bias) if name]),
        "operator": "graph",
        "norm": "layer" if "Sub" in kinds else "rms",
        "x": x,
        "weight": weight,
        "bias": bias,
        "format": format,
        "weight_format": (graph.format(weight or bias) if weight or bias else "") or format,
        "rank": len(shape),
        "hidden": hidden or None,
        "eps": _eps(graph, {weight, bias}),
    }


def _inputs(graph: Graph) -> tuple[str, str, str]:
    """The names of x, weight and bias."""
    free = [one.name for one in graph.model.graph.input if one.name not in graph.stored]
    wide = [name for name in free if len(graph.shape(name) or []) > 1]
    if len(wide) != 1:
        names = ", ".join(map(repr, free)) or "none"
        raise InputError(f"{graph.path} has the inputs {names}: a norm has one that has rows")
    narrow = [name for name in free if name != wide[0]]
    narrow += [name for name, tensor in graph.stored.items() if int(np.prod(tensor.dims)) > 1]
    found = {"weight": "", "bias": ""}
    for name in narrow:
        role = "bias" if _use(graph, name) == "Add" else "weight"
        if found[role]:
            raise InputError(f"{graph.path} has two of {role}: {found[role]!r} and {name!r}")
        found[role] = name
    return wide[0], found["weight"], found["bias"]


def _use(graph: Graph, name: str) -> str:
    """The operator that a parameter meets x in: casts and an added number change nothing."""
    for node in graph.model.graph.node:
        if name not in node.input:
            continue
        others = [one for one in node.input if one != name]
        if node.op_type in ("Cast", "Identity") or (
            node.op_type == "Add" and all(graph.number(one) is not None for one in others)
        ):
            return _use(graph, node.output[0])
        return str(node.op_type)
    return ""


def _eps(graph: Graph, parameters: set[str]) -> float | None:
    """The one number that is added to anything but a parameter."""
    found = []
    for node in graph.model.graph.node:
        if node.op_type == "Add" and not parameters & set(node.input):
            found += [one for name in node.input if (one := graph.number(name)) is not None]
    return found[0] if len(found) == 1 and found[0] >= 0 else None


def _with_parameters_as_inputs(graph: Graph, x: str, parameters: list[str]) -> bytes:
    """The model with its parameters as inputs, and any number of rows."""
    import onnx

    model = onnx.ModelProto()
    model.CopyFrom(graph.model)
    copy_graph = model.graph
    kept = [one for one in copy_graph.initializer if one.name not in parameters]
    stored = {one.name: one for one in copy_graph.initializer if one.name in parameters}
    inputs = [one for one in copy_graph.input if one.name == x or one.name in parameters]
    named = {one.name for one in inputs}
    for name, tensor in stored.items():
        if name not in named:
            inputs.append(
                onnx.helper.make_tensor_value_info(name, tensor.data_type, list(tensor.dims))
            )
    outputs = list(copy_graph.output)[:1]
    for one in (*(one for one in inputs if one.name == x), *outputs):
        for place, size in enumerate(list(one.type.tensor_type.shape.dim)[:-1]):
            size.dim_param = f"rows{place}"
    for field, values in (("initializer", kept), ("input", inputs), ("output", outputs)):
        copies = []
        for value in values:
            copy = type(value)()
            copy.CopyFrom(value)
            copies.append(copy)
        del getattr(copy_graph, field)[:]
        getattr(copy_graph, field).extend(copies)
    del copy_graph.value_info[:]
    return bytes(model.SerializeToString())
