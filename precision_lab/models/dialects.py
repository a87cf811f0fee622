# SPDX-License-Identifier: Apache-2.0
"""Configs that are JSON and not Hugging Face's: told by their keys, and read as a type's rows.

Each dialect gives the row of a model type whose keys are the config's own, so that one code finds
the norms of all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from precision_lab.models.diffusers_types import read_diffusers
from precision_lab.models.meta_params import read_meta
from precision_lab.models.tensorrt_llm import read_tensorrt_llm
from precision_lab.models.timm_types import read_timm

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from precision_lab.models.dialect import Reading


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """One kind of config: what it is, keys that it always has, others of which it has one.

    `not_keys` are keys that only another kind has.
    """

    name: str
    keys: tuple[str, ...]
    any_of: tuple[str, ...] = ()
    not_keys: tuple[str, ...] = ()
    read: Callable[[Mapping[str, Any]], Reading]

    def fits(self, found: Mapping[str, Any]) -> bool:
        """Whether a config is of this kind."""
        return (
            all(key in found for key in self.keys)
            and (not self.any_of or any(key in found for key in self.any_of))
            and not any(key in found for key in self.not_keys)
        )


DIALECTS = (
    Dialect(name="diffusers", keys=("_class_name",), read=read_diffusers),
    Dialect(
        name="timm", keys=("architecture",), any_of=("pretrained_cfg", "num_features"),
        read=read_timm,
    ),
    Dialect(
        name="a TensorRT-LLM engine", keys=("pretrained_config",), read=read_tensorrt_llm,
    ),
    Dialect(
        name="a TensorRT-LLM checkpoint", keys=("architecture", "hidden_size"),
        not_keys=("model_type",), read=read_tensorrt_llm,
    ),
    Dialect(
        name="Meta or Mistral", keys=("dim", "n_layers"), not_keys=("model_type", "architectures"),
        read=read_meta,
    ),
)  # fmt: skip


def read_dialect(found: Mapping[str, Any]) -> Reading | None:
    """The rows of a config that is not Hugging Face's; None for one that may be.

    Raises
    ------
    InputError
        If it is of a class that is not known.
    """
    return next((dialect.read(found) for dialect in DIALECTS if dialect.fits(found)), None)
