# SPDX-License-Identifier: Apache-2.0
"""Numbers as charts and findings print them, and charts as text."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pandas as pd

SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
RUN = 3  # whole numbers in a row that are worth a dash


def power(exponent: float) -> str:
    """2^k as people write it.

    Parameters
    ----------
    exponent
        A whole number.

    Examples
    --------
    >>> power(-8)
    '2⁻⁸'
    """
    return "2" + f"{exponent:.0f}".translate(SUPERSCRIPT)


def number(value: float) -> str:
    """A number to three digits.

    Parameters
    ----------
    value
        Any float.

    Examples
    --------
    >>> number(0.5), number(24494.09), number(1e-12), number(float("nan"))
    ('0.5', '24,494', '1e-12', 'NaN')
    """
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if value == 0:
        return "0"
    if not 1e-3 <= abs(value) < 1e6:
        digits, exponent = f"{value:.2e}".split("e")
        return f"{digits.rstrip('0').rstrip('.')}e{int(exponent)}"
    places = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if places else text


def at_most(value: float) -> str:
    """A magnitude to three digits, never printed below itself.

    Parameters
    ----------
    value
        Any float, not negative.

    Examples
    --------
    >>> at_most(0.500067), at_most(0.49999), at_most(0.5)
    ('0.501', '0.5', '0.5')
    """
    if not math.isfinite(value) or value <= 0:
        return number(value)
    exact = Decimal(value)
    return number(float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - 2), ROUND_CEILING)))


def percent(share: float) -> str:
    """A share in per cent; only none is 0 % and only all is 100 %.

    Parameters
    ----------
    share
        Between 0 and 1.

    Examples
    --------
    >>> percent(0.256), percent(0.0001), percent(1.0)
    ('26 %', '0.01 %', '100 %')
    """
    if share in (0, 1):
        return f"{100 * share:.0f} %"
    places = 0 if 0.1 <= share < 0.99 else 2
    return f"{100 * share:.{places}f} %" if share >= 1e-4 else "under 0.01 %"


def joined(words: Iterable[str]) -> str:
    """Words as people list them.

    Parameters
    ----------
    words
        In order.

    Examples
    --------
    >>> joined(["a", "b", "c"]), joined([])
    ('a, b and c', 'none')
    """
    words = list(words)
    if len(words) > 1:
        return f"{', '.join(words[:-1])} and {words[-1]}"
    return words[0] if words else "none"


def listed(numbers: Iterable[int]) -> str:
    """Whole numbers as people list them.

    Parameters
    ----------
    numbers
        In any order; repeats count once.

    Examples
    --------
    >>> listed([2, 3, 4, 9]), listed([0, 1])
    ('2–4 and 9', '0 and 1')
    """
    runs: list[list[int]] = []
    for value in sorted(set(numbers)):
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    words: list[str] = []
    for run in runs:
        words += [f"{run[0]}–{run[-1]}"] if len(run) >= RUN else [str(value) for value in run]
    return joined(words)


def join_clauses(clauses: Sequence[str]) -> str:
    """The text alternative of a chart from its clauses."""
    return f"{'; '.join(clauses)}." if clauses else "No rows."


def measured(
    best: pd.DataFrame,
    keys: Sequence[str],
    columns: Mapping[str, str],
    *,
    lost: tuple[str, str] | None = None,
) -> str:
    """The magnitudes of a chart as text, one clause a mark.

    Parameters
    ----------
    best
        One row a mark.
    keys
        Columns that name it.
    columns
        Word and column of each magnitude; one that is NaN because rows are lost is left out.
    lost
        Columns of the rows lost and of all rows.
    """
    clauses = []
    for _, row in best.iterrows():
        gone = lost is not None and row[lost[0]] > 0
        values = [
            f"{word} {number(row[column])}".strip()
            for word, column in columns.items()
            if not (gone and math.isnan(row[column]))
        ]
        values += [f"{row[lost[0]]:.0f} of {row[lost[1]]:.0f} rows lost"] if lost and gone else []
        clauses.append(f"{' '.join(str(row[key]) for key in keys)}: {', '.join(values)}")
    return join_clauses(clauses)
