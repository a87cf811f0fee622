# SPDX-License-Identifier: Apache-2.0
"""Which norms each type of model has: one row for each Hugging Face ``model_type``.

The rows of transformers' types lie in ``model_types.json``: the norms of models that it builds, and
which keys of a config their eps, widths and numbers follow. Defaults are those of its config
classes: what a config without the key runs with, which need not be what the checkpoint was trained
with. Types that transformers does not hold, whose code comes with the checkpoint, have none.

Sources: each row names its own; `tests/models/fit_types.py` writes the file.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from precision_lab.plan import plans
from precision_lab.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FILE = Path(__file__).with_name("model_types.json")
REMOTE = "the modeling file that comes with the checkpoint (not in transformers)"
KEY = re.compile(r"[A-Za-z_][\w.]*")


@dataclass(frozen=True, kw_only=True)
class TypeNorm:
    """Norms of a type that share all of this.

    Parameters
    ----------
    names
        Their places in the model, with ``*`` for a number.
    norm, plan
        The names of rows of `norms` and `plans`; no plan where none that is known fits its class.
    eps
        The config's key; a number where the class fixes it, whatever the config says.
    width, count, condition
        How long their rows are, how many there are, and when: see `Keys`.
    offset
        What is added to the weight: 1 where the gain is 1 + weight.
    place, what
        As of `NormPart.place`; the word for it in a part's name, "" for the stream.
    part, sub
        The encoder or decoder that they stand in; the inner config that they are of.
    """

    names: tuple[str, ...]
    norm: str
    eps: str | float
    width: str
    count: str = "1"
    plan: str = ""
    offset: float = 0.0
    condition: str = ""
    place: str = "stream"
    what: str = ""
    part: str = ""
    sub: str = ""

    def __post_init__(self) -> None:
        if self.plan and plans[self.plan].norm not in ("any", self.norm):
            message = f"plan {self.plan!r} does not compute norm {self.norm!r}"
            raise ValueError(message)

    @property
    def eps_key(self) -> str:
        """The config's key of eps; "" where the class fixes it."""
        return self.eps if isinstance(self.eps, str) else ""


@dataclass(frozen=True, kw_only=True)
class TypeOther:
    """Norms of a type that can't be judged: their class, and why."""

    names: tuple[str, ...]
    kind: str
    why: str
    count: str = "1"
    condition: str = ""
    sub: str = ""


@dataclass(frozen=True, kw_only=True)
class ModelType:
    """The norms of one type of model.

    Parameters
    ----------
    name
        The ``model_type`` of its config.
    part
        What it takes: "text", "vision", "audio".
    norms, others
        Those of its own, the main one first; and those that can't be judged.
    configs
        The keys of the configs that it holds, and the type of each by default.
    defaults
        What its class takes where a key is missing: a value, or an expression over other keys.
    spellings
        Other spellings of keys, and the key that each stands for.
    ignored
        Keys of an eps that its config class has and none of its norms follows.
    whole
        Those of `configs` whose norms are among its own, for they are others than those that a
        model of this inner type has alone.
    """

    name: str
    part: str = "model"
    norms: tuple[TypeNorm, ...] = ()
    others: tuple[TypeOther, ...] = ()
    configs: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    spellings: Mapping[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    source: str
    note: str = ""

    @property
    def main(self) -> TypeNorm | None:
        """The norms that stand for it: of the stream, as many as may be; None where it has none."""
        own = [row for row in self.norms if not row.sub] or [*self.norms]
        places = ("stream", "embedding", "qk", "latent", "gated")
        order = sorted(own, key=lambda row: (places.index(row.place), bool(row.condition)))
        stream = [row for row in order if row.place == order[0].place] if order else []
        # Of several stages the last, whose rows are the widest.
        return max(reversed(stream), key=lambda row: _number_of(row.names), default=None)

    @property
    def norm(self) -> str:
        """The name of a row of `norms`; "" for a type without one of its own."""
        return self.main.norm if self.main else ""

    @property
    def plan(self) -> str:
        """The name of a row of `plans`."""
        return self.main.plan if self.main else ""

    @property
    def weight_offset(self) -> float:
        """What is added to the weight."""
        return self.main.offset if self.main else 0.0

    @property
    def eps_key(self) -> str:
        """The config's key of eps; "" where the class fixes it."""
        return self.main.eps_key if self.main else ""

    @property
    def eps_default(self) -> float | None:
        """What is used where the key is missing, or what the class fixes; None where unknown."""
        if self.main is None:
            return None
        eps = self.main.eps
        return self.defaults.get(eps) if isinstance(eps, str) else eps

    @property
    def eps_keys(self) -> set[str]:
        """The keys that some norm's eps is read from."""
        return {row.eps_key for row in self.norms} - {""}


def _number_of(names: tuple[str, ...]) -> int:
    """How many norms these names are of, roughly: those in a list count for many."""
    return sum(10 if "*" in name else 1 for name in names)


def _rows(record: dict[str, Any], key: str) -> Iterator[dict[str, Any]]:
    """Rows of the file as arguments."""
    for row in record.get(key, ()):
        others = {name: value for name, value in row.items() if name not in ("if", "names")}
        yield {**others, "names": tuple(row["names"].split()), "condition": row.get("if", "")}


def _read(path: Path) -> Iterator[ModelType]:
    """The types of the file."""
    found = json.loads(path.read_text(encoding="utf-8"))
    source = f"{found['source']}, the models that it builds"
    for name, record in found["types"].items():
        yield ModelType(
            name=name, part=record.get("part") or "model", source=source,
            norms=tuple(TypeNorm(**row) for row in _rows(record, "norms")),
            others=tuple(TypeOther(**row) for row in _rows(record, "unjudged")),
            configs=record.get("configs", {}), defaults=record.get("defaults", {}),
            spellings=record.get("aliases", {}), ignored=tuple(record.get("ignored", ())),
            whole=tuple(record.get("whole", ())),
        )  # fmt: skip


def _remote(name: str, plan: str, *, eps: str = "rms_norm_eps", norm: str = "rms") -> ModelType:
    """A type whose code comes with the checkpoint."""
    names = ("layers.*.input_layernorm", "layers.*.post_attention_layernorm", "norm")
    if name == "internlm2":
        names = ("layers.*.attention_norm", "layers.*.ffn_norm", "norm")
    if name == "qwen":
        names = ("h.*.ln_1", "h.*.ln_2", "ln_f")
    if name == "chatglm":
        names = (*names[:2], "encoder.final_layernorm")
    depth = "num_layers" if name == "chatglm" else "num_hidden_layers"
    return ModelType(
        name=name, part="text", source=REMOTE,
        norms=(TypeNorm(names=names, norm=norm, plan=plan, eps=eps, width="hidden_size",
                        count=f"2*{depth}+1"),),
    )  # fmt: skip


def _pair(name: str, encoder: str) -> ModelType:
    """Any encoder before any decoder: each config says its type."""
    return ModelType(
        name=name, configs={"encoder": encoder, "decoder": "bert"},
        source="transformers 5.24.0, modeling file",
        others=(TypeOther(
            names=("crossattention",), kind="LayerNorm",
            why="norms of cross-attention and of a decoder's head are no part of its type's model",
        ),),
    )  # fmt: skip


BY_HAND = (
    _pair("encoder-decoder", "bert"),
    _pair("vision-encoder-decoder", "vit"),
    _pair("speech-encoder-decoder", "wav2vec2"),
    _remote("internlm", "hf-llama"),
    _remote("internlm2", "hf-llama"),
    _remote("baichuan", "hf-llama"),
    _remote("minicpm", "hf-llama"),
    _remote("deepseek", "hf-llama"),
    _remote("qwen", "hf-llama", eps="layer_norm_epsilon"),
    _remote("chatglm", "hf-olmo2", eps="layernorm_epsilon"),
    _remote("orion", "torch-layer-norm", norm="layer"),
)
"""Types of which no model can be built from a default config."""

model_types: Table[ModelType] = Table("model type", [*_read(FILE), *BY_HAND])
