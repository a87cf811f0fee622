# SPDX-License-Identifier: Apache-2.0
"""The norms that a config of a known type has: its type's rows with the config's numbers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from precision_lab.exceptions import InputError
from precision_lab.models.config_values import quote_value, read_eps, read_size
from precision_lab.models.expressions import Keys, UnknownValueError
from precision_lab.models.parts import DEFAULT, FIXED, NormPart, Unjudged
from precision_lab.models.types import ModelType, TypeNorm, model_types

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TEXT_KEYS = (
    "text_config", "llm_config", "language_config", "language_model_config", "text_model_config",
    "text_cfg", "thinker_config", "decoder",
)  # fmt: skip
"""Keys under which a config holds that of its text model, the surest first."""
WIDTHS = ("hidden_size", "d_model", "n_embd", "dim")
MOST = 10**6
"""The largest number of norms that is believed."""


@dataclass
class TypeParts:
    """What has been found of a config.

    Parameters
    ----------
    parts, unjudged, notes
        As of `ModelConfig`.
    main
        The part that stands for the model, None where there is none.
    row, keys, prefix
        The type's row, the config and the path of `main`.
    """

    parts: list[NormPart] = field(default_factory=list)
    unjudged: list[Unjudged] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    main: NormPart | None = None
    main_row: TypeNorm | None = None
    row: ModelType | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    prefix: str = ""


def parts_of(
    row: ModelType, config: Mapping[str, Any], *, prefix: str = "", label: str = ""
) -> TypeParts:
    """The norms of a config: of its own type first, then of the configs that it holds.

    Parameters
    ----------
    row, config
        The type, and the config's keys.
    prefix, label
        The path of this config from the top, with a dot at its end; the name of its part.

    Raises
    ------
    InputError
        If an eps or a width that is given is none.
    """
    found = TypeParts(row=row, config=config, prefix=prefix)
    keys = Keys(config, row.defaults, row.spellings)
    inner = dict(_inner_configs(row, config))
    replaced = {key for key, (type, _) in inner.items() if type != row.configs[key]}
    own = [each for each in row.norms if each.sub.partition(".")[0] not in replaced]
    unjudgeable = [each for each in row.others if each.sub.partition(".")[0] not in replaced]
    first_of: set[str] = set()
    chosen: dict[TypeNorm, NormPart] = {}
    for each in own:
        name = _label(row, each.sub, each.part, label)
        part = _part(each, keys, prefix, name, found)
        if part is None:
            continue
        chosen[each] = part
        found.parts += _split_first(part, row, each, first_of)
    for other in unjudgeable:
        if _holds(keys, other.condition) and _count(keys, other.count):
            found.unjudged.append(
                Unjudged(part=_label(row, other.sub, "", label), kind=other.kind, why=other.why)
            )
    if row.main in chosen:
        found.main, found.main_row = chosen[row.main], row.main
    subs = [each.sub for each in row.norms] + [each.sub for each in row.others]
    inlined = {sub.partition(".")[0] for sub in subs} | {*row.whole}
    for key, (type, keys_below) in inner.items():
        if key in inlined and key not in replaced:
            continue
        _add_inner(found, type, keys_below, f"{prefix}{key}.", _joined(label, part_word(key)))
    _choose_text(found, row, chosen)
    return found


def _inner_configs(
    row: ModelType, config: Mapping[str, Any]
) -> Iterator[tuple[str, tuple[str, Mapping[str, Any]]]]:
    """The configs that a config holds, by key: the type of each, and its keys."""
    nested = any(isinstance(config.get(key), dict) for key in row.configs)
    for key, usual in row.configs.items():
        inner = config.get(key)
        if inner is not None and not isinstance(inner, dict | bool):
            raise InputError(f"{key} is {quote_value(inner)}, not a config in braces")
        if not isinstance(inner, dict):
            # Old configs keep the text model's keys beside the others'.
            inner = config if not nested and key in TEXT_KEYS else {}
        type = inner.get("model_type")
        if not isinstance(type, str) or not type or type == row.name:
            type = usual
        yield key, (type, inner)


def _add_inner(
    found: TypeParts, type: str, config: Mapping[str, Any], prefix: str, label: str
) -> None:
    """What an inner config adds."""
    row = model_types.get(type)
    if row is None:
        found.unjudged.append(
            Unjudged(part=label, kind="all its norms", why=f"model_type {type[:40]} is unknown")
        )
        return
    inner = parts_of(row, config, prefix=prefix, label=label)
    found.parts += inner.parts
    found.unjudged += inner.unjudged
    found.notes += inner.notes
    key = prefix.rstrip(".").rpartition(".")[2]
    if inner.main is not None and (found.main is None or key in TEXT_KEYS[:-1]):
        found.main, found.main_row, found.row = inner.main, inner.main_row, inner.row
        found.config, found.prefix = inner.config, inner.prefix


def _choose_text(found: TypeParts, row: ModelType, chosen: Mapping[TypeNorm, NormPart]) -> None:
    """Where a type's own rows hold those of its text model, that is the main part."""
    for each, part in chosen.items():
        if each.sub in TEXT_KEYS and each.place == "stream" and found.prefix.count(".") == 0:
            found.main, found.main_row, found.row = part, each, row
            return
    if found.main is None and chosen:
        found.main_row, found.main = next(iter(chosen.items()))


def _part(row: TypeNorm, keys: Keys, prefix: str, name: str, found: TypeParts) -> NormPart | None:
    """The norms of a row, None where the config has none of them."""
    if not _holds(keys, row.condition):
        return None
    count = _count(keys, row.count)
    if count == 0:
        return None
    what = f"{name} {row.what}" if row.what else name
    if _has_other_stages(row, keys):
        why = "its config has another number of stages than its class by default"
        found.unjudged.append(Unjudged(part=what, kind=row.norm, why=why))
        return None
    try:
        width = read_size(row.width, _width(row, keys, prefix))
    except UnknownValueError as error:
        why = f"its config has no usable {str(error)[:60]}"
        found.unjudged.append(Unjudged(part=what, kind=row.norm, why=why))
        return None
    eps, source = (row.eps, FIXED) if isinstance(row.eps, float) else _eps(row.eps, keys, prefix)
    return NormPart(
        part=what, norm=row.norm, eps=eps, hidden_size=width, weight_offset=row.offset,
        count=1 if count is None else count, plan=row.plan, eps_from=source, place=row.place,
        names=row.names,
    )  # fmt: skip


def _eps(key: str, keys: Keys, prefix: str) -> tuple[float | None, str]:
    """What is added, and what tells it."""
    value = keys.configured(key)
    if value is not None:
        return read_eps(f"{prefix}{key}", value), f"{prefix}{key}"
    default = keys.defaults.get(key)
    return (None, "") if default is None else (float(default), DEFAULT)


def _width(row: TypeNorm, keys: Keys, prefix: str) -> int:
    """How long a row is; sizes that are given must be sizes."""
    for key in keys.names(row.width):
        if (value := keys.configured(key)) is not None:
            read_size(f"{prefix}{key}", value)
    try:
        return keys.number(row.width)
    except UnknownValueError:
        if row.width in WIDTHS:
            others = ((key, keys.config.get(key)) for key in WIDTHS)
            for key, value in others:
                if value is not None:
                    return read_size(f"{prefix}{key}", value)
        raise


def _has_other_stages(row: TypeNorm, keys: Keys) -> bool:
    """Whether a list with an entry for each stage is of another length than the rows are for."""
    for path in keys.names(f"{row.width}+{row.count}"):
        name, bracket, _ = path.partition("[")
        stages = keys.configured(name) if bracket else None
        known = keys.defaults.get(f"#{name}")
        if isinstance(stages, list) and known is not None and len(stages) != known:
            return True
    return False


def _holds(keys: Keys, condition: str) -> bool:
    try:
        return keys.holds(condition)
    except UnknownValueError:
        return False


def _count(keys: Keys, expression: str) -> int | None:
    """How many norms a row is of; None where the config does not say."""
    try:
        return min(MOST, max(0, keys.number(expression)))
    except UnknownValueError:
        return None


def _split_first(
    part: NormPart, row: ModelType, each: TypeNorm, first_of: set[str]
) -> list[NormPart]:
    """The first norm of a text model's stream is fed by its embedding."""
    text = row.part == "text" or (each.part and row.part == "model")
    before, first_of_part = part.part in first_of, part.place in ("stream", "embedding")
    if first_of_part:
        first_of.add(part.part)
    if not text or before or part.place != "stream" or part.count < 2:
        return [part]
    return [replace(part, place="embedding", count=1), replace(part, count=part.count - 1)]


def _label(row: ModelType, sub: str, part: str, label: str) -> str:
    """The name of a part: that of its config, and encoder or decoder where it says so."""
    for key in filter(None, sub.split(".")):
        label = _joined(label, part_word(key))
    part = part.rpartition(".")[2]
    if part and part not in label:
        return _joined(label, part)
    return label or ("model" if row.configs else row.part)


def part_word(key: str) -> str:
    """A config's key as a part of a name: "vision_config" is vision."""
    words = {"llm": "text", "language": "text", "language_model": "text", "text_model": "text"}
    word = key.removesuffix("_config").removesuffix("_cfg")
    return words.get(word, word)


def _joined(label: str, word: str) -> str:
    return f"{label} {word}".strip()
