# SPDX-License-Identifier: Apache-2.0
"""What a config of an unknown type seems to say of its norms, and that it is guessed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from precision_lab.exceptions import InputError, the_nearest
from precision_lab.models.config_values import read_eps, read_size
from precision_lab.models.parts import NormPart, Unjudged
from precision_lab.models.spellings import EPS_KEYS, SIZE_KEYS
from precision_lab.models.type_parts import TEXT_KEYS, part_word, parts_of
from precision_lab.models.types import model_types

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NORM_NAMES = {"rms": "RMSNorm", "layer": "LayerNorm"}


@dataclass(kw_only=True)
class GuessedParts:
    """What is taken of a config: as of `ModelConfig`, and the main part and its keys."""

    main: NormPart
    config: Mapping[str, Any]
    type: str
    default_eps: float | None = None
    guessed: bool = False
    parts: list[NormPart] = field(default_factory=list)
    unjudged: list[Unjudged] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class ConfigPart:
    """One model of a config: the keys that lead to it, its own keys, and its type."""

    prefix: str
    keys: Mapping[str, Any]
    type: str

    @property
    def eps(self) -> dict[str, float]:
        """Every eps that is given, by its key from the top."""
        return {
            f"{self.prefix}{key}": read_eps(f"{self.prefix}{key}", self.keys[key])
            for key in EPS_KEYS
            if self.keys.get(key) is not None
        }


def guess_parts(found: Mapping[str, Any], type: str, norm: str | None) -> GuessedParts:
    """The norms that spellings of eps and of the hidden size speak of.

    `norm` is what the caller says of the main part; None guesses it.

    Raises
    ------
    InputError
        If nothing tells the norm or its width, or several eps of one config disagree.
    """
    texts = list(_texts(found, ""))
    main = max(texts, key=lambda part: (
        bool(part.eps) and part.type in model_types, bool(part.eps), part.type in model_types,
        bool(set(part.keys) & set(EPS_KEYS)),
    ))  # fmt: skip
    row = model_types.get(main.type)
    if row is not None and (typed := parts_of(row, main.keys, prefix=main.prefix)).main is not None:
        if norm in (None, typed.main.norm) and main.prefix:
            result = GuessedParts(
                main=typed.main,
                config=typed.config,
                type=main.type,
                default_eps=row.eps_default,
                parts=typed.parts,
                unjudged=typed.unjudged,
                notes=typed.notes,
            )
            if type:
                result.notes.insert(0, (
                    f"model_type {type[:40]} is unknown: the norms of its {main.prefix[:-1]} are "
                    f"those of {main.type}, and its others are not judged but for those listed"
                ))  # fmt: skip
            _add_towers(result, found, main)
            return result
    return _guess(found, main, texts, norm)


def _guess(
    found: Mapping[str, Any], main: ConfigPart, texts: list[ConfigPart], norm: str | None
) -> GuessedParts:
    """The main part by its spellings alone."""
    _refuse_two(texts)
    key, eps = next(iter(main.eps.items()), ("", None))
    row = model_types.get(main.type)
    name = norm if norm is not None else _norm(main)
    part = NormPart(
        part="text" if main.prefix else "model", norm=name, eps=eps, eps_from=key,
        hidden_size=_hidden(main), count=0,
    )  # fmt: skip
    kind = NORM_NAMES.get(name, name)
    notes = []
    if row is not None:
        notes.append(f"{kind} is the caller's word: models of type {main.type} have "
                     f"{NORM_NAMES.get(row.norm, 'others')}")  # fmt: skip
    elif norm is None:
        whose = f"model_type {main.type[:40]} is unknown" if main.type else "no model_type is given"
        last = key.rpartition(".")[2] or next(each for each in EPS_KEYS if each in main.keys)
        notes.append(f"{whose}: {kind} and plan guessed from the key {last}")
    result = GuessedParts(
        main=part, config=main.keys, type=main.type, parts=[part], notes=notes,
        guessed=row is None and norm is None,
        default_eps=row.eps_default if row is not None else None,
    )  # fmt: skip
    _add_towers(result, found, main)
    return result


def _texts(found: Mapping[str, Any], prefix: str) -> Iterator[ConfigPart]:
    """The config and the text models' that it holds, from the top down."""
    type = found.get("model_type") or ""
    if not isinstance(type, str):
        raise InputError(f"{prefix}model_type is {str(type)[:40]!r}, not a name such as 'llama'")
    yield ConfigPart(prefix, found, type)
    for key in TEXT_KEYS:
        if isinstance(found.get(key), dict):
            yield from _texts(found[key], f"{prefix}{key}.")


def _add_towers(result: GuessedParts, found: Mapping[str, Any], main: ConfigPart) -> None:
    """The parts beside the text model: vision, audio."""
    for key, inner in found.items():
        if not isinstance(inner, dict) or not str(key).endswith("_config") or key in TEXT_KEYS:
            continue
        type, label = inner.get("model_type"), part_word(str(key)[:60])
        row = model_types.get(type) if isinstance(type, str) else None
        part = ConfigPart(f"{key}.", inner, type if isinstance(type, str) else "")
        if row is not None and inner is not main.keys:
            other = parts_of(row, inner, prefix=part.prefix, label=label)
            result.parts += other.parts
            result.unjudged += other.unjudged
        elif part.eps:
            kind = NORM_NAMES.get(EPS_KEYS[next(k for k in EPS_KEYS if inner.get(k) is not None)])
            result.unjudged.append(Unjudged(
                part=label, kind=kind or "all its norms",
                why=f"model_type {part.type[:40]} is unknown" if part.type else
                "it names no model_type",
            ))  # fmt: skip


def _refuse_two(parts: list[ConfigPart]) -> None:
    """Refuse several eps of one text model: nothing tells which counts."""
    every = {key: value for part in parts for key, value in part.eps.items()}
    if len(set(every.values())) > 1:
        first = next(iter(every))
        other = next(key for key in every if every[key] != every[first])
        raise InputError(
            f"{first} = {every[first]!r} and {other} = {every[other]!r} disagree:"
            " leave the one that the model was trained with"
        )


def _norm(part: ConfigPart) -> str:
    """The norm that the spelling of eps speaks of."""
    keys = [key for key in EPS_KEYS if key in part.keys]
    spoken = {EPS_KEYS[key] for key in keys} - {""}
    if len(spoken) == 1:
        return spoken.pop()
    kind = "no model_type"
    if part.type:
        near = the_nearest(part.type, model_types)
        kind = f"the unknown model_type {part.type[:40]!r} ({near})"
    say = "say norm rms or layer (--norm)"
    if keys:
        speaks = "speaks of no norm" if not spoken else "speak of both norms"
        raise InputError(f"{' and '.join(keys)} {speaks}, and it has {kind}: {say}")
    odd = [key for key in part.keys if "eps" in key.lower() and "steps" not in key.lower()]
    spelling = f" ({odd[0][:40]!r} is no spelling known here)" if odd else ""
    raise InputError(
        f"it tells of no norm, for it has no eps such as rms_norm_eps{spelling} and {kind}:"
        f" if its model has one, {say}"
    )


def _hidden(part: ConfigPart) -> int:
    """The hidden size by the surest spelling."""
    for key in SIZE_KEYS:
        value = part.keys.get(key)
        if isinstance(value, list) and value:
            value = value[-1]
        if value is not None:
            return read_size(f"{part.prefix}{key}", value)
    raise InputError(f"it tells of no hidden size, such as {part.prefix}hidden_size = 4096")
