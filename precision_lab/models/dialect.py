# SPDX-License-Identifier: Apache-2.0
"""What a config that is not Hugging Face's is read as."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from precision_lab.models.parts import Unjudged
    from precision_lab.models.types import ModelType


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The type of a config, the keys that its rows are read from, and what else there is.

    Parameters
    ----------
    row, keys
        The norms of the type, and the config whose keys they name.
    unjudged, notes
        As of `ModelConfig`.
    """

    row: ModelType
    keys: Mapping[str, Any]
    unjudged: tuple[Unjudged, ...] = ()
    notes: tuple[str, ...] = ()


def with_plans(row: ModelType, plans: Mapping[str, str]) -> ModelType:
    """The type as other code runs it: with that code's plan for each norm."""
    norms = tuple(replace(each, plan=plans.get(each.norm, each.plan)) for each in row.norms)
    return replace(row, norms=norms)
