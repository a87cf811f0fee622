# SPDX-License-Identifier: Apache-2.0
"""The record of a released model, and the table that finds it by the names it goes by."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from precision_lab.exceptions import InputError, the_nearest
from precision_lab.models.parts import FIXED, NormPart
from precision_lab.models.types import ModelType, model_types
from precision_lab.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

UNCHECKED = "not checked: taken to be in the release's config.json"
CLASS = "default of the config class in transformers 5.24.0, not a checkpoint's value"


@dataclass(frozen=True, kw_only=True)
class KnownModel:
    """The norm of one released model.

    Parameters
    ----------
    name, aliases
        As released, without its organisation; other names of it.
    eps, hidden_size
        As released; the width of its norms.
    model_type
        The name of a row of `model_types`, which says which norm it computes.
    other_sizes
        Widths of further norms by what they norm: ``qk`` one head of query and key, ``q_lora`` …
    source, note
        Where eps and width come from; what else is to be known.
    """

    name: str
    aliases: tuple[str, ...] = ()
    eps: float
    hidden_size: int
    model_type: str
    other_sizes: Mapping[str, int] = field(default_factory=dict)
    source: str
    note: str = ""

    @property
    def type(self) -> ModelType:
        """The row of `model_types`."""
        return model_types[self.model_type]

    @property
    def norm(self) -> str:
        """The name of a row of `norms`."""
        return self.type.norm

    @property
    def plan(self) -> str:
        """The name of a row of `plans`: what transformers computes."""
        return self.type.plan

    @property
    def parts(self) -> tuple[NormPart, ...]:
        """Its norms by width, as far as they are known here; how many there are is not (0)."""
        type, main = self.type, self.type.main
        first = NormPart(
            part=type.part, norm=self.norm, eps=self.eps, hidden_size=self.hidden_size, count=0,
            plan=self.plan, weight_offset=type.weight_offset, eps_from=type.eps_key,
        )  # fmt: skip
        found = [first]
        for what, size in self.other_sizes.items():
            part = replace(first, part=f"{type.part} {what}", hidden_size=size)
            row = next((row for row in type.norms if row.what == what), None)
            if row is not None and main is not None:
                part = replace(part, norm=row.norm, plan=row.plan, weight_offset=row.offset,
                               place=row.place)  # fmt: skip
                if isinstance(row.eps, float):
                    part = replace(part, eps=row.eps, eps_from=FIXED)
                elif row.eps != main.eps:
                    part = replace(part, eps=type.defaults.get(row.eps), eps_from=row.eps)
            found.append(part)
        return tuple(found)

    @property
    def released(self) -> bool:
        """Whether eps was read from what was released, not only from the config class."""
        return self.source != CLASS

    @property
    def checked(self) -> bool:
        """Whether its source was read, and is not only taken to say so."""
        return not self.source.startswith(UNCHECKED)

    @property
    def doubt(self) -> str:
        """Why its eps may be another, in a sentence; "" where the release was read."""
        if not self.released:
            return (
                f"eps {self.eps:g} is what its class takes, and the release may name another: its"
                " config.json tells"
            )
        if not self.checked:
            return f"eps {self.eps:g} was not checked against the release: its config.json tells"
        return ""


ENDINGS = re.compile(
    r"[-_ ](instruct|it|chat|thinking|reasoning|hf|base|pt|sft|dpo|python|uncased|cased|deduped"
    r"|turbo|beta|qat|fp8|bf16|fp16|int4|int8|w8a8|nvfp4|awq|gptq|gguf|4bit|8bit|bnb|q\d_\d"
    r"|v\d+(\.\d+)?|\d+k|patch\d+|\d{2}-\d{4}|\d{3,4})$",
    re.ASCII,
)
"""What releases of one architecture add to its name."""
BEGINNINGS = ("meta-", "c4ai-")
"""What they put before it."""


class KnownModels(Table[KnownModel]):
    """A table that also finds ``organisation/Name-Instruct``, in any case of letters."""

    def _row(self, name: str) -> KnownModel | None:
        names = {_plain(alias): row for alias, row in self._aliases.items()}
        names |= {_plain(row): row for row in self._rows}
        shorter, plain = _plain(name), ""
        while shorter != plain:
            plain = shorter
            for spelling in (plain, *(plain.removeprefix(each) for each in BEGINNINGS)):
                if spelling in names:
                    return self._rows[names[spelling]]
            shorter = ENDINGS.sub("", plain)
        return None

    def __getitem__(self, name: str) -> KnownModel:
        row = self._row(name) if isinstance(name, str) else None
        if row is None:
            near = the_nearest(_plain(str(name)), [*self._rows, *self._aliases])
            raise InputError(f"unknown {self.kind} {str(name)[:80]!r}: {near}")
        return row

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._row(name) is not None


def _plain(name: str) -> str:
    return name.strip().rpartition("/")[2].lower()
