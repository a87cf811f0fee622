# SPDX-License-Identifier: Apache-2.0
"""An ONNX file's graphs, read for their constants: nothing is run, and no other file is read.

The body of each branch and loop is a graph of its own, which sees the names of the one around it.
"""

from __future__ import annotations

import contextlib
from collections import ChainMap
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.exceptions import InputError
from precision_lab.files import read_bytes
from precision_lab.numbers import formats

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

LIMIT = 2**31 - 1
"""Bytes of the largest file: a message of protobuf can be no larger."""
DEPTH = 16
"""Graphs within one another, and nodes that are followed through casts."""
GAIN_LIMIT = 2**20
"""Elements of the largest constant that is read."""
FORMATS = {
    1: "float32", 10: "float16", 11: "float64", 16: "bfloat16", 17: "float8_e4m3fn",
    19: "float8_e5m2",
}  # fmt: skip
"""ONNX's numbers of the element types that a norm may have."""
SAME = ("Cast", "CastLike", "Identity", "Reshape", "Unsqueeze", "Squeeze", "Expand")
"""Operators that leave values as they are but for a rounding."""


class Scope:
    """One graph of a model, with the names that it sees."""

    def __init__(self, graph: Any, types: dict[str, Any], outer: Scope | None = None) -> None:
        self.graph, self.types = graph, types
        self.constants: ChainMap[str, Any] = ChainMap({}, *(outer.constants.maps if outer else ()))
        self.producers: ChainMap[str, Any] = ChainMap({}, *(outer.producers.maps if outer else ()))
        self.constants.update({one.name: one for one in graph.initializer})
        for node in graph.node:
            self.producers.update(dict.fromkeys(filter(None, node.output), node))
            for attribute in node.attribute if node.op_type == "Constant" else ():
                if attribute.name == "value":
                    self.constants[node.output[0]] = attribute.t
                if attribute.name == "value_float":
                    self.constants[node.output[0]] = _float_tensor(attribute.f)

    @cached_property
    def users(self) -> dict[str, list[Any]]:
        """The nodes of this graph that each value enters."""
        found: dict[str, list[Any]] = {}
        for node in self.graph.node:
            for name in dict.fromkeys(filter(None, node.input)):
                found.setdefault(name, []).append(node)
        return found

    def producer(self, name: str, *, through: tuple[str, ...] = SAME) -> Any:
        """The node that a value comes from, past those that only cast it; None for an input."""
        for _ in range(DEPTH):
            node = self.producers.get(name)
            if node is None or node.op_type not in through or not node.input:
                return node
            name = node.input[0]
        return None

    def source(self, name: str) -> str:
        """The name of a value before it was cast."""
        for _ in range(DEPTH):
            node = self.producers.get(name)
            if node is None or node.op_type not in SAME or not node.input:
                return name
            name = node.input[0]
        return name

    def constant(self, name: str) -> NDArray[Any] | None:
        """The values of a constant, in the type that it is cast to; None for what is none."""
        casts: list[str] = []
        for _ in range(DEPTH):
            tensor = self.constants.get(name)
            if tensor is not None:
                values = _values(tensor)
                for format in reversed(casts):
                    if values is not None:
                        values = values.astype(formats[format].dtype)
                return values
            node = self.producers.get(name)
            if node is None or node.op_type not in SAME or not node.input:
                return None
            if node.op_type == "Cast":
                format = FORMATS.get(attributes(node).get("to", 0), "")
                if not format:
                    return None
                casts.append(format)
            name = node.input[0]
        return None

    def number(self, name: str) -> float | None:
        """The one number of a constant; None for anything else."""
        values = self.constant(name)
        return float(values.reshape(())) if values is not None and values.size == 1 else None

    def format(self, name: str) -> str:
        """The format of a value; "" where it is not said or is none."""
        if name in self.constants:
            return FORMATS.get(self.constants[name].data_type, "")
        found = self.types.get(name)
        return FORMATS.get(found.elem_type, "") if found is not None else ""

    def shape(self, name: str) -> list[int] | None:
        """The sizes of a value, 0 for one that is open; None where nothing is said."""
        if name in self.constants:
            return [int(size) for size in self.constants[name].dims]
        found = self.types.get(name)
        if found is None or not found.HasField("shape"):
            return None
        return [int(size.dim_value) for size in found.shape.dim]


def scopes(path: Path) -> Iterator[Scope]:
    """The graphs of a model, the main one first.

    Raises
    ------
    InputError
        If the file can't be read, is no model, or onnx is not installed.
    """
    model = _read(path)
    types = _types(model)
    waiting: list[tuple[Any, Scope | None, int]] = [(model.graph, None, 0)]
    while waiting:
        graph, outer, depth = waiting.pop(0)
        if depth > DEPTH:
            raise InputError(f"its graphs are nested more than {DEPTH} deep")
        scope = Scope(graph, types, outer)
        yield scope
        for node in graph.node:
            for attribute in node.attribute:
                inner = [attribute.g] if attribute.HasField("g") else list(attribute.graphs)
                waiting += [(each, scope, depth + 1) for each in inner]


def attributes(node: Any) -> dict[str, Any]:
    """A node's attributes that are numbers or lists of numbers."""
    read = {1: "f", 2: "i", 6: "floats", 7: "ints"}
    return {one.name: getattr(one, read[one.type]) for one in node.attribute if one.type in read}


def _read(path: Path) -> Any:
    content = read_bytes(path, limit=LIMIT)
    try:
        import onnx
    except ImportError as error:
        raise InputError(
            f"an ONNX model needs the package onnx, which cannot be imported ({error}): "
            "pip install 'precision-lab[onnx]'"
        ) from error
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except Exception:  # noqa: BLE001 - protobuf's errors have several unrelated types
        raise InputError("no ONNX model, or one that is cut short") from None
    if not model.graph.node:
        raise InputError("no ONNX model, or an empty one: it has no node")
    if model.functions:
        from onnx import inliner

        try:
            model = inliner.inline_local_functions(model)
        except Exception:  # noqa: BLE001 - the checker's errors have several unrelated types
            raise InputError("its functions do not fit their calls") from None
    return model


def _types(model: Any) -> dict[str, Any]:
    """The tensor type of each value that has one, inferred as far as that can be done."""
    import onnx

    with contextlib.suppress(Exception):
        model = onnx.shape_inference.infer_shapes(model)
    found: dict[str, Any] = {}
    waiting = [model.graph]
    while waiting:
        graph = waiting.pop()
        for one in (*graph.value_info, *graph.output, *graph.input):
            if one.type.HasField("tensor_type"):
                found[one.name] = one.type.tensor_type
        waiting += [each.g for node in graph.node for each in node.attribute if each.HasField("g")]
    return found


def _values(tensor: Any) -> NDArray[Any] | None:
    """The values of a stored tensor; None where they lie elsewhere, are too many or no numbers."""
    import onnx

    count = int(np.prod([int(size) for size in tensor.dims], dtype=object))
    if tensor.data_location == onnx.TensorProto.EXTERNAL or not 0 < count <= GAIN_LIMIT:
        return None
    try:
        return np.asarray(onnx.numpy_helper.to_array(tensor))
    except Exception:  # noqa: BLE001 - whatever is wrong with it, it holds no numbers
        return None


def _float_tensor(value: float) -> Any:
    import onnx

    return onnx.helper.make_tensor("", onnx.TensorProto.FLOAT, [], [value])
