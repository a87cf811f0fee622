# SPDX-License-Identifier: Apache-2.0
"""A grid of cases measured into rows, in one process or several, broken off and resumed at will."""

from __future__ import annotations

import hashlib
import itertools
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from precision_lab import canonical_json as canonical
from precision_lab.exceptions import InputError, check_integer
from precision_lab.sweeps import scheduling
from precision_lab.sweeps.grid import Sweep
from precision_lab.sweeps.results.flattening import flat_rows, flatten, frame
from precision_lab.sweeps.results.reader import StoredRow, open_results
from precision_lab.sweeps.results.store import Store
from precision_lab.sweeps.run_summary import RunSummary, case_error
from precision_lab.sweeps.scheduling import CaseQueue
from precision_lab.sweeps.worker import answer, measure_named
from precision_lab.sweeps.workers import Workers
from precision_lab.versions import versions

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    import pandas as pd

    from precision_lab.sweeps.case import Case
    from precision_lab.sweeps.progress_display import Progress

# A grid, several, or one that is written down.
Written: TypeAlias = "Sweep | Iterable[Sweep] | str | os.PathLike[str] | Mapping[str, Any]"

MEASURE = "precision_lab.sweeps.measurement:measure"
# More processes than this are a slip of the finger, and would stall the machine.
MOST_JOBS = 64
# Seconds of work that a kill may cost: the time between two commits.
COMMIT = 0.2


def sweep(
    config: Written,
    *,
    path: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Measure every case of a sweep, one row each.

    Parameters
    ----------
    config
        A grid, or several whose cases follow each other; or the path of a TOML file that
        describes one, or what such a file holds.
    path
        A results file: rows that it has are not measured again, so a run that was broken off goes
        on. None keeps the rows in memory.
    jobs
        Processes that measure. The rows are the same for any number. With one, plans are measured
        in this process, and kernels in another, so that one that crashes costs its own cases alone.
    progress
        Called with the number of cases done and of all cases, as `show_progress` gives it.

    Returns
    -------
    DataFrame
        One row a case, in the order of the sweep, with the columns that `frame` lists.

    Raises
    ------
    InputError
        The grid is empty, or the file holds something else than this sweep; a kernel is a callable
        of this process and wanted in another or in a file.
    CaseError
        Some cases could not be measured; where each of their kernels raised or gave no output,
        `KernelError`, which is an `InputError` too. The rows of all other cases are saved.
    StoppedError
        The disk is full; the same call goes on from what is saved.
    """
    with _filled_store(config, path, jobs=jobs, progress=progress) as (store, _):
        return frame(map(flatten, store.rows()))


def run(
    config: Written,
    path: str | os.PathLike[str] | None,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
    shard: tuple[int, int] = (1, 1),
    measure: str = MEASURE,
) -> RunSummary:
    """Measure what a results file lacks of a sweep; as `sweep`, without reading the rows.

    Any number of runs may fill one file at a time: each begins with what no other has begun.

    Parameters
    ----------
    config, path, jobs, progress
        As for `sweep`.
    shard
        Which shard to measure and how many there are, to be merged afterwards.
    measure
        What measures a case, as ``module:function``, so that a worker process can import it.

    Returns
    -------
    Run
    """
    with _filled_store(
        config, path, jobs=jobs, progress=progress, shard=shard, measure=measure
    ) as (_, done):
        return done


def read_results(path: str | os.PathLike[str]) -> pd.DataFrame:
    """The rows of a results file, finished or not, as `sweep` gives them.

    Raises
    ------
    InputError
        There is no such file, or it holds something else.
    """
    with open_results(path) as results:
        return frame(flat_rows(results))


def cases_of(config: Written) -> tuple[Case, ...]:
    """The cases of one grid or several, each once, in order.

    Raises
    ------
    InputError
        A grid is empty, or something is no `Sweep`.
    """
    grids = _grids(config)
    cases = itertools.chain.from_iterable(grid.cases() for grid in grids)
    return tuple({case.key: case for case in cases}.values())


def _grids(config: Written) -> list[Sweep]:
    if isinstance(config, str | os.PathLike | Mapping):
        # Here, for msgspec is slow to import.
        from precision_lab.sweeps.config.sweep_file import config_of, read_config

        read = config_of(config) if isinstance(config, Mapping) else read_config(config)
        return [read.sweep]
    grids = [config] if isinstance(config, Sweep) or not isinstance(config, Iterable) else config
    grids = list(grids)
    if not grids or not all(isinstance(grid, Sweep) for grid in grids):
        raise InputError(f"the sweep is {config!r}: give a Sweep, a list of them, or a TOML file")
    return grids


@contextmanager
def _filled_store(
    config: Written,
    path: str | os.PathLike[str] | None,
    *,
    jobs: int,
    progress: Progress | None,
    shard: tuple[int, int] = (1, 1),
    measure: str = MEASURE,
) -> Iterator[tuple[Store, RunSummary]]:
    """A store that has every case of the sweep, or of a shard."""
    jobs = check_integer("jobs", jobs, 1, MOST_JOBS)
    grids = _grids(config)
    cases = cases_of(grids)
    in_workers = _uses_processes(grids, path, jobs=jobs)
    wanted = scheduling.shard(list(enumerate(cases)), *shard)
    digest = hashlib.sha256("\n".join(case.key for case in cases).encode("ascii")).hexdigest()
    with Store(
        path, sweep=digest, cases=len(cases), config=[grid.record for grid in grids]
    ) as store:
        queue = CaseQueue(store, wanted, jobs)
        report = progress or (lambda _done, _total: None)
        report(queue.finished_before, len(wanted))
        measured = 0
        failed: list[dict[str, Any]] = []
        if queue.unfinished:
            replies = (
                _measure_in_workers(queue, measure, jobs)
                if in_workers
                else _measure_here(queue, measure)
            )
            # Closed at once when something is raised, so that no worker outlives this call.
            with closing(replies):
                measured, failed = _save(replies, store, dict(wanted), queue, report)
        done = RunSummary(
            cases=len(cases),
            wanted=len(wanted),
            before=queue.finished_before,
            measured=measured,
            elsewhere=queue.finished_elsewhere,
            sweep=digest,
        )
        if failed:
            raise case_error(failed, dict(wanted), done)
        yield store, done


def _uses_processes(
    grids: Iterable[Sweep], path: str | os.PathLike[str] | None, *, jobs: int
) -> bool:
    """Whether cases are measured in processes of their own."""
    kernels = [kernel for grid in grids for kernel in grid.kernels]
    here = next((kernel for kernel in kernels if kernel.lives_here), None)
    if here is None:
        return jobs > 1 or bool(kernels)
    if jobs > 1 or path is not None:
        raise InputError(
            f"the kernel {here.name} is a callable of this process, which "
            f"{'other processes' if jobs > 1 else 'a results file'} could not find again: give "
            "it as file.py:function or package.module:function"
        )
    return False


def _save(
    replies: Iterable[dict[str, Any] | None],
    store: Store,
    cases: Mapping[int, Case],
    queue: CaseQueue,
    report: Progress,
) -> tuple[int, list[dict[str, Any]]]:
    """Save the rows of the replies, a batch a fraction of a second; None is a pause.

    Returns
    -------
    measured, failed
        How many there were, and the replies that report an error.
    """
    made_by = canonical.encode(versions())
    measured, reported, saved = 0, queue.finished_before, time.monotonic()
    failed: list[dict[str, Any]] = []
    batch: list[StoredRow] = []
    try:
        for reply in replies:
            if reply is not None:
                if "error" in reply:
                    failed.append(reply)
                else:
                    batch.append(_row(cases[reply["position"]], reply, made_by))
                    measured += 1
            done = queue.finished_before + queue.finished_elsewhere + measured + len(failed)
            if done != reported:
                report(done, len(cases))
                reported = done
            if batch and (reply is None or time.monotonic() - saved >= COMMIT):
                # Emptied first: rows that could not be saved are not tried again below.
                batch, rows = [], batch
                store.add(rows)
                saved = time.monotonic()
    finally:
        # Also on Ctrl-C: what is measured is kept.
        if batch:
            store.add(batch)
    if reported != len(cases) and not failed:
        # Others finished the last ones.
        report(len(cases), len(cases))
    return measured, failed


def _row(case: Case, reply: Mapping[str, Any], made_by: str) -> StoredRow:
    return StoredRow(
        position=reply["position"],
        key=case.key,
        case=canonical.encode(case.identity),
        result=reply["result"],
        versions=made_by,
        seconds=reply["seconds"],
    )


def _measure_here(queue: CaseQueue, measure: str) -> Generator[dict[str, Any] | None]:
    """Measure in this process."""
    measure_case = measure_named(measure)
    for chunk in queue:
        for position, case in chunk:
            yield answer(position, case, measure_case)


def _measure_in_workers(
    queue: CaseQueue, measure: str, jobs: int
) -> Generator[dict[str, Any] | None]:
    """Measure in worker processes."""
    with Workers(measure, jobs, queue) as workers:
        yield from workers.answers(idle=COMMIT)
        # What is measured is saved before the workers end, however long that takes.
        yield None
