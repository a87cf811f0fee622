# SPDX-License-Identifier: Apache-2.0
"""Lost rows: told as lost, never measured as errors.

A row is lost when it comes out with infinity or NaN, or as zeros alone, though the exact norm
rounds to none of these. Distances of zeros from the truth would say how large the truth is, and NaN
has no distance; so a case that loses rows of either kind has no error, and says how many it lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

LOST = ("arithmetic_rows_lost", "rows")
"""Columns of the rows that a case loses, and of all its rows."""
LOST_ROW = (
    "one that came out with infinity or NaN, or as zeros alone, though the exact norm rounds to "
    "none of these"
)
"""What a lost row is, for the words of an analysis."""
ERRORS = ("_ulp_", "_relative_", "_absolute_", "_bias", "_kappa", "_correctly")


def surviving(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of a sweep, their errors NaN wherever the case lost rows of its norm.

    Parameters
    ----------
    rows
        Rows of a sweep. Errors called ``arithmetic_…`` become NaN where ``arithmetic_rows_lost`` is
        not 0, those called ``total_…`` where ``total_rows_lost`` is not.

    Returns
    -------
    DataFrame
        A copy.
    """
    masked = {}
    for kind in ("arithmetic", "total"):
        complete = rows[f"{kind}_rows_lost"] == 0
        for name in rows.columns:
            if name.startswith(kind) and any(part in name for part in ERRORS):
                masked[name] = rows[name].where(complete)
    return rows.assign(**masked)


def bound_held(rows: pd.DataFrame) -> str:
    """For how many outputs the proved bound held, as the end of a sentence.

    Parameters
    ----------
    rows
        Rows of a sweep.
    """
    past = int(rows["bound_exceeded"].sum())
    which = f"all but {past}" if past else "all"
    return f"held for {which} of {int(rows['arithmetic_measured'].sum()):,} outputs"


def share_lost(lost: int, rows: int) -> str:
    """How many rows are lost, in words.

    Parameters
    ----------
    lost, rows
        Rows lost, and rows in all.

    Examples
    --------
    >>> share_lost(16, 16), share_lost(3, 16)
    ('all lost', '3 of 16 lost')
    """
    return "all lost" if lost >= rows else f"{lost} of {rows} lost"
