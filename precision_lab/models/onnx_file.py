# SPDX-License-Identifier: Apache-2.0
"""The norms of an ONNX model, and their gains: as operators, or written out in simple ones.

What each operator adds where it states no epsilon is in its schema: those of ONNX add 1e-5, the
Skip and Embed forms of onnxruntime 1e-12. A model with branches has its norms in several graphs;
those that share a weight are one.

Source: the operators' schemas in onnx 1.23.2 and onnxruntime 1.32.0.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from precision_lab.exceptions import InputError
from precision_lab.files import prefix_path
from precision_lab.inputs import short_decimal
from precision_lab.models.config_values import WIDEST, read_eps
from precision_lab.models.norm_list import ListedNorm, group_norms
from precision_lab.models.onnx_graph import Scope, attributes, scopes
from precision_lab.models.onnx_written_out import WrittenNorm, written_norms
from precision_lab.models.parts import Unjudged

if TYPE_CHECKING:
    from pathlib import Path

    from precision_lab.models.configs import ModelConfig
    from precision_lab.models.gains import Gains

PART = "model"
"""A graph does not say which part of the model a norm is in."""


@dataclass(frozen=True)
class Operator:
    """An operator that is a norm: its eps where it states none, and places of its inputs."""

    norm: str
    eps: float = 1e-5
    weight: int = 1
    bias: int | None = None
    place: str = "stream"


OPERATORS = {
    "LayerNormalization": Operator("layer", bias=2),
    "SimplifiedLayerNormalization": Operator("rms"),
    "RMSNormalization": Operator("rms"),
    "SkipLayerNormalization": Operator("layer", 1e-12, weight=2, bias=3),
    "SkipSimplifiedLayerNormalization": Operator("rms", 1e-12, weight=2),
    "EmbedLayerNormalization": Operator("layer", 1e-12, weight=5, bias=6, place="embedding"),
    "GatedRMSNorm": Operator("rms", place="gated"),
}
UNJUDGED = {
    "BatchNormalization": 1e-5, "InstanceNormalization": 1e-5, "GroupNormalization": 1e-5,
    "GroupNorm": 1e-5, "SkipGroupNorm": 1e-5, "QEmbedLayerNormalization": 1e-12,
    "QOrderedLayerNormalization": 1e-5, "BranchwiseRMSNorm": 1e-5, "RMSNormRotary": 1e-6,
    "MeanVarianceNormalization": None, "LpNormalization": None,
}  # fmt: skip
"""Operators that are norms of other kinds, and their eps where they state none."""
DOMAINS = ("", "ai.onnx", "com.microsoft")
PLANS = {"rms": "ort-rms-norm", "layer": "ort-layer-norm"}


def read_onnx_config(path: Path) -> ModelConfig:
    """What an ONNX model says of its norms, and their gains.

    Raises
    ------
    InputError
        If it can't be read, is no model or holds no norm, or if the package onnx is missing.
    """
    with prefix_path(path):
        collection = _Collection()
        for scope in scopes(path):
            collection.read(scope)
        if not collection.listed and not collection.unjudged:
            raise InputError(
                "it holds no norm: neither an operator such as LayerNormalization, nor a root of a "
                "mean of squares"
            )
        notes = []
        if collection.lacking:
            notes = [f"{collection.lacking} gains are not in the file itself, and are not read."]
        used = Counter(filter(None, collection.formats)).most_common(1)
        return group_norms(
            path, list(collection.listed.values()), unjudged=collection.unjudged, notes=notes,
            model=path.stem, model_type="", dtype=used[0][0] if used else "",
            gains=collection.gains,
        )  # fmt: skip


class _Collection:
    """The norms of a model's graphs, each once."""

    def __init__(self) -> None:
        self.listed: dict[str, ListedNorm] = {}
        self.unjudged: list[Unjudged] = []
        self.gains: Gains = {}
        self.formats: list[str] = []
        self.lacking = 0
        self.scopes: dict[str, Scope] = {}

    def read(self, scope: Scope) -> None:
        """Take up the norms of a graph."""
        for node in scope.graph.node:
            if node.domain not in DOMAINS:
                continue
            if node.op_type in OPERATORS:
                self._operator(scope, node, OPERATORS[node.op_type])
            elif node.op_type in UNJUDGED:
                eps = attributes(node).get("epsilon", UNJUDGED[node.op_type])
                why = "no eps of this kind is judged"
                if eps is not None:
                    why = f"its eps is {short_decimal(eps):g}: no eps of this kind is judged"
                self.unjudged.append(Unjudged(part=PART, kind=node.op_type, why=why))
        for norm in written_norms(scope):
            self._written(scope, norm)

    def _operator(self, scope: Scope, node: Any, operator: Operator) -> None:
        def input(place: int | None) -> str:
            return node.input[place] if place is not None and place < len(node.input) else ""

        said = attributes(node)
        eps = read_eps("epsilon", short_decimal(said.get("epsilon", operator.eps)))
        weight, bias = input(operator.weight), input(operator.bias)
        shape, axis = scope.shape(input(0)), said.get("axis", -1)
        width = _width(scope, weight, input(0))
        if axis != -1 and (shape is None or axis != len(shape) - 1):
            self._refuse(node.op_type, f"it is over the axes from {axis} on, not over the last one")
            return
        self._add(
            scope, width, weight=weight, bias=bias, kind=node.op_type,
            format=scope.format(input(0)) or scope.format(weight),
            norm=ListedNorm(
                name=_stem(weight) or node.name or node.output[0], part=PART, norm=operator.norm,
                eps=eps, eps_from=f"epsilon of {node.op_type}", hidden_size=width,
                plan=PLANS[operator.norm], place=operator.place,
            ),
        )  # fmt: skip

    def _written(self, scope: Scope, found: WrittenNorm) -> None:
        if found.trouble:
            self._refuse("norm written out", found.trouble)
            return
        width = _width(scope, found.weight, found.x)
        eps = found.eps
        if found.eps_format == "float32":
            eps = short_decimal(eps)
        half = found.eps_format in ("float16", "bfloat16")
        origin = f"constant under the root, in {found.eps_format or 'an unknown type'}"
        if not eps:
            origin = f"0 under the root, in {found.eps_format or 'an unknown type'}"
        format = scope.format(found.x) or scope.format(found.weight) or found.eps_format
        self._add(
            scope, width, weight=found.weight, bias=found.bias, kind="norm written out",
            format=format,
            norm=ListedNorm(
                name=found.name, part=PART, norm=found.norm, eps=eps, eps_from=origin,
                hidden_size=width, weight_offset=found.offset,
                plan="all-low" if half else "early" if found.cast else "late",
            ),
        )  # fmt: skip

    def _add(
        self, scope: Scope, width: int, *, weight: str, bias: str, kind: str, format: str,
        norm: ListedNorm,
    ) -> None:  # fmt: skip
        if weight and self.scopes.setdefault(weight, scope) is not scope:
            return  # the same norm in another branch
        if not width:
            self._refuse(kind, "the file does not say how wide its rows are")
            return
        name, number = norm.name, 1
        while name in self.listed:
            number += 1
            name = f"{norm.name}.{number}"
        self.listed[name] = replace(norm, name=name)
        self.formats.append(format)
        values = scope.constant(weight) if weight else None
        if values is None or values.size != width:
            self.lacking += bool(weight)
            return
        addend = scope.constant(bias) if bias else None
        if addend is not None and addend.size != width:
            addend = None
        self.gains[name] = (
            values.reshape(width),
            None if addend is None else addend.reshape(width),
        )

    def _refuse(self, kind: str, why: str) -> None:
        self.unjudged.append(Unjudged(part=PART, kind=kind, why=why))


def _width(scope: Scope, weight: str, x: str) -> int:
    """Elements of a row: as many as there are weights, or as the value's type says; 0 if unsaid."""
    shape = scope.shape(weight) if weight else None
    if shape and shape[-1] <= 1:
        shape = None
    shape = shape or scope.shape(x)
    return shape[-1] if shape and 0 < shape[-1] <= WIDEST else 0


def _stem(weight: str) -> str:
    """The norm's name, by that of its weight; "" for one that an exporter made up."""
    stem = weight.removesuffix(".weight").removesuffix(".gamma").removesuffix(".scale")
    return "" if "::" in stem else stem
