# SPDX-License-Identifier: Apache-2.0
"""What a Hugging Face config says of a model's norm.

Of a known type its norms are those of `model_types`, with the config's numbers. Of an unknown one
every spelling of eps and of the hidden size is read that the config classes of transformers and the
configs of models outside it have, and what is guessed from them is told. A key that is null is
missing. Where a config holds others (``text_config``, ``vision_config`` …), each is a part, and the
text model's is the main one.

Source: the configuration files of transformers 5.24.0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from precision_lab.exceptions import InputError
from precision_lab.files import check_path, prefix_path, read_object
from precision_lab.models.architectures import type_of_config
from precision_lab.models.config_values import read_eps
from precision_lab.models.dialects import read_dialect
from precision_lab.models.guesses import GuessedParts, guess_parts
from precision_lab.models.parts import DEFAULT, FIXED, NormPart, Unjudged
from precision_lab.models.peft import base_name
from precision_lab.models.spellings import EPS_KEYS, SIZE_KEYS
from precision_lab.models.type_parts import TEXT_KEYS, TypeParts, parts_of
from precision_lab.models.types import model_types
from precision_lab.norm import norms
from precision_lab.numbers import formats

if TYPE_CHECKING:
    from collections.abc import Mapping

    from precision_lab.models.dialect import Reading
    from precision_lab.models.gains import Gains

__all__ = ["EPS_KEYS", "SIZE_KEYS", "TEXT_KEYS", "ModelConfig", "read_model_config"]

CONFIG, PARAMS = "config.json", "params.json"
CONFIG_LIMIT = 2**22
"""Bytes of the largest config that is read; those of real models have a few thousand."""
NARROW = 8
"""Bits of formats that weights are stored in, and no stream of activations."""


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The norm of the model that a config describes.

    Parameters
    ----------
    path, model
        The config's file; the model's name: its folder's, or the file's without its ending.
    model_type
        As the config has it, "" where it has none.
    norm, plan
        The names of rows of `norms` and `plans` that the model's code follows; "" where unknown.
    eps, eps_key
        As configured, or as the model's code fixes it, None where the key is missing; and the key
        that it was read from, as ``text_config.rms_norm_eps``.
    hidden_size, other_sizes
        The width of the model's norms; widths of further norms by what they norm: ``qk`` one head
        of query and key, ``q_lora`` …
    dtype, unknown_dtype
        The full name of the format that weights are stored in; what the config calls it where none
        of this name is known.
    default_eps
        What transformers takes where the key is missing; None where unknown.
    weight_offset
        What the model adds to its weights.
    base
        The name that the config itself gives its model, "" where it gives none.
    parts, unjudged
        All its norms, those of the main (text) part first: eps, width … above are of the first; and
        norms that no eps is judged for.
    notes
        Sentences that an answer must repeat, such as that the model type is unknown.
    gains
        Weight and bias (None where there is none) by the norm's name, where the file itself holds
        them; None where they may lie in safetensors beside it.
    guessed
        Whether norm and plan are guessed from the spelling of a key.
    """

    path: Path
    model: str
    model_type: str
    norm: str
    plan: str
    eps: float | None
    eps_key: str
    hidden_size: int
    other_sizes: Mapping[str, int] = field(default_factory=dict)
    dtype: str = ""
    default_eps: float | None = None
    weight_offset: float = 0.0
    base: str = ""
    unknown_dtype: str = ""
    parts: tuple[NormPart, ...] = ()
    unjudged: tuple[Unjudged, ...] = ()
    notes: tuple[str, ...] = ()
    gains: Gains | None = None
    guessed: bool = False


def read_model_config(path: str | Path, *, norm: str | None = None) -> ModelConfig:
    """Read the config of a model: a JSON file, or a folder with ``config.json``.

    `norm` names a row of `norms`, for a config that does not say; None reads it from there.

    Raises
    ------
    InputError
        If the file can't be read, is not a config, names no norm that is judged or several eps of
        one norm that disagree, or if eps is no finite number from 0 to 1. An eps of 0 is read.
    """
    from precision_lab.models.file_types import read_by_type

    path = _file(Path(path))
    if (config := read_by_type(path)) is not None:
        return config
    found = read_object(path, limit=CONFIG_LIMIT)
    with prefix_path(path):
        return _config(path, found, norm)


def _file(path: Path) -> Path:
    """The config's file, which is in the folder where a folder is given."""
    from precision_lab.models.file_types import only_model

    check_path(path)
    try:
        if not path.is_dir() or (path / CONFIG).exists():
            return path / CONFIG if path.is_dir() else path
        there = sorted(entry.name for entry in path.iterdir())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    if (name := only_model(there)) is not None:
        return path / name
    if not there:
        raise InputError(f"{path} has no {CONFIG}: it is empty")
    names = [entry for entry in there if entry.endswith(".json")] or there
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    raise InputError(f"{path} has no {CONFIG}, but {', '.join(names[:5])}{more}")


def _config(path: Path, found: dict[str, Any], norm: str | None) -> ModelConfig:
    if (base := base_name(found)) is not None:
        raise InputError(f"it is an adapter of {base[:80]!r}: give that model")
    if (reading := read_dialect(found)) is not None:
        return _read_as(path, reading)
    type = found.get("model_type") or type_of_config(found)
    if not isinstance(type, str):
        raise InputError(f"model_type is {str(type)[:40]!r}, not a name such as 'llama'")
    wanted = None if norm is None else norms[norm].name
    row = model_types.get(type)
    typed = None if row is None else parts_of(row, found)
    if typed is None or (typed.main is None and wanted is not None) or (
        typed.main is not None and wanted not in (None, typed.main.norm)
    ):  # fmt: skip
        return _guessed_config(path, found, guess_parts(found, type, wanted))
    if typed.main is None:
        raise InputError(_nothing_judged(type, typed.unjudged))
    _refuse_foreign_eps(found, typed)
    return _typed_config(path, found, typed)


def _read_as(path: Path, reading: Reading) -> ModelConfig:
    """The config of another kind than Hugging Face's, by the type that it is read as."""
    typed = parts_of(reading.row, reading.keys)
    typed.unjudged += reading.unjudged
    typed.notes += reading.notes
    if typed.main is None:
        raise InputError(_nothing_judged(reading.row.name, typed.unjudged))
    return _typed_config(path, dict(reading.keys), typed)


def _typed_config(path: Path, found: dict[str, Any], typed: TypeParts) -> ModelConfig:
    """The config of a known type."""
    main, row = typed.main, typed.main_row
    assert main is not None  # noqa: S101 - by the caller
    assert row is not None  # noqa: S101
    default = row.eps if isinstance(row.eps, float) else None
    name = typed.row.name if typed.row is not None else ""
    if typed.row is not None and isinstance(row.eps, str):
        default = typed.row.defaults.get(row.eps)
    return _assemble(
        path, found, typed.config, main, model_type=name, parts=typed.parts,
        unjudged=typed.unjudged, notes=typed.notes, default_eps=default,
    )  # fmt: skip


def _guessed_config(path: Path, found: dict[str, Any], guessed: GuessedParts) -> ModelConfig:
    """The config of an unknown type."""
    return _assemble(
        path, found, guessed.config, guessed.main, model_type=guessed.type,
        parts=guessed.parts, unjudged=guessed.unjudged, notes=guessed.notes,
        default_eps=guessed.default_eps, guessed=guessed.guessed,
    )  # fmt: skip


def _assemble(
    path: Path, found: dict[str, Any], inner: Mapping[str, Any], main: NormPart, *,
    model_type: str, parts: list[NormPart], unjudged: list[Unjudged], notes: list[str],
    default_eps: float | None, guessed: bool = False,
) -> ModelConfig:  # fmt: skip
    """The record: what it says of the main part, and all parts, the main one's first."""
    base = found.get("_name_or_path")
    dtype, stored = _dtype(inner) or _dtype(found), _dtype_text(inner) or _dtype_text(found)
    if dtype and formats[dtype].bits <= NARROW:
        notes = [*notes, f"its weights are stored in {dtype}: the stream is taken to be bfloat16"]
        dtype = "bfloat16"
    whose = main.part.rpartition(" ")[0] if main.place not in ("stream", "embedding") else main.part
    ordered = sorted(parts, key=lambda part: (
        part.part != main.part, part.part.partition(" ")[0] != whose.partition(" ")[0]
    ))  # fmt: skip
    return ModelConfig(
        path=path, model=_model(path), model_type=model_type, norm=main.norm, plan=main.plan,
        eps=None if main.eps_from == DEFAULT else main.eps, eps_key=main.eps_key,
        hidden_size=main.hidden_size, other_sizes=_other_sizes(ordered, main),
        dtype=dtype, unknown_dtype="" if dtype else stored, default_eps=default_eps,
        weight_offset=main.weight_offset, base=base if isinstance(base, str) else "",
        parts=tuple(ordered), unjudged=tuple(unjudged), notes=tuple(notes),
        guessed=guessed,
    )  # fmt: skip


def _other_sizes(parts: list[NormPart], main: NormPart) -> dict[str, int]:
    """Widths of the main part's further norms, by what they norm."""
    sizes: dict[str, int] = {}
    for part in parts:
        what = part.part.removeprefix(f"{main.part} ")
        if what != part.part and part.place in ("qk", "latent", "gated"):
            sizes.setdefault(what, part.hidden_size)
    return sizes


def _nothing_judged(type: str, unjudged: list[Unjudged]) -> str:
    """Why a known type has no eps to judge."""
    kinds = list(dict.fromkeys(each.kind for each in unjudged))
    if not kinds:
        return f"models of type {type!r} have no norm: there is no eps to judge"
    others = f" and {len(kinds) - 3} more" if len(kinds) > 3 else ""
    return (
        f"no norm of models of type {type!r} is judged: they have {', '.join(kinds[:3])}{others} "
        f"({unjudged[0].why})"
    )


def _refuse_foreign_eps(found: dict[str, Any], typed: TypeParts) -> None:
    """Refuse an eps that no norm follows, and that is another one than the main part's."""
    main, row = typed.main, typed.row
    if main is None or row is None:
        return
    known = {*row.eps_keys, *row.ignored, *row.spellings}
    places = [(typed.prefix, typed.config, known)]
    places += [(f"{key}.", found[key], set()) for key in TEXT_KEYS
               if isinstance(found.get(key), dict) and not typed.prefix
               and key not in row.configs]  # fmt: skip
    for prefix, config, keys in places:
        for key in EPS_KEYS:
            value = config.get(key)
            if value is None or key in keys:
                continue
            eps = read_eps(f"{prefix}{key}", value)
            if eps == main.eps or main.eps_from == DEFAULT:
                continue
            if main.eps_from == FIXED:
                raise InputError(
                    f"{prefix}{key} = {eps!r}, but the code of {row.name} models fixes {main.eps!r}"
                )
            raise InputError(
                f"{main.eps_from} = {main.eps!r} and {prefix}{key} = {eps!r} disagree:"
                " leave the one that the model was trained with"
            )


def _dtype(keys: Mapping[str, Any]) -> str:
    """The full name of the format, where the config names one that is known here."""
    row = formats.get(_dtype_text(keys).removeprefix("torch."))
    return row.name if row is not None else ""


def _dtype_text(keys: Mapping[str, Any]) -> str:
    """What the config calls the format, "" where it leaves it open."""
    values = (keys.get(key) for key in ("dtype", "torch_dtype"))
    return next((value for value in values if isinstance(value, str) and value != "auto"), "")


def _model(path: Path) -> str:
    """The model's name: its repository's in a download cache, its folder's, or the file's."""
    resolved = path.resolve()
    for folder in resolved.parents:
        if folder.name.startswith("models--"):
            return folder.name.removeprefix("models--").replace("--", "/")
    return resolved.parent.name if path.name in (CONFIG, PARAMS) else path.stem
