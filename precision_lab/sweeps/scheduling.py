# SPDX-License-Identifier: Apache-2.0
"""Which process measures which cases: shards, processes that share a file, workers."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, TypeAlias

from precision_lab.exceptions import InputError, check_integer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from precision_lab.sweeps.case import Case
    from precision_lab.sweeps.results.store import Store

# A case and its place in the sweep.
Numbered: TypeAlias = "tuple[int, Case]"

# Cases in the chunk that a worker gets at a time, where there are plenty.
CHUNK = 32


class CaseQueue:
    """The cases that are not finished, in chunks, each of which one process takes.

    Several processes may fill one file. What another has claimed is put off; when nothing else is
    left it is measured here too, from the end on, for that process may be dead.

    Parameters
    ----------
    store, cases
        Where the rows go, and the cases wanted.
    jobs
        How many workers there are.
    """

    def __init__(self, store: Store, cases: Sequence[Numbered], jobs: int) -> None:
        finished = store.keys()
        self.unfinished = [item for item in cases if item[1].key not in finished]
        self.finished_before = len(cases) - len(self.unfinished)
        """Cases that were finished at the start."""
        self.finished_elsewhere = 0
        """Cases that others have finished since."""
        self._store = store
        self._jobs = jobs

    def __iter__(self) -> Iterator[list[Numbered]]:
        """Chunks of cases that were claimed for this process."""
        postponed: list[Numbered] = []
        for chunk in chunks(self.unfinished, self._jobs):
            mine, others = self._claim(chunk)
            postponed += others
            if mine:
                yield mine
        for chunk in reversed(chunks(postponed, self._jobs)):
            mine, _ = self._claim(chunk[::-1], take_over=True)
            if mine:
                yield mine

    def _claim(
        self, chunk: list[Numbered], *, take_over: bool = False
    ) -> tuple[list[Numbered], list[Numbered]]:
        places = [position for position, _ in chunk]
        mine, others = self._store.claim(places, take_over=take_over)
        self.finished_elsewhere += len(chunk) - len(mine) - len(others)
        return (
            [item for item in chunk if item[0] in mine],
            [item for item in chunk if item[0] in others],
        )


def chunks(cases: Sequence[Numbered], jobs: int) -> list[list[Numbered]]:
    """Split cases so that those that share inputs stay together and no process ends up alone."""
    size = min(CHUNK, -(-len(cases) // (4 * jobs)))
    found: list[list[Numbered]] = []
    for group in groups(cases):
        # A thousand plans on one input are still work for many.
        for start in range(0, len(group), CHUNK):
            members = group[start : start + CHUNK]
            if found and len(found[-1]) + len(members) <= size:
                found[-1].extend(members)
            else:
                found.append(members)
    return found


def groups(cases: Sequence[Numbered]) -> list[list[Numbered]]:
    """The cases that share inputs and truth, as they stand together."""
    return [
        list(group)
        for _, group in itertools.groupby(cases, key=lambda item: item[1].rounded_inputs)
    ]


def shard(cases: Sequence[Numbered], number: int, of: int) -> list[Numbered]:
    """One of several parts of equal work: every `of`-th group of cases, from the `number`-th on.

    Raises
    ------
    InputError
        There is no such shard.
    """
    check_integer("the number of shards", of, 1, 2**31)
    if not 1 <= number <= of:
        raise InputError(
            f"there is no shard {number}/{of}: the first is 1/{of}, the last {of}/{of}"
        )
    return list(itertools.chain.from_iterable(groups(cases)[number - 1 :: of]))
