# SPDX-License-Identifier: Apache-2.0
"""Expressions over a config's keys that a number follows, found from how it changes with them."""

from __future__ import annotations

import math
import re
from collections import defaultdict

from precision_lab.models.expressions import Keys, UnknownValueError

DEPTH = re.compile(r"layers?$|depth|blocks", re.IGNORECASE)
"""Keys of the number of layers or stages."""


def fit(what, base, changes):
    """An expression for a number that changed as it did; None where there is none.

    `base` is the leaves and the number; `changes` [(path, leaves, number)].
    """
    leaves, number = base
    moved = {}
    for path, other, value in changes:
        if value != number and path in other:
            moved.setdefault(path, (other, value))
    if not moved:
        return str(number)

    def right(expression):
        wrong = [path for path in moved if path not in expression]
        if not all(map(is_depth, wrong)):
            return False
        seen = [(o, v) for path, o, v in changes if path not in wrong]
        for other, value in [(leaves, number), *seen]:
            try:
                if evaluate(expression, other) != value:
                    return False
            except (UnknownValueError, KeyError, TypeError, ZeroDivisionError):
                return False
        return True

    for paths in (moved, {path: each for path, each in moved.items() if not is_depth(path)}):
        texts = [product(leaves, number, paths)]
        if what == "count" or not any(map(is_depth, paths)):
            texts.append(linear(leaves, number, paths))
        if what == "count":
            texts.insert(
                0,
                words(base, changes, right) if len(moved) > 1 or "/" in (texts[0] or "/") else None,
            )
            texts.insert(0, texts.pop())
        for text in texts:
            if text and right(text):
                return text
    return None


def is_depth(path):
    """Whether a key is of the number of layers or stages."""
    return bool(DEPTH.search(path)) and "[" not in path


def linear(leaves, number, moved):
    """A sum of products of one key each."""
    text, rest = "", number
    for path, (other, value) in moved.items():
        slope = (value - number) / (other[path] - leaves[path])
        if slope != int(slope) or slope < 0:
            return None
        text += f"+{int(slope)}*{path}" if slope != 1 else f"+{path}"
        rest -= int(slope) * leaves[path]
    return (text + (f"{rest:+d}" if rest else "")).removeprefix("+")


def product(leaves, number, moved):
    """One product."""
    above, below = [], []
    for path, (other, value) in moved.items():
        if number <= 0 or value <= 0 or leaves[path] <= 0 or other[path] <= 0:
            return None
        power = math.log(value / number) / math.log(other[path] / leaves[path])
        if abs(power - round(power)) > 1e-6 or abs(round(power)) != 1:
            return None
        (above if power > 0 else below).append(path)
    ratio = number / math.prod(leaves[path] for path in above)
    ratio *= math.prod(leaves[path] for path in below)
    for times in (1, 2, 3, 4, 6, 8, 16):
        whole = ratio * times
        if abs(whole - round(whole)) < 1e-9 and round(whole) > 0:
            factors = [str(round(whole))] if round(whole) != 1 or not above else []
            text = "*".join([*factors, *above])
            return text + "".join(f"/{p}" for p in below) + (f"/{times}" if times > 1 else "")
    return None


def words(base, changes, right):
    """How often a word stands in a list, times and plus a number."""
    leaves, number = base
    paths = [path for path in leaves if ":" in path or path.startswith("#")]
    for path in paths:
        for times in (1, 2, 3, 4):
            rest = number - times * leaves[path]
            text = f"{times}*{path}" if times > 1 else path
            text += f"+{rest}" if rest > 0 else f"{rest}" if rest < 0 else ""
            if abs(rest) <= (4 if ":" in path else 0) and right(text):
                return text
    return None


def evaluate(expression, leaves):
    """The value of an expression over a config's leaves."""

    class Leaves(Keys):
        def value(self, path):
            return leaves[path]

        def words(self, path):
            return _Counted(path)

    class _Counted:
        def __init__(self, path):
            self.path = path

        def count(self, word):
            return leaves.get(f"{self.path}:{word}", 0)

        def __len__(self):
            return leaves[f"#{self.path}"]

    return Leaves({}, {}, {}).number(expression)


def add(expressions):
    """The sum of expressions, like terms together."""
    terms = defaultdict(int)
    for expression in expressions:
        for sign, term in re.findall(r"([+-]?)([^+-]+)", expression):
            number, star, rest = term.partition("*")
            times, what = (int(number), rest) if number.isdecimal() and star else (1, term)
            if term.isdecimal():
                times, what = int(term), ""
            terms[what] += -times if sign == "-" else times
    text = ""
    for what, times in sorted(terms.items(), key=lambda pair: not pair[0]):
        if times:
            piece = (
                f"{abs(times)}" if not what else what if abs(times) == 1 else f"{abs(times)}*{what}"
            )
            text += ("-" if times < 0 else "+" if text else "") + piece
    return text or "0"
