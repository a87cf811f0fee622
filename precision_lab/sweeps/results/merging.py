# SPDX-License-Identifier: Apache-2.0
"""The results of shards, put into one file."""

from __future__ import annotations

import itertools
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from precision_lab.exceptions import InputError
from precision_lab.sweeps.results.differences import what_differs
from precision_lab.sweeps.results.file import OtherResultsError
from precision_lab.sweeps.results.reader import open_results
from precision_lab.sweeps.results.store import Store

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from precision_lab.sweeps.results.reader import Reader

# Rows moved at a time.
BATCH = 500


@dataclass(frozen=True, kw_only=True)
class MergeSummary:
    """What a merge came to.

    Parameters
    ----------
    cases
        Of the sweep.
    rows
        Finished cases in the merged file.
    added
        Those that it did not have before.
    """

    cases: int
    rows: int
    added: int


def merge(out: str | os.PathLike[str], paths: Iterable[str | os.PathLike[str]]) -> MergeSummary:
    """Add the rows of results files of one sweep to another file of it, made where there is none.

    Parameters
    ----------
    out, paths
        The file that gets the rows; files of the same sweep, measured by the same code, which are
        left as they are.

    Raises
    ------
    InputError
        There is nothing to merge, a file is no results file or is damaged, they are of different
        sweeps or code, or two have different results of one case.
    StoppedError
        The disk is full; the same merge goes on from there.
    """
    out = Path(out)
    files = [Path(path) for path in paths]
    if not files:
        raise InputError(f"nothing is to be merged into {out}: name one or more results files")
    # All are looked at before the first row is moved.
    for path in files:
        with open_results(files[0]) as first, open_results(path) as reader:
            _check_same(first, reader)
            # Also each row: a new file with half of them would be left behind.
            for _ in reader.stored_rows():
                pass
    # `first` is closed: a file that is open for reading cannot be opened for writing.
    with Store(
        out, sweep=first.sweep, cases=first.cases, config=first.config, made_by=first.code
    ) as store:
        before = len(store.keys())
        for path in files:
            # What is merged into itself has all its rows.
            if not path.samefile(out):
                with open_results(path) as reader:
                    _move(reader, store, out)
        rows = len(store.keys())
        return MergeSummary(cases=first.cases, rows=rows, added=rows - before)


def _check_same(first: Reader, reader: Reader) -> None:
    if reader.sweep != first.sweep:
        why = what_differs(first.config, reader.config)
        raise OtherResultsError(
            f"{reader.path} holds another sweep ({reader.sweep[:12]}, {reader.cases} cases) than "
            f"{first.path} ({first.sweep[:12]}, {first.cases} cases){f': {why}' if why else ''}"
        )
    if reader.code != first.code:
        raise OtherResultsError(
            f"{reader.path} was measured by other code ({reader.code}) than {first.path} "
            f"({first.code}): measure one of them again"
        )


def _move(reader: Reader, store: Store, out: Path) -> None:
    rows = reader.stored_rows()
    while batch := list(itertools.islice(rows, BATCH)):
        for row in batch:
            if store.result(row.key) not in (None, row.result):
                raise InputError(
                    f"{reader.path} has another result for the case {row.key[:12]} than {out}: "
                    "one of them is wrong, measure it again"
                )
        try:
            store.add(batch)
        except sqlite3.IntegrityError as error:
            raise InputError(
                f"{reader.path} is damaged: it has another case in a place of the sweep than {out}"
            ) from error
