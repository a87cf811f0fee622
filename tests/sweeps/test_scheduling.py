# SPDX-License-Identifier: Apache-2.0
"""Who measures which case: shards, processes that share a file, workers."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from precision_lab.exceptions import InputError
from precision_lab.plan.table import plans
from precision_lab.sweeps.execution import cases_of
from precision_lab.sweeps.grid import Sweep
from precision_lab.sweeps.results.reader import StoredRow
from precision_lab.sweeps.results.store import Store
from precision_lab.sweeps.scheduling import CHUNK, CaseQueue, chunks, groups, shard

if TYPE_CHECKING:
    from pathlib import Path

GRID = Sweep(
    plans=["late", "early"],
    formats=["bfloat16", "float16", "float8_e4m3fn"],
    hidden=[3, 4],
    seeds=range(8),
    scales=["none", "per_tensor"],
)
CASES = list(enumerate(cases_of(GRID)))


def row(position: int) -> StoredRow:
    """A finished case."""
    return StoredRow(
        position=position,
        key=CASES[position][1].key,
        case="{}",
        result="{}",
        versions="{}",
        seconds=0.0,
    )


def opened(path: Path | None) -> Store:
    """A file of the grid."""
    return Store(path, sweep="sweep", cases=len(CASES))


def places(chunk: list) -> list[int]:
    """Where the cases of a chunk stand."""
    return [position for position, _ in chunk]


class TestChunks:
    """What one worker gets at a time."""

    @pytest.mark.parametrize("jobs", [1, 2, 7, 1000])
    def test_every_case_once_in_order(self, jobs):
        """Chunks are a partition, and cases that share inputs are not torn apart."""
        cases = CASES
        found = chunks(cases, jobs)
        assert cases == [item for chunk in found for item in chunk]
        ends = [(chunk[-1][1], after[0][1]) for chunk, after in itertools.pairwise(found)]
        assert all(last.rounded_inputs != first.rounded_inputs for last, first in ends)
        assert len(found) >= min(4 * jobs, len(cases) // 2)

    def test_many_plans_on_one_input(self):
        """They are still shared out."""
        late = plans["late"]
        orders = [late.replace(order=f"blocked:{size}") for size in range(1, 101)]
        found = chunks(list(enumerate(Sweep(plans=orders).cases())), 2)
        assert [CHUNK, CHUNK, CHUNK, 4] == [len(chunk) for chunk in found]


class TestShards:
    """Parts of a sweep that are measured apart."""

    @pytest.mark.parametrize("of", [1, 2, 3, 16, 1000])
    def test_each_case_is_in_one(self, of):
        """In order, inputs that are shared kept together, and about the same number in each."""
        parts = [shard(CASES, number, of) for number in range(1, of + 1)]
        assert CASES == sorted(itertools.chain.from_iterable(parts), key=lambda item: item[0])
        assert len(groups(CASES)) == sum(len(groups(part)) for part in parts)
        sizes = [len(part) for part in parts]
        assert max(sizes) - min(sizes) <= 2

    def test_one_of_one_is_all(self):
        """Without shards nothing is left out."""
        assert CASES == shard(CASES, 1, 1)

    @pytest.mark.parametrize(("number", "of"), [(0, 3), (4, 3), (-1, 3), (1, 0), (1, -1)])
    def test_no_such_shard(self, number, of):
        """The first is 1, and none is past the last."""
        with pytest.raises(InputError, match="shard"):
            shard(CASES, number, of)


class TestDeal:
    """Processes that fill one file."""

    def test_alone(self):
        """Every unfinished case once, in order."""
        with opened(None) as store:
            store.add([row(0), row(7)])
            queue = CaseQueue(store, CASES, 2)
            dealt = places(itertools.chain.from_iterable(queue))
            assert [place for place in range(len(CASES)) if place not in (0, 7)] == dealt
            assert (2, 0) == (queue.finished_before, queue.finished_elsewhere)

    def test_two_share_the_work(self, tmp_path):
        """What one has taken the other does not begin, and each sees what the other finished."""
        with opened(tmp_path / "a.sqlite") as one, opened(tmp_path / "a.sqlite") as other:
            stores = (one, other)
            deals = [CaseQueue(store, CASES, 1) for store in stores]
            hands = [iter(queue) for queue in deals]
            measured: list[list[int]] = [[], []]
            for side in itertools.cycle((0, 1)):
                chunk = next(hands[side], None)
                if chunk is None:
                    break
                measured[side] += places(chunk)
                stores[side].add([row(position) for position, _ in chunk])
            assert list(range(len(CASES))) == sorted(measured[0] + measured[1])
            assert [] == list(hands[1 - side])
            assert [len(theirs) for theirs in measured[::-1]] == [
                queue.finished_elsewhere for queue in deals
            ]

    def test_what_another_has_in_hand_comes_last(self, tmp_path):
        """It may be dead: its cases are measured from the end on, and not for ever put off."""
        with opened(tmp_path / "a.sqlite") as one, opened(tmp_path / "a.sqlite") as other:
            taken = places(next(iter(CaseQueue(other, CASES, 1))))
            dealt = places(itertools.chain.from_iterable(CaseQueue(one, CASES, 1)))
            free = [place for place in range(len(CASES)) if place not in taken]
            assert free == dealt[: len(free)]
            assert taken[::-1] == dealt[len(free) :]

    def test_what_it_finished_meanwhile_is_not_done_again(self, tmp_path):
        """Also in the last moment."""
        with opened(tmp_path / "a.sqlite") as one, opened(tmp_path / "a.sqlite") as other:
            taken = places(next(iter(CaseQueue(other, CASES, 1))))
            queue = CaseQueue(one, CASES, 1)
            hand = iter(queue)
            first = places(next(hand))
            other.add([row(place) for place in taken])
            rest = places(itertools.chain.from_iterable(hand))
            assert [place for place in range(len(CASES)) if place not in taken] == first + rest
            assert len(taken) == queue.finished_elsewhere

    def test_claims_end_with_their_process(self, tmp_path):
        """One that was interrupted leaves nothing behind."""
        with opened(tmp_path / "a.sqlite") as other:
            next(iter(CaseQueue(other, CASES, 1)))
        with opened(tmp_path / "a.sqlite") as one:
            assert CASES == list(itertools.chain.from_iterable(CaseQueue(one, CASES, 1)))
