# SPDX-License-Identifier: Apache-2.0
"""A model's norms one by one, as a file lists them, grouped into the parts of a `ModelConfig`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from precision_lab.exceptions import InputError
from precision_lab.models.configs import ModelConfig
from precision_lab.models.parts import NormPart, Unjudged

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from precision_lab.models.gains import Gains


@dataclass(frozen=True, kw_only=True)
class ListedNorm:
    """Norms of a file that share everything: one, or `count` of them; fields as of `NormPart`."""

    name: str
    part: str
    norm: str
    eps: float | None
    hidden_size: int
    eps_from: str = ""
    plan: str = ""
    place: str = "stream"
    weight_offset: float = 0.0
    count: int = 1


def group_norms(
    path: Path, listed: Sequence[ListedNorm], *, unjudged: Sequence[Unjudged], notes: Sequence[str],
    model: str, model_type: str, dtype: str = "", gains: Gains | None = None,
) -> ModelConfig:  # fmt: skip
    """The config of a model whose norms are listed, those of its first part first.

    Raises
    ------
    InputError
        If no norm is listed: there is nothing to judge.
    """
    if not listed:
        kinds = ", ".join(dict.fromkeys(one.kind for one in unjudged))
        raise InputError(
            f"it has no RMSNorm or LayerNorm to judge, but {kinds or 'no norm'}: no eps of these "
            "is judged"
        )
    parts: dict[tuple[object, ...], NormPart] = {}
    for one in listed:
        key = (one.part, one.norm, one.eps, one.hidden_size, one.weight_offset, one.plan, one.place)
        before = parts[key].count if key in parts else 0
        names = parts[key].names if key in parts else ()
        parts[key] = NormPart(
            part=one.part, norm=one.norm, eps=one.eps, hidden_size=one.hidden_size,
            weight_offset=one.weight_offset, count=before + one.count, plan=one.plan,
            eps_from=one.eps_from, place=one.place,
            names=(*names, one.name) if one.name else names,
        )  # fmt: skip
    main = next((part for part in parts.values() if part.place == "stream"), None)
    main = main or next(iter(parts.values()))
    others = [part for part in parts.values() if part is not main]
    return ModelConfig(
        path=path, model=model, model_type=model_type, norm=main.norm, plan=main.plan,
        eps=main.eps, eps_key=main.eps_from, hidden_size=main.hidden_size, dtype=dtype,
        weight_offset=main.weight_offset, parts=(main, *others),
        unjudged=tuple(dict.fromkeys(unjudged)), notes=tuple(notes), gains=gains,
    )  # fmt: skip
