# SPDX-License-Identifier: Apache-2.0
"""A grid of cases measured into rows, in one process or several, broken off and resumed at will."""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Iterable
from contextlib import closing, contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from precision_lab import canonical
from precision_lab.cases import Case
from precision_lab.grid import Sweep
from precision_lab.inputs.draws import whole
from precision_lab.sources import Source, capture, family
from precision_lab.store import Results, Row, Store, read
from precision_lab.sweep_worker import answer, measure_named
from precision_lab.table import InputError
from precision_lab.versions import versions
from precision_lab.workers import Numbered, Workers

if TYPE_CHECKING:
    import os
    from collections.abc import Generator, Iterator, Mapping, Sequence

    import pandas as pd

    from precision_lab.progress import Progress

__all__ = [
    "Case",
    "CaseError",
    "Results",
    "Source",
    "Sweep",
    "capture",
    "cases_of",
    "family",
    "frame",
    "read",
    "run",
    "sweep",
]

MEASURE = "precision_lab.measure:measure"
# Seconds of work that a kill may cost: the time between two commits.
COMMIT = 0.2
# Cases in the chunk that a worker gets at a time, where there are plenty.
CHUNK = 32


class CaseError(RuntimeError):
    """Some cases could not be measured; the rows of all others are saved."""


def sweep(
    config: Sweep | Iterable[Sweep],
    *,
    path: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Measure every case of a sweep, one row each.

    Parameters
    ----------
    config
        A grid, or several whose cases follow each other.
    path
        A results file: rows that it has are not measured again, so a run that was broken off goes
        on. None keeps the rows in memory.
    jobs
        Processes that measure. The rows are the same for any number.
    progress
        Called with the number of cases done and of all cases, as `precision_lab.progress.show`
        gives it.

    Returns
    -------
    DataFrame
        One row a case, in the order of the sweep, with the columns that `frame` lists.

    Raises
    ------
    InputError
        The grid is empty, or the file holds something else than this sweep.
    CaseError
        Some cases could not be measured.
    StoppedError
        The disk is full; the same call goes on from what is saved.
    """
    with _filled(config, path, jobs, progress, MEASURE) as store:
        return frame(store.rows())


def run(
    config: Sweep | Iterable[Sweep],
    path: str | os.PathLike[str] | None,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
    measure: str = MEASURE,
) -> None:
    """Measure what a results file lacks of a sweep; as `sweep`, without reading the rows.

    Parameters
    ----------
    config, path, jobs, progress
        As for `sweep`.
    measure
        What measures a case, as ``module:function``, so that a worker process can import it.
    """
    with _filled(config, path, jobs, progress, measure):
        pass


def cases_of(config: Sweep | Iterable[Sweep]) -> tuple[Case, ...]:
    """The cases of one grid or several, each once, in order.

    Raises
    ------
    InputError
        A grid is empty, or something is no `Sweep`.
    """
    grids = _grids(config)
    cases = itertools.chain.from_iterable(grid.cases() for grid in grids)
    return tuple({case.key: case for case in cases}.values())


def _grids(config: Sweep | Iterable[Sweep]) -> list[Sweep]:
    grids = [config] if isinstance(config, Sweep) or not isinstance(config, Iterable) else config
    grids = list(grids)
    if not grids or not all(isinstance(grid, Sweep) for grid in grids):
        raise InputError(f"the sweep is {config!r}: give a Sweep, or a list of them")
    return grids


def frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """A table of stored rows, one column a field.

    The columns of the case come first (`plan` is the plan's name, `plan_<switch>` are its switches
    and `parameter_<name>` the input family's parameters, empty where a family has no such), then
    those of the result, then `versions` and `key`.
    """
    import pandas as pd

    return pd.DataFrame([_flat(row) for row in rows])


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    case = dict(row["case"])
    plan, parameters = case.pop("plan"), case.pop("parameters")
    kind, _, name = case["source"].partition(":")
    name, _, layer = name.partition(":")
    return {
        "plan": plan["name"],
        **{item.name: case[item.name] for item in fields(Case) if item.name in case},
        "input": name,
        "input_kind": kind,
        "layer": layer,
        **{f"parameter_{name}": value for name, value in parameters.items()},
        **row["result"],
        **{f"plan_{name}": value for name, value in plan.items() if name != "name"},
        "versions": canonical.encode(row["versions"]),
        "key": row["key"],
    }


@contextmanager
def _filled(
    config: Sweep | Iterable[Sweep],
    path: str | os.PathLike[str] | None,
    jobs: int,
    progress: Progress | None,
    measure: str,
) -> Iterator[Store]:
    """A store that has every case of the sweep."""
    jobs = whole("jobs", jobs, 1, 1024)
    grids = _grids(config)
    cases = cases_of(grids)
    keys = [case.key for case in cases]
    with Store(
        path,
        sweep=hashlib.sha256("\n".join(keys).encode("ascii")).hexdigest(),
        cases=len(cases),
        config=[grid.record for grid in grids],
    ) as store:
        done = store.keys()
        missing = [item for item in enumerate(cases) if item[1].key not in done]
        report = progress or (lambda _done, _total: None)
        report(len(done), len(cases))
        if missing:
            few = jobs == 1
            replies = _alone(missing, measure) if few else _together(missing, measure, jobs)
            # Closed at once when something is raised, so that no worker outlives this call.
            with closing(replies):
                _save(replies, store, cases, report)
        yield store


def _save(
    replies: Iterable[dict[str, Any] | None],
    store: Store,
    cases: Sequence[Case],
    report: Progress,
) -> None:
    """Save the rows of the replies, a batch a fraction of a second; None is a pause."""
    made_by = canonical.encode(versions())
    done, saved = len(store.keys()), time.monotonic()
    failed: list[dict[str, Any]] = []
    batch: list[Row] = []
    try:
        for reply in replies:
            if reply is not None:
                if "error" in reply:
                    failed.append(reply)
                else:
                    batch.append(_row(cases[reply["position"]], reply, made_by))
                done += 1
                report(done, len(cases))
            if batch and time.monotonic() - saved >= COMMIT:
                # Emptied first: rows that could not be saved are not tried again below.
                batch, rows = [], batch
                store.add(rows)
                saved = time.monotonic()
    finally:
        # Also on Ctrl-C: what is measured is kept.
        if batch:
            store.add(batch)
    if failed:
        first = min(failed, key=lambda reply: int(reply["position"]))
        kind = InputError if first["bad_input"] else CaseError
        raise kind(
            f"{len(failed)} of {len(cases)} cases could not be measured, the others are saved; "
            f"the first is {cases[first['position']].text}: {first['error']}"
        )


def _row(case: Case, reply: Mapping[str, Any], made_by: str) -> Row:
    return Row(
        position=reply["position"],
        key=case.key,
        case=canonical.encode(case.identity),
        result=reply["result"],
        versions=made_by,
        seconds=reply["seconds"],
    )


def _alone(cases: list[Numbered], measure: str) -> Generator[dict[str, Any] | None]:
    """Measure in this process."""
    measure_case = measure_named(measure)
    for position, case in cases:
        yield answer(position, case, measure_case)


def _together(cases: list[Numbered], measure: str, jobs: int) -> Generator[dict[str, Any] | None]:
    """Measure in worker processes."""
    with Workers(measure, jobs, chunks(cases, jobs)) as workers:
        yield from workers.answers(idle=COMMIT)


def chunks(cases: list[Numbered], jobs: int) -> list[list[Numbered]]:
    """Split cases so that those that share inputs stay together and no process ends up alone."""
    size = min(CHUNK, -(-len(cases) // (4 * jobs)))
    found: list[list[Numbered]] = []
    for _, group in itertools.groupby(cases, key=lambda item: item[1].stored):
        members = list(group)
        if found and len(found[-1]) + len(members) <= size:
            found[-1].extend(members)
        else:
            found.append(members)
    return found
