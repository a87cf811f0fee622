# SPDX-License-Identifier: Apache-2.0
"""The model type of a class's name: what ``architectures`` says where ``model_type`` is missing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from precision_lab.models.types import model_types

if TYPE_CHECKING:
    from collections.abc import Mapping

HEAD = re.compile(
    r"(For[A-Z]\w*|(Double)?(LM)?Heads?(Custom|With\w*)?Model|Model(ForCausalLM)?|WithLMHead\w*"
    r"|Transformer|Encoder|EncoderModel)$"
)
"""What ends the names of classes of models, after the model's own."""
OTHERS = {
    "rw": "falcon", "gptbigcode": "gpt_bigcode", "gpt": "gpt2", "clip": "clip", "glm": "glm",
    "bertgeneration": "bert-generation", "xlmproberta": "xlm-roberta",
}  # fmt: skip
"""Names that are written otherwise than their type."""


def type_of_class(name: str) -> str:
    """The model type of a class, "" where none has its name.

    Examples
    --------
    >>> type_of_class("LlamaForCausalLM"), type_of_class("GPT2LMHeadModel"), type_of_class("Ours")
    ('llama', 'gpt2', '')
    """
    stem = _letters(HEAD.sub("", name))
    if stem in OTHERS and OTHERS[stem] in model_types:
        return OTHERS[stem]
    # Where a model holds others, the class without them is that of its text model.
    stems = [_letters(name), _letters(name.removesuffix("Model")), stem]
    if name.endswith("ForCausalLM"):
        stems.insert(0, f"{stem}text")
    types = {_letters(type): type for type in reversed([*model_types])}
    return next((types[each] for each in stems if each in types), "")


def type_of_config(found: Mapping[str, Any]) -> str:
    """The model type that a config's ``architectures`` name, "" where they name none."""
    classes = found.get("architectures")
    names = classes if isinstance(classes, list) else [classes]
    types = (type_of_class(name) for name in names[:4] if isinstance(name, str))
    return next(filter(None, types), "")


def _letters(name: str) -> str:
    return re.sub(r"[_-]", "", name).lower()
