# SPDX-License-Identifier: Apache-2.0
"""What the rows of a type say in terms of a config's keys: widths, counts, conditions.

An expression is a sum of products: ``2*num_hidden_layers+1``, ``head_dim*num_attention_heads``,
``hidden_size/num_attention_heads``. A factor is a whole number; a key, in an inner config or in a
list by its path (``vision_config.hidden_size``, ``depths[0]``); the length of a list
(``#hidden_sizes``); or how often a word stands in one (``layer_types:full_attention``).

A condition is a key that must be true (``use_qk_norm``), must not (``!use_qk_norm``), or must have
a value (``norm_type=layer``); several are joined by ``&``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from precision_lab.exceptions import InputError
from precision_lab.models.config_values import WIDEST, quote_value, read_size

if TYPE_CHECKING:
    from collections.abc import Mapping

STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
DEEPEST = 10**5
"""More layers than any model has."""
DEPTHS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
"""The keys that say how long a list with one word for each layer is."""


COMPUTED = ("auto",)
"""Words that stand for a number that the model computes."""


class UnknownValueError(LookupError):
    """A key that neither the config nor its class gives a usable value."""


@dataclass(frozen=True)
class Keys:
    """A config's keys, and what its class takes where one is missing.

    Parameters
    ----------
    config
        As its file has them.
    defaults
        By path; a string is an expression over other keys, in place of a number.
    aliases
        Other spellings of a key that the class reads as well.
    """

    config: Mapping[str, Any]
    defaults: Mapping[str, Any]
    aliases: Mapping[str, str]

    def configured(self, path: str) -> Any:
        """What the config itself has at a path, None where it has nothing."""
        value: Any = self.config
        steps = [name or int(place) for name, place in STEP.findall(path)]
        for number, step in enumerate(steps):
            if isinstance(step, int):
                value = value[step] if isinstance(value, list) and step < len(value) else None
            else:
                found = value.get(step) if isinstance(value, dict) else None
                if found is None and number == 0 and isinstance(value, dict):
                    spellings = (short for short, full in self.aliases.items() if full == step)
                    found = next(
                        (value[each] for each in spellings if value.get(each) is not None), None
                    )
                value = found
        return value

    def value(self, path: str) -> Any:
        """What the model runs with: the config's, or the class's where that is missing."""
        configured = self.configured(path)
        if configured is not None:
            return configured
        default = self.defaults.get(path)
        if isinstance(default, str) and re.search(r"[*/]|\w_\w", default):
            return self.number(default)
        return None if path in self.config else default

    def words(self, path: str) -> list[Any]:
        """A list with one word for each layer; that of the class is repeated to the depth."""
        words = self.configured(path)
        if isinstance(words, list):
            return words
        if words is not None:
            raise InputError(f"{path} is {quote_value(words)}, not a list")
        pattern = self.defaults.get(path)
        if not isinstance(pattern, list) or not pattern:
            raise UnknownValueError(path)
        depths = (self.configured(key) for key in DEPTHS)
        depth = next((each for each in depths if type(each) is int), len(pattern))
        return [pattern[place % len(pattern)] for place in range(max(0, min(depth, 4096)))]

    @staticmethod
    def names(expression: str) -> list[str]:
        """The keys that an expression takes as numbers."""
        factors = re.split(r"[+\-*/]", expression)
        return [
            each for each in factors if each and not each.isdecimal() and not set("#:") & {*each}
        ]

    def number(self, expression: str) -> int:
        """The whole number that an expression gives."""
        total = 0
        for term in re.findall(r"[+-]?[^+-]+", expression):
            product = 1
            for operator, factor in re.findall(r"([*/]?)([^*/]+)", term.lstrip("+-")):
                each = self._factor(factor)
                if operator == "/" and (each == 0 or product % each):
                    raise UnknownValueError(expression)
                product = product // each if operator == "/" else product * each
            total += -product if term.startswith("-") else product
        return total

    def _factor(self, factor: str) -> int:
        if factor.isdecimal():
            return int(factor)
        if factor.startswith("#"):
            return len(self.words(factor[1:]))
        path, colon, word = factor.partition(":")
        value = self.words(path).count(word) if colon else self.value(path)
        if not colon and self.configured(path) not in (None, *COMPUTED):
            read_size(path, value, most=DEEPEST if path in DEPTHS else WIDEST, least=0)
        if type(value) is not int or value < 0:
            raise UnknownValueError(factor)
        return value

    def holds(self, condition: str) -> bool:
        """Whether a condition holds."""
        return all(self._holds(each) for each in condition.split("&") if each)

    def _holds(self, condition: str) -> bool:
        path, equals, wanted = condition.lstrip("!").partition("=")
        value = self.value(path)
        true = str(value) == wanted if equals else bool(value)
        return true != condition.startswith("!")
