# SPDX-License-Identifier: Apache-2.0
"""Where in a row and in a batch wrong outputs lie."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from precision_lab.validation.calls import Call
from precision_lab.validation.common_causes import shows_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from precision_lab.arithmetic import Index, Mask
    from precision_lab.validation.elimination import Rejection
    from precision_lab.validation.rule_trials import Trial, Trials

LARGEST = 1 << 18
"""Elements of a further call at most."""

PERIODS = (2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 64, 128, 256)
BLOCKS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)

FILLED = 0.5
"""Of a region at least this share of places has wrong outputs."""

CERTAIN = 8.0
"""Bits: wrong places that lie anywhere all lie in some region of a kind once in 2^8 times."""


class Marks(NamedTuple):
    """The places of one call along one axis."""

    size: int
    wrong: Index
    """Those with a wrong output."""


class _Region(NamedTuple):
    """Places where all wrong outputs lie."""

    words: str
    inside: int
    """How many places it has, all calls together."""
    choices: int = 1
    """Of how many regions of its kind it is the one that fits: the places were seen first."""


class Places(NamedTuple):
    """Where all wrong outputs lie; "" where they lie in any column, or row."""

    columns: str = ""
    rows: str = ""

    def __str__(self) -> str:
        where = " and in ".join(filter(None, self))
        return f"wrong outputs lie only in {where}" if where else ""


def wrong_places(trials: Trials) -> Places:
    """Where wrong outputs lie in a row and in a batch.

    Ordinary rows are called again, so that no row differs in kind from the next: what is reported
    holds in these calls, of which each has other numbers, and no wrong column of the run itself
    lies elsewhere.

    Parameters
    ----------
    trials
        Makes further calls.
    """
    session = trials.session
    bad = [(session.calls[i], session.rejected[i]) for i in sorted(session.wrong)]
    again = [(trial.call, trial.rejection) for trial in _ordinary(trials, [c for c, _ in bad])]
    seen = [(call, rejection) for call, rejection in again if rejection is not None]
    if not seen:
        return Places()
    return Places(
        _phrase("columns", _marks(seen, 1), _marks(bad, 1)),
        _phrase("rows", _marks(seen, 0), []),
    )


def _ordinary(trials: Trials, bad: Sequence[Call]) -> Iterator[Trial]:
    """Further calls with ordinary rows, as wide and as many as those that fail, and others."""
    like = [one for one in bad if shows_faults(one)] or bad
    if not like:
        return
    first = min(like, key=lambda one: one.inputs.x.size)
    model = Call("normal", first.inputs, "random" if first.inputs.weight is not None else "none")
    widest, most = max(one.hidden for one in like), max(one.rows for one in like)
    width = min(widest, 8192)
    sizes = [
        (width, min(most, LARGEST // width)),
        (width * 3 // 4 + 1, 8),
        (first.hidden, first.rows),
        (min(one.hidden for one in like if one.rows == most), most + 9),
    ]
    for number, (hidden, rows) in enumerate(dict.fromkeys(sizes)):
        if hidden * rows <= LARGEST:
            # With the same numbers the same rows would be wrong, whatever their place.
            call = trials.change(model, hidden=hidden, rows=max(1, rows), redrawn=number)
            trial = trials.run(call)
            if trial is not None:
                yield trial


def _marks(calls: Sequence[tuple[Call, Rejection]], axis: int) -> list[Marks]:
    """Wrong places along an axis; a row whose outputs disagree is wrong as a whole."""
    marks = []
    for _, rejection in calls:
        some: Mask = np.asarray(rejection.wrong.any(1 - axis))
        if axis == 0:
            some = np.asarray(some | rejection.rows)
        if some.any():
            marks.append(Marks(len(some), np.nonzero(some)[0]))
    return marks


def _phrase(name: str, marks: Sequence[Marks], others: Sequence[Marks]) -> str:
    """The smallest region that holds all wrong places and is half full of them, in words."""
    total = sum(one.size for one in marks)
    found = sum(len(one.wrong) for one in marks)
    regions = []
    for region in _regions(name, marks, others):
        bits = _choices(total, found) - _choices(region.inside, found) - math.log2(region.choices)
        if found / region.inside >= FILLED and bits >= CERTAIN:
            regions.append(region)
    return min(regions, key=lambda one: one.inside).words if regions else ""


def _regions(name: str, marks: Sequence[Marks], others: Sequence[Marks]) -> Iterator[_Region]:
    """Regions that hold all wrong places, with the simplest words first."""
    if not marks:
        return
    every = [*marks, *others]
    one = name.removesuffix("s")
    start = min(int(mark.wrong[0]) for mark in every)
    end = max(int(mark.wrong[-1]) for mark in every)
    widest = max(mark.size for mark in every)
    if start == end:
        yield _Region(f"{one} {start}", len(marks), widest)
    last = max(mark.size - int(mark.wrong[0]) for mark in every)
    several = len({mark.size for mark in every}) > 1
    if several and last > 1:
        inside = sum(min(last, mark.size) for mark in marks)
        yield _Region(f"the last {last} {name}", inside, widest)
    if several and last == 1:
        yield _Region(f"the last {one}", len(marks))
    inside = sum(max(0, mark.size - start) for mark in marks)
    yield _Region(f"{name} from {start} on", inside, widest)
    inside = sum(min(end + 1, mark.size) for mark in marks)
    yield _Region(f"{name} up to {end}", inside, widest)
    for block in BLOCKS if several else ():
        if all(mark.wrong[0] >= (mark.size - 1) // block * block for mark in every):
            inside = sum(mark.size - (mark.size - 1) // block * block for mark in marks)
            yield _Region(f"the last block of {block} {name}", inside, len(BLOCKS))
    for period in PERIODS:
        rest = int(marks[0].wrong[0]) % period
        if all((mark.wrong % period == rest).all() for mark in every):
            inside = sum(-(-(mark.size - rest) // period) for mark in marks)
            few = ", ".join(str(rest + k * period) for k in range(3))
            yield _Region(f"every {_ordinal(period)} {one} ({few}, …)", inside, sum(PERIODS))


def _choices(places: int, chosen: int) -> float:
    """How many sets of so many places there are, in bits."""
    parts = (math.lgamma(n + 1) for n in (places, chosen, places - chosen))
    return (next(parts) - sum(parts)) / math.log(2)


def _ordinal(number: int) -> str:
    ending = {2: "nd", 3: "rd"}.get(number, "th")
    return f"{number}{ending}"
