# SPDX-License-Identifier: Apache-2.0
"""What a model's norms are, each kind of them once: the answer of every reader of models."""

from __future__ import annotations

from dataclasses import dataclass

FIXED = "fixed in its class"
DEFAULT = "default of its class"


@dataclass(frozen=True, kw_only=True)
class NormPart:
    """The norms of one part of a model that share kind, eps, width, gain offset and plan.

    Parameters
    ----------
    part
        Where they stand: the part of the model, and what they norm where it is not the stream:
        ``text``, ``vision``, ``encoder``, ``decoder``, ``text qk``, ``text kv_lora``.
    norm, plan
        The names of rows of `norms` and `plans`; no plan where none is known.
    eps, eps_from
        What is added, None where nothing tells it; and in words what tells it: the config's key,
        "fixed in its class", "default of its class".
    hidden_size
        Elements of a row.
    weight_offset
        What the model adds to its weights.
    count
        How many there are; 0 where that is not known.
    place
        What enters them: "embedding", "stream", "qk", "latent" or "gated".
    names
        Their places in the model, with ``*`` for a number; empty where they are not known.
    """

    part: str
    norm: str
    eps: float | None
    hidden_size: int
    weight_offset: float = 0.0
    count: int = 1
    plan: str = ""
    eps_from: str = ""
    place: str = "stream"
    names: tuple[str, ...] = ()

    @property
    def eps_key(self) -> str:
        """The config's key that eps was read from, "" where it was not."""
        return "" if self.eps_from in (FIXED, DEFAULT) else self.eps_from


@dataclass(frozen=True, kw_only=True)
class Unjudged:
    """Norms of a model that no eps is judged for.

    Parameters
    ----------
    part, kind
        Where they stand, as of `NormPart`; what they are, such as ``GroupNorm``.
    why
        In a few words.
    """

    part: str
    kind: str
    why: str
