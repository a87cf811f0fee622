# SPDX-License-Identifier: Apache-2.0
"""Finding the one norm of an ONNX model, and making a model of it alone.

Where the graph has one node that is a norm, that node is taken. Else the whole graph has to be one,
written out in elementwise operators and means, with one root. Weights and biases become inputs, so
that any can be asked for; their numbers are never read.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from precision_lab.exceptions import InputError
from precision_lab.kernels.onnx.graphs import Graph, elementwise_norm
from precision_lab.processes import describe_error

if TYPE_CHECKING:
    from pathlib import Path

LIMIT = 2**31
"""Bytes of the largest file: a message of protobuf can be no larger."""

INPUTS = {
    "LayerNormalization": ("layer", ("x", "weight", "bias")),
    "SimplifiedLayerNormalization": ("rms", ("x", "weight", "bias")),
    "RMSNormalization": ("rms", ("x", "weight")),
    "SkipLayerNormalization": ("layer", ("x", "skip", "weight", "bias")),
    "SkipSimplifiedLayerNormalization": ("rms", ("x", "skip", "weight")),
}
"""Operators that are norms: which, and their inputs in order."""

STANDARD, MICROSOFT = ("", "ai.onnx"), "com.microsoft"
EPSILON = {"SkipLayerNormalization": 1e-12, "SkipSimplifiedLayerNormalization": 1e-12}
"""The eps of a node that states none, where it is not 1e-5."""


@dataclass(frozen=True, kw_only=True)
class OneNorm:
    """A model of one norm.

    Parameters
    ----------
    model
        Its bytes, nothing outside them.
    operator
        What it is, for messages.
    norm
        ``rms`` or ``layer``.
    x, weight, bias, skip
        Names of its inputs; "" for what it does not have.
    format, weight_format
        Of x, and of weight and bias.
    rank, hidden
        Dimensions of x, the last one hidden; the one size of it, None for any.
    eps
        What it adds, None where that is not seen.
    others
        Nodes of the file's graph beside it, which are not run.
    """

    model: bytes
    operator: str
    norm: str
    x: str
    weight: str = ""
    bias: str = ""
    skip: str = ""
    format: str
    weight_format: str
    rank: int = 2
    hidden: int | None = None
    eps: float | None = None
    others: int = 0


def extract_norm(path: Path) -> OneNorm:
    """Find the norm of a model.

    Raises
    ------
    InputError
        In one sentence: the file is not there, is no model, holds no norm or several, or one that
        is not over the last axis; or onnx is not installed.
    """
    model = _read(path)
    graph = Graph(model, path)
    nodes = [
        node
        for node in model.graph.node
        if node.op_type in INPUTS and node.domain in (*STANDARD, MICROSOFT)
    ]
    if len(nodes) > 1:
        names = ", ".join(repr(node.name or node.output[0]) for node in nodes[:4])
        more = ", …" if len(nodes) > 4 else ""
        raise InputError(
            f"{path} holds {len(nodes)} norms ({names}{more}): give a model that holds one"
        )
    return _of_node(graph, nodes[0], path) if nodes else OneNorm(**elementwise_norm(graph))


def _read(path: Path) -> Any:
    """The model, without what lies outside its file."""
    try:
        import onnx
    except ImportError as error:
        raise InputError(
            f"an ONNX model needs the package onnx, which cannot be imported ({error}): "
            "pip install 'precision-lab[onnx]'"
        ) from error
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{path} is no regular file")
        if status.st_size >= LIMIT:
            raise InputError(f"{path} holds {status.st_size} bytes, more than a model can have")
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except Exception as error:
        raise InputError(f"{path} is no ONNX model: {describe_error(error)}") from error
    if not model.graph.node:
        raise InputError(f"{path} holds no norm, for it is an empty model or none at all")
    return model


def _of_node(graph: Graph, node: Any, path: Path) -> OneNorm:
    """A model of one node with the inputs that it has, each an input of the graph."""
    import onnx

    norm, roles = INPUTS[node.op_type]
    names = dict(zip(roles, node.input, strict=False))
    attributes = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
    shape = graph.shape(names["x"])
    axis = attributes.get("axis", -1)
    if axis not in (-1, (len(shape) if shape else 0) - 1):
        raise InputError(
            f"{path} norms along the axes from {axis} on: only norms of the last axis are judged"
        )
    format = graph.format(names["x"]) or graph.format(names.get("weight", ""))
    if not format:
        raise InputError(f"{path} does not say of which type the input of its norm is")
    weight_format = graph.format(names.get("weight", "")) or format
    attributes.pop("axis", None)
    present = [role if names.get(role) else "" for role in roles]
    while not present[-1]:
        present.pop()
    new_node = onnx.helper.make_node(
        node.op_type, present, ["y"], domain=node.domain, **attributes,
        **({} if node.op_type.startswith("Skip") else {"axis": -1}),
    )  # fmt: skip
    sizes = {"weight": ["hidden"], "bias": ["hidden"]}
    inputs = [
        onnx.helper.make_tensor_value_info(
            role,
            graph.code(format if role in ("x", "skip") else weight_format),
            sizes.get(role, ["rows", "hidden"]),
        )
        for role in present
        if role
    ]
    output_code = graph.code(graph.format(node.output[0]) or format)
    output = onnx.helper.make_tensor_value_info("y", output_code, ["rows", "hidden"])
    new_model = onnx.helper.make_model(
        onnx.helper.make_graph([new_node], "norm", inputs, [output]),
        opset_imports=list(graph.model.opset_import),
        ir_version=graph.model.ir_version,
    )
    weight_shape = graph.shape(names.get("weight", ""))
    last = [sizes[-1] for sizes in (shape, weight_shape) if sizes and sizes[-1]]
    return OneNorm(
        model=new_model.SerializeToString(),
        operator=node.op_type,
        norm=norm,
        x="x",
        format=format,
        weight_format=weight_format,
        hidden=last[0] if last else None,
        others=len(graph.model.graph.node) - 1,
        eps=float(attributes.get("epsilon", _float32(EPSILON.get(node.op_type, 1e-5)))),
        weight="weight" if "weight" in present else "",
        bias="bias" if "bias" in present else "",
        skip="skip" if "skip" in present else "",
    )


def _float32(value: float) -> float:
    import numpy as np

    return float(np.float32(value))
