# SPDX-License-Identifier: Apache-2.0
"""Norms of an ONNX graph that are written out: a root of a mean of squares and what is added.

The number under the root is read as the graph has it: one that is stored in half precision, or cast
to it, may be another than its author's, or 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.models.onnx_graph import SAME, Scope, attributes

if TYPE_CHECKING:
    from collections.abc import Iterator

STEPS = 8
"""Nodes between the root and the gain."""


@dataclass(frozen=True, kw_only=True)
class WrittenNorm:
    """A norm that is written out.

    Parameters
    ----------
    name
        That of its root's node, or of the root.
    norm
        ``rms`` or ``layer``.
    eps, eps_format
        The number that is added to the mean square, 0 where there is none; the format that it is
        added in.
    x
        The name of what is squared.
    weight, bias
        Names of constants, "" where there is none.
    offset
        What is added to the weight.
    cast
        Whether the value is cast before the weight.
    trouble
        Why no eps is judged, "" where it is.
    """

    name: str
    norm: str
    eps: float
    eps_format: str
    x: str
    weight: str = ""
    bias: str = ""
    offset: float = 0.0
    cast: bool = False
    trouble: str = ""


def written_norms(scope: Scope) -> Iterator[WrittenNorm]:
    """The norms of a graph that are written out."""
    for node in scope.graph.node:
        if not _is_root(scope, node):
            continue
        found = _of_root(scope, node)
        if found is not None:
            yield found


def _is_root(scope: Scope, node: Any) -> bool:
    if node.op_type == "Sqrt":
        return bool(node.input)
    return (
        node.op_type == "Pow" and len(node.input) == 2
        and abs(scope.number(node.input[1]) or 0.0) == 0.5
    )  # fmt: skip


def _of_root(scope: Scope, root: Any) -> WrittenNorm | None:
    """The norm of a root; None where what is under it is no mean of squares."""
    name, eps, eps_format = root.input[0], 0.0, ""
    below = scope.producer(name)
    if below is not None and below.op_type == "Add":
        pair = _constant_and_other(scope, below)
        if pair is None:
            return None
        eps, added, name = pair
        eps_format = scope.format(added) or _cast_format(scope, added)
    squared = _mean_square(scope, name)
    if squared is None:
        return None
    x, reduce = squared
    centre = scope.producer(x)
    mean = scope.producer(centre.input[1]) if _is(centre, "Sub", 2) else None
    is_layer = _is(mean, "ReduceMean", 1)
    trouble = ""
    shape = scope.shape(reduce.input[0]) or scope.shape(x)
    if _axes(scope, reduce) not in ([-1], [len(shape) - 1] if shape else [-1]):
        trouble = "it is over other axes than the last one"
    if not 0 <= eps <= 1:
        trouble = f"{eps:g} is added under its root"
    if any(_constant_and_other(scope, user) for user in _users(scope, root.output[0], "Add")):
        trouble = "eps is added outside its root"
    weight, bias, offset, cast = _parameters(scope, root)
    source = centre.input[0] if is_layer else x
    stem = (weight or bias).removesuffix(".weight").removesuffix(".bias")
    return WrittenNorm(
        name=stem if stem and "::" not in stem else root.name or root.output[0],
        norm="layer" if is_layer else "rms", eps=eps, eps_format=eps_format or scope.format(name),
        x=scope.source(source), weight=weight, bias=bias, offset=offset, cast=cast, trouble=trouble,
    )  # fmt: skip


def _is(node: Any, kind: str, inputs: int) -> bool:
    return node is not None and node.op_type == kind and len(node.input) >= inputs


def _constant_and_other(scope: Scope, node: Any) -> tuple[float, str, str] | None:
    """Of a node with a constant of one number and another input: the number and both names."""
    if len(node.input) != 2:
        return None
    for constant, other in (tuple(node.input), tuple(node.input)[::-1]):
        number = scope.number(constant)
        if number is not None and scope.constant(other) is None:
            return number, constant, other
    return None


def _cast_format(scope: Scope, name: str) -> str:
    """The format of a constant that is cast."""
    values = scope.constant(name)
    return "" if values is None else str(values.dtype)


def _mean_square(scope: Scope, name: str) -> tuple[str, Any] | None:
    """The value whose squares are averaged, and the node that adds them."""
    node = scope.producer(name)
    if node is not None and node.op_type in ("Div", "Mul"):
        # A sum that is divided by the number of its elements.
        pair = _constant_and_other(scope, node)
        node = scope.producer(pair[2]) if pair else None
        kinds: tuple[str, ...] = ("ReduceSum", "ReduceSumSquare")
    else:
        kinds = ("ReduceMean",)
    if node is None or node.op_type not in kinds or not node.input:
        return None
    if node.op_type == "ReduceSumSquare":
        return node.input[0], node
    square = scope.producer(node.input[0])
    if _is(square, "Mul", 2) and scope.source(square.input[0]) == scope.source(square.input[1]):
        return square.input[0], node
    if _is(square, "Pow", 2) and scope.number(square.input[1]) == 2:
        return square.input[0], node
    return None


def _axes(scope: Scope, reduce: Any) -> list[int] | None:
    """The axes that are reduced; None where they are not constant."""
    stated = attributes(reduce).get("axes")
    if stated is not None:
        return [int(axis) for axis in stated]
    if len(reduce.input) < 2:
        return None
    values = scope.constant(reduce.input[1])
    return None if values is None else [int(axis) for axis in np.ravel(values)]


def _users(scope: Scope, name: str, *kinds: str) -> list[Any]:
    """The nodes of these kinds that a value enters, as it is or cast."""
    found, waiting = [], [name]
    for _ in range(STEPS):
        nodes = [user for each in waiting for user in scope.users.get(each, ())]
        found += [user for user in nodes if user.op_type in kinds]
        waiting = [user.output[0] for user in nodes if user.op_type in SAME and user.output]
    return found


def _parameters(scope: Scope, root: Any) -> tuple[str, str, float, bool]:
    """The constants that the value is multiplied with and that are added, going on from the root.

    With the offset of the weight, and whether the value is cast in between.
    """
    name, weight, bias, offset, cast = root.output[0], "", "", 0.0, False
    for _ in range(STEPS):
        users = scope.users.get(name, [])
        user = next((one for one in users if one.op_type in (
            "Mul", "Div", "Reciprocal", "Add", "Cast", "Identity")), None)  # fmt: skip
        if user is None or not user.output:
            break
        others = [other for other in user.input if scope.source(other) != scope.source(name)]
        found = _vector(scope, others[0]) if len(others) == 1 else None
        if user.op_type in ("Mul", "Div") and found and not weight:
            weight, offset = found
        elif user.op_type == "Add":
            if found and weight and not bias:
                bias = found[0]
            break
        elif user.op_type == "Cast" and not weight:
            cast = scope.format(user.output[0]) in ("float16", "bfloat16")
        elif weight and user.op_type in ("Mul", "Div"):
            break
        name = user.output[0]
    return weight, bias, offset, cast


def _vector(scope: Scope, name: str) -> tuple[str, float] | None:
    """A constant of several numbers, and the one number that is added to it."""
    source = scope.source(name)
    tensor = scope.constants.get(source)
    if tensor is not None:
        return (source, 0.0) if any(size > 1 for size in tensor.dims) else None
    node = scope.producers.get(source)
    if node is None or node.op_type != "Add" or len(node.input) != 2:
        return None
    for one, other in (tuple(node.input), tuple(node.input)[::-1]):
        number, vector = scope.number(one), scope.source(other)
        tensor = scope.constants.get(vector)
        if number is not None and tensor is not None and any(size > 1 for size in tensor.dims):
            return vector, number
    return None
