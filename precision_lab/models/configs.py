# SPDX-License-Identifier: Apache-2.0
"""What a Hugging Face config says of a model's norm.

Every spelling of eps and of the hidden size is read that the config classes of transformers and
the configs of models outside it have. A key that is null is missing. Where a config holds others
(``text_config`` …), the text model's is read.

Source: the configuration files of transformers 5.24.0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from precision_lab.exceptions import InputError, the_nearest
from precision_lab.files import check_path, prefix_path, read_object
from precision_lab.models.parts import NormPart, Unjudged
from precision_lab.models.types import COMPOSITE, ModelType, model_types
from precision_lab.norm import norms
from precision_lab.numbers import formats

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from precision_lab.models.gains import Gains

CONFIG = "config.json"
CONFIG_LIMIT = 2**22
"""Bytes of the largest config that is read; those of real models have a few thousand."""
WIDEST = 2**24
"""Elements of the widest row that a config may name."""

EPS_KEYS = {
    **dict.fromkeys(
        ("rms_norm_eps", "rms_norm_epsilon", "rmsnorm_eps", "rmsnorm_epsilon", "rms_eps"), "rms"
    ),
    **dict.fromkeys(
        ("layer_norm_eps", "layer_norm_epsilon", "layernorm_eps", "layernorm_epsilon", "ln_eps",
         "ln_epsilon"), "layer"
    ),
    **dict.fromkeys(("norm_eps", "norm_epsilon", "variance_epsilon", "epsilon", "eps"), ""),
}  # fmt: skip
"""Spellings of eps, and the norm that each speaks of; "" where it speaks of none."""

SIZE_KEYS = (
    "hidden_size", "d_model", "n_embd", "n_embed", "dim", "model_dim", "embed_dim", "hidden_sizes",
    "hidden_dim",
)  # fmt: skip
"""Spellings of the hidden size, the surest first: ``hidden_dim`` is in some the width inside."""

HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads")

TEXT_KEYS = (
    "text_config", "llm_config", "language_config", "language_model_config", "text_model_config",
    "text_cfg", "thinker_config", "decoder",
)  # fmt: skip
"""Keys under which a config holds that of its text model."""


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


@dataclass(frozen=True)
class ConfigPart:
    """One model of a config: the keys that lead to it, its own keys, and what it has of eps."""

    prefix: str
    keys: dict[str, Any]
    type: str

    def eps(self) -> dict[str, float]:
        """Every eps that is given, by its key from the top."""
        return {
            f"{self.prefix}{key}": _eps(f"{self.prefix}{key}", self.keys[key])
            for key in EPS_KEYS
            if self.keys.get(key) is not None
        }


def read_model_config(path: str | Path, *, norm: str | None = None) -> ModelConfig:
    """Read the config of a model: a JSON file, or a folder with ``config.json``.

    `norm` names a row of `norms`, for a config that does not say; None reads it from there.

    Raises
    ------
    InputError
        If the file can't be read, is not a config, names no norm or several eps that disagree, or
        if eps is no finite number from 0 to 1. An eps of 0 is read.
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
    check_path(path)
    try:
        if not path.is_dir() or (path / CONFIG).exists():
            return path / CONFIG if path.is_dir() else path
        there = sorted(entry.name for entry in path.iterdir())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    if not there:
        raise InputError(f"{path} has no {CONFIG}: it is empty")
    names = [entry for entry in there if entry.endswith(".json")] or there
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    raise InputError(f"{path} has no {CONFIG}, but {', '.join(names[:5])}{more}")


def _config(path: Path, found: dict[str, Any], norm: str | None) -> ModelConfig:
    parts = list(_parts(found, "", ""))
    every_eps = {key: value for part in parts for key, value in part.eps().items()}
    if len(set(every_eps.values())) > 1:
        first = next(iter(every_eps))
        other = next(key for key in every_eps if every_eps[key] != every_eps[first])
        raise InputError(
            f"{first} = {every_eps[first]!r} and {other} = {every_eps[other]!r} disagree:"
            " leave the one that the model was trained with"
        )
    part = _primary_part(parts)
    row = model_types.get(part.type)
    name = norms[norm].name if norm is not None else _norm(part, row)
    same_norm = row is not None and row.norm == name
    key, eps = next(iter(part.eps().items()), ("", None))
    if row is not None and not row.eps_key:
        if eps is not None and eps != row.eps_default:
            raise InputError(
                f"{key} = {eps!r}, but the code of {part.type} models fixes {row.eps_default!r}"
            )
        key, eps = "", row.eps_default
    top = parts[0].keys
    base = top.get("_name_or_path")
    hidden = _hidden(part, row)
    other_sizes = _other_sizes(part, row, hidden)
    dtype = _dtype(part.keys) or _dtype(top)
    return ModelConfig(
        path=path, model=_model(path), model_type=part.type, norm=name,
        plan=row.plan if row and same_norm else "", eps=eps, eps_key=key, hidden_size=hidden,
        other_sizes=other_sizes, dtype=dtype,
        unknown_dtype="" if dtype else _dtype_text(part.keys) or _dtype_text(top),
        default_eps=row.eps_default if row else None,
        weight_offset=row.weight_offset if row and same_norm else 0.0,
        base=base if isinstance(base, str) else "",
    )  # fmt: skip


def _parts(found: dict[str, Any], prefix: str, inherited: str) -> Iterator[ConfigPart]:
    """The config and those it holds, from the top down."""
    type = found.get("model_type") or inherited
    if not isinstance(type, str):
        raise InputError(f"{prefix}model_type is {str(type)[:40]!r}, not a name such as 'llama'")
    inner = COMPOSITE.get(type, "")
    # Old configs call the text model by the whole's name, or keep its keys beside the others'.
    nested = any(isinstance(found.get(key), dict) for key in TEXT_KEYS)
    yield ConfigPart(prefix, found, type if nested else inner or type)
    for key in TEXT_KEYS:
        if isinstance(found.get(key), dict):
            yield from _parts(found[key], f"{prefix}{key}.", inner)


def _primary_part(parts: list[ConfigPart]) -> ConfigPart:
    """The part that tells most: eps beside a known type, eps, a known type, a key without eps."""
    return max(parts, key=lambda part: (
        bool(part.eps()), part.type in model_types, bool(set(part.keys) & set(EPS_KEYS))
    ))  # fmt: skip


def _norm(part: ConfigPart, row: ModelType | None) -> str:
    """The norm that the type computes, or that the spelling of eps speaks of."""
    if row is not None:
        return row.norm
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


def _eps(key: str, value: Any) -> float:
    """An eps that may be judged: a finite number from 0 to 1."""
    if isinstance(value, str):
        raise InputError(f"{key} is the string {value[:40]!r}: write a number without quotes")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"{key} is {_quote(value)}, not a number such as 1e-05")
    if not 0 <= value <= 1:
        raise InputError(f"{key} is {_quote(value)}, not a number from 0 to 1 such as 1e-05")
    return abs(float(value))


def _quote(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:
        return "a number of thousands of digits"
    return text if len(text) <= 40 else f"{text[:40]}…"


def _size(key: str, value: Any) -> int:
    if type(value) is not int or not 1 <= value <= WIDEST:
        raise InputError(f"{key} is {_quote(value)}, not a whole number from 1 to {WIDEST}")
    return value


def _hidden(part: ConfigPart, row: ModelType | None) -> int:
    """The hidden size, or that of the config class where its key is missing."""
    for key in SIZE_KEYS:
        value = part.keys.get(key)
        if isinstance(value, list) and value:
            value = value[-1]
        if value is not None:
            return _size(f"{part.prefix}{key}", value)
    if row is not None and row.hidden_default is not None:
        return row.hidden_default
    raise InputError(f"it tells of no hidden size, such as {part.prefix}hidden_size = 4096")


def _other_sizes(part: ConfigPart, row: ModelType | None, hidden: int) -> dict[str, int]:
    """The widths of the norms that are not of the hidden size."""
    if row is None:
        return {}

    def size(key: str) -> int | None:
        value = part.keys.get(key)
        return None if value is None else _size(f"{part.prefix}{key}", value)

    sizes = {
        key.removesuffix("_rank"): width for key in row.widths if (width := size(key)) is not None
    }
    if not row.qk:
        return sizes
    heads = next((key for key in HEADS if part.keys.get(key) is not None), None)
    count = size(heads) if heads else None
    head = size("head_dim") or row.head_default or (hidden // count if count else None)
    if head and (row.qk == "head" or (row.qk[-1:] == "?" and part.keys.get(row.qk[:-1]) is True)):
        sizes["qk"] = head
    if head and count and row.qk == "heads":
        sizes["q"] = head * count
        sizes["k"] = head * (size("num_key_value_heads") or count)
    return sizes


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
    return resolved.parent.name if path.name == CONFIG else path.stem
