# SPDX-License-Identifier: Apache-2.0
"""What makes a sweep another one."""

from __future__ import annotations

import pytest

from precision_lab import Sweep
from precision_lab import canonical_json as canonical
from precision_lab.sweeps.results.differences import what_differs

KERNEL = {
    "name": "mine", "source": "k.py:f", "framework": "numpy", "device": "cpu", "version": "",
    "digest": "a",
}  # fmt: skip
OTHER = {**KERNEL, "name": "other"}
MODULES = {**KERNEL, "source": "k:f"}


def stored(**axes):
    """A grid as a results file holds it."""
    return canonical.decode(canonical.encode([Sweep(**axes).record]))


def kernels(*rows):
    """A grid of these kernels, as a results file holds it."""
    return [{"hidden": [4], "kernels": list(rows)}]


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        (stored(), stored(), ""),
        (stored(hidden=5), stored(hidden=[6, 7]), "hidden is 6, 7, was 5"),
        (stored(plans="late"), stored(plans=["late", "early"]), "plans is late, early, was late"),
        (stored(exact="none"), stored(exact=["none", "sum"]), "exact is none, sum, was none"),
        (stored(seeds=0), stored(seeds=range(90)), "its seeds are others"),
        (stored(inputs="normal"), stored(inputs="uniform"), "inputs is uniform, was normal"),
        (stored() * 2, stored(), "it has 1 grids, and had 2"),
        (
            stored(hidden=1, rows=1, seeds=1, eps=1.0), stored(hidden=2, rows=2, seeds=2, eps=2.0),
            "eps is 2.0, was 1.0; hidden is 2, was 1; rows is 2, was 1; 1 more differ",
        ),
        (
            kernels(KERNEL), kernels({**KERNEL, "digest": "b"}),
            "the kernel mine was edited since, or a module beside it",
        ),
        (
            kernels(MODULES), kernels({**MODULES, "digest": ""}),
            "the kernel mine was edited since, or its package",
        ),
        (
            kernels(KERNEL), kernels({**KERNEL, "framework": "torch", "version": "2.6"}),
            "the kernel mine is another (framework is torch, was numpy, version is 2.6, was none)",
        ),
        (kernels(KERNEL), kernels(), "the kernel mine is gone"),
        (
            kernels(KERNEL, OTHER), kernels(*({**row, "digest": "b"} for row in (KERNEL, OTHER))),
            "the kernels mine, other were edited since, or a module beside it",
        ),
        (kernels(), kernels(KERNEL), "the kernel mine is new"),
        (None, stored(), ""),
        ([3], [{}], ""),
    ],
)  # fmt: skip
def test_what_is_told(before, now, told):
    """Kernels by what became of them, axes by their values where they are short."""
    assert told == what_differs(before, now)


def test_a_plan_with_other_switches():
    """Where the names are the same, so much is said."""
    before = stored(plans="late")
    now = [{**before[0], "plans": [{**before[0]["plans"][0], "order": "kahan"}]}]
    assert "its plans are set otherwise" == what_differs(before, now)
