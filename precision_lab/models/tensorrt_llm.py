# SPDX-License-Identifier: Apache-2.0
"""``config.json`` of a checkpoint or engine of TensorRT-LLM: a known model under other keys.

Its converter adds to the weights what a model adds, so that none has an offset.

Source: TensorRT-LLM, models/modeling_utils.py (norm_epsilon is 1e-5 where it is missing).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from precision_lab.exceptions import InputError
from precision_lab.models.architectures import type_of_class
from precision_lab.models.dialect import Reading, with_plans
from precision_lab.models.parts import Unjudged
from precision_lab.models.types import model_types

if TYPE_CHECKING:
    from collections.abc import Mapping

EPS = 1e-5
PLANS = {"rms": "trt-llm-rms-norm"}


def read_tensorrt_llm(found: Mapping[str, Any]) -> Reading:
    """The norms of the Hugging Face type that the architecture is of.

    Raises
    ------
    InputError
        If the architecture is none that is known.
    """
    inner = found.get("pretrained_config")
    keys = inner if isinstance(inner, dict) else found
    name = keys.get("architecture")
    if not isinstance(name, str):
        raise InputError("it has a pretrained_config without an architecture")
    row = model_types.get(type_of_class(name))
    if row is None or row.main is None:
        raise InputError(
            f"its architecture {name[:60]!r} is none that is known here, such as LlamaForCausalLM: "
            "give the config.json of the model that it was converted from"
        )
    eps = row.main.eps_key
    spellings = {**row.spellings, "head_size": "head_dim"}
    if eps:
        spellings["norm_epsilon"] = eps
    unjudged: tuple[Unjudged, ...] = ()
    if keys.get("qk_layernorm"):
        why = "its eps is not in the config of TensorRT-LLM"
        unjudged = (Unjudged(part="text qk", kind="norm", why=why),)
    row = replace(
        row, spellings=spellings, defaults={**row.defaults, **({eps: EPS} if eps else {})},
        norms=tuple(replace(each, offset=0.0) for each in row.norms),
    )  # fmt: skip
    return Reading(row=with_plans(row, PLANS), keys=keys, unjudged=unjudged)
