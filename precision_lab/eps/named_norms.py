# SPDX-License-Identifier: Apache-2.0
"""Models whose norms have names: a capture's layers, and the norms of a torch module."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

from precision_lab.eps.model_lookup import ModelNorms, known_facts
from precision_lab.eps.model_parts import PLACE_NUMBER
from precision_lab.exceptions import InputError
from precision_lab.models import NormPart, Unjudged, known_models, model_types
from precision_lab.numbers import format_of

if TYPE_CHECKING:
    from precision_lab.inputs import Capture, Layer

CLASS = re.compile(r"(RMSNorm|LayerNorm)\w*$")
"""What ends the names of classes of norms, after the model's."""


def from_capture(capture: Capture) -> ModelNorms:
    """A capture: its norms of each plan are a group, the largest first."""
    known = known_models.get(capture.model)
    facts = known_facts(known if known is not None and known.norm == capture.norm else None)
    groups: dict[str, list[Layer]] = {}
    for layer in capture.layers:
        plan = layer.plan or plan_of_class(layer.class_name, capture.norm)
        groups.setdefault(plan or facts.get("plan", ""), []).append(layer)
    main, *others = (
        ModelNorms(
            name=capture.model, norm=capture.norm, eps=capture.eps, eps_key="eps",
            hidden_size=layers[0].x.shape[1], format=format_of(layers[0].x).name,
            offset=capture.weight_offset, label=f"norms in plan {plan}" if plan else "other norms",
            layers={layer.name: (layer.x, layer.weight, layer.bias) for layer in layers},
            **(facts | {"plan": plan}),
        )
        for plan, layers in sorted(groups.items(), key=lambda pair: -len(pair[1]))
    )  # fmt: skip
    return dataclasses.replace(main, others=tuple(others))


def from_module(module: Any) -> ModelNorms:
    """A torch module, which is not run: its norms, their eps and parameters."""
    from precision_lab.kernels.torch import norms_of

    every = [one for _, one in norms_of(module)]
    if not every:
        raise InputError(f"{type(module).__name__} holds no norm that is known")
    groups: dict[tuple[str, float, float, str], list[Any]] = {}
    for one in every:
        plan = one.plan or plan_of_class(one.class_name, one.norm)
        groups.setdefault((one.norm, one.eps, one.weight_offset, plan), []).append(one)
    known = known_models.get(type(module).__name__)
    found, unjudged = [], _unread(module)
    for (norm, eps, _, plan), ones in groups.items():
        sized = [one for one in ones if one.hidden]
        unjudged += [
            Unjudged(part=one.name, kind=norm, why="nothing tells its width: capture it instead")
            for one in ones
            if not one.hidden
        ]
        if sized:
            formats = [format_of(one.weight).name for one in sized if one.weight is not None]
            found.append(ModelNorms(
                name=type(module).__name__, norm=norm, eps=eps, plan=plan,
                hidden_size=sized[0].hidden, format=formats[0] if formats else "",
                offset=sized[0].weight_offset, parts=_module_parts(sized, plan),
                layers={one.name: (one.hidden, one.weight, one.bias) for one in sized},
                label=f"{norm} norms with eps {eps:g}",
            ))  # fmt: skip
    if not found:
        raise InputError(f"no norm of {type(module).__name__} tells its width: capture it instead")
    main, *others = sorted(found, key=lambda each: -len(each.layers))
    if known is not None and known.norm == main.norm:
        main = dataclasses.replace(main, **{"plan": main.plan, **known_facts(known)})
    return dataclasses.replace(main, others=tuple(others), unjudged=tuple(unjudged))


def _unread(module: Any) -> list[Unjudged]:
    """The norms of a module that are not judged, those of many layers once."""
    from precision_lab.kernels.torch import unread_norms

    found = {(PLACE_NUMBER.sub("*", one.name), one.why) for one in unread_norms(module)}
    return [Unjudged(part=name, kind="norm", why=why) for name, why in sorted(found)]


def _module_parts(norms: list[Any], plan: str) -> tuple[NormPart, ...]:
    """The parts of a module's norms that share all but their width."""
    counts: dict[int, int] = {}
    for one in norms:
        counts[one.hidden] = counts.get(one.hidden, 0) + 1
    first = norms[0]
    return tuple(
        NormPart(
            part="model", norm=first.norm, eps=first.eps, hidden_size=hidden, count=count,
            weight_offset=first.weight_offset, plan=plan,
        )
        for hidden, count in counts.items()
    )  # fmt: skip


def plan_of_class(class_name: str, norm: str) -> str:
    """The plan that a class of norms follows, as its name tells; "" where it tells none."""
    name = class_name.rpartition(".")[2]
    stem = _letters(CLASS.sub("", name))
    types = (row for row in model_types.values() if row.norm == norm and stem != _letters(name))
    return next((row.plan for row in types if _letters(row.name) == stem), "")


def _letters(name: str) -> str:
    """What a class and its model's type share: ``Gemma3RMSNorm`` is of ``gemma3_text``."""
    return re.sub(r"[_-]", "", name).lower().removesuffix("text")
