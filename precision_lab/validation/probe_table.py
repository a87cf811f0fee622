# SPDX-License-Identifier: Apache-2.0
"""Probes: inputs that show faults, one row each.

A probe is a rule that makes rows of x for a shape, and the gains that go with them. Values are
float64 here, before they are rounded to the input's format; the same probe gives the same bits on
every machine.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.table import Table
from precision_lab.validation.hidden_sizes import EVERY, LONG
from precision_lab.validation.probe_rows import (
    ProbeRequest,
    blocks,
    constants,
    exact,
    large,
    mixed,
    near_constant,
    one_special,
    sparse,
    special,
    specials,
    steps,
    tail,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from precision_lab.arithmetic import Floats


COVERED = 2**17
"""Elements of a call with rows of every kind at most, or one row."""


@dataclass(frozen=True)
class Probe:
    """One probe.

    Parameters
    ----------
    name
        The name that finds it.
    exposes
        Which faults it is there for.
    make
        The rule: [rows, hidden] float64, NaN and infinities where they are meant.
    hidden
        The sizes that it is tried at by default.
    rows
        How many rows, where the rule leaves it open.
    gains
        Rows of `inputs.gains`, used in turn from size to size.
    each
        Whether every gain is tried at every size.
    everywhere
        Whether it is tried at `every_size` too, with every eps at the widths of models.
    briefly
        Whether it is tried there with one eps at every size.
    mixes
        Whether its rows are among those of every kind.
    centred
        For norms that subtract a mean only.
    eps
        The values that it is tried with where none are asked for; () for the usual ones.
    """

    name: str
    exposes: str
    make: Callable[[ProbeRequest], Floats]
    hidden: tuple[int, ...] = (8, 33, 769)
    rows: int = 4
    gains: tuple[str, ...] = ("random", "wide")
    each: bool = False
    everywhere: bool = False
    briefly: bool = False
    mixes: bool = True
    centred: bool = False
    eps: tuple[float, ...] = ()


def _kinds(request: ProbeRequest) -> Floats:
    """Rows of every kind, one after another, and again up to as many as are asked for.

    Of long rows there are fewer: those of some kinds, other ones for another seed.
    """
    kinds = [
        probe for probe in probes.values()
        if probe.mixes and (request.centred or not probe.centred)
    ]  # fmt: skip
    first = request.seed % len(kinds)
    fitting = max(1, min(len(kinds), COVERED // request.hidden))
    kinds = (kinds[first:] + kinds[:first])[:fitting]
    times = max(1, -(-request.rows // len(kinds)))
    # Of each kind the same number of rows, taken from all that it makes.
    made = [probe.make(dataclasses.replace(request, rows=times)) for probe in kinds]
    few = [rows[(request.seed + np.arange(times)) % len(rows)] for rows in made if len(rows)]
    return np.stack(few, axis=1).reshape(-1, request.hidden)


probes: Table[Probe] = Table(
    "probe",
    [
        Probe(
            "normal", "any fault; the cast order, from one rounding of the gain or two",
            lambda a: a.family("normal"), hidden=(5, *EVERY),
        ),
        Probe(
            "exact", "every rounding but the last: no order of summation rounds these",
            exact, hidden=(*EVERY, LONG), rows=12, gains=("random", "none"),
        ),
        Probe(
            "sparse", "elements left out at the ends and at the edges of blocks",
            sparse, hidden=(*EVERY, LONG), gains=("powers-of-two", "random"), mixes=False,
        ),
        Probe(
            "block", "elements left out or counted twice, anywhere",
            blocks, hidden=(127, 577, 769, 1024, 2048, 4096, 5120, LONG), gains=("random",),
            mixes=False,
        ),
        Probe(
            "tail", "elements left out at the end, where a running mean hides them",
            tail, hidden=(*EVERY[1:], LONG), rows=48, gains=("random", "wide"), centred=True,
            mixes=False,
        ),
        Probe(
            "gain", "gain ignored, multiplied too early or in a narrow format",
            lambda a: a.family("normal"), hidden=(3, 64, 769, 4096), each=True, mixes=False,
            gains=(
                "none", "ones", "random", "wide", "negative", "tiny", "powers-of-two",
                "many-sizes", "zero",
            ),
        ),
        *(
            Probe(
                f"near-eps-{ratio:g}", "eps missing, misplaced, rounded or of another size",
                lambda a, ratio=ratio: a.family("near-zero", ratio=ratio),  # type: ignore[misc]
                hidden=(3, 64, 769), gains=("random", "none"),
            )
            for ratio in (0.01, 0.1, 1.0, 10.0)
        ),
        Probe(
            "large-eps", "an eps that is held below another, rounded, or not the one that is given",
            lambda a: a.family("near-zero", ratio=1.0), hidden=(3, 64, 769),
            gains=("random", "none"), mixes=False, eps=(1e-3, 0.1),
        ),
        Probe("large", "squares or sums that overflow in a narrow format", large),
        Probe(
            "near-largest", "squares, sums or outputs that overflow",
            lambda a: a.family("near-largest"), gains=("ones", "random"),
        ),
        Probe(
            "subnormal", "inputs flushed to zero", lambda a: a.family("subnormal"),
            gains=("ones", "wide"),
        ),
        Probe(
            "outlier", "a statistic that one large value spoils",
            lambda a: a.family("one-outlier", magnitude=min(1000.0, a.format.largest / 2)),
        ),
        Probe("constant", "a variance that cancels, or is negative", constants, rows=8),
        Probe("zero", "a division by zero, an eps that is missing", lambda a: a.family("zero")),
        Probe("mixed", "rows that touch each other", mixed, rows=12, mixes=False),
        *(
            Probe(
                f"offset-{offset:g}", "a mean subtracted or not, a variance that cancels",
                lambda a, offset=offset: a.family(  # type: ignore[misc]
                    "mean-offset", offset=min(offset, a.format.largest / 4)
                ),
                hidden=(3, 64, 769),
            )
            for offset in (3.0, 30.0, 1000.0)
        ),
        Probe("steps", "a one-pass variance: the mean is far larger than the spread", steps,
              hidden=(3, 8, 64, 769)),
        Probe("near-constant", "a one-pass variance: it is negative", near_constant, rows=8,
              hidden=(8, 64, 769, 4096)),
        Probe("nan", "a NaN that is lost, or spreads to other rows", special(math.nan),
              mixes=False),
        Probe("infinity", "an infinity that spreads to other rows", special(math.inf),
              mixes=False),
        Probe("minus-infinity", "an infinity that spreads to other rows", special(-math.inf),
              hidden=(7,), mixes=False),
        *(
            Probe(
                f"rows-{rows}", "another path for few or many rows, or for none",
                lambda a: a.family("normal"), hidden=(hidden,), rows=rows, mixes=False,
            )
            for rows, hidden in (
                (0, 64), (1, 64), (3, 64), (40, 64), (257, 64), (260, 4096), (600, 1024),
                (2049, 16), (4097, 8), (65537, 2),
            )
        ),
        Probe(
            "overflow", "outputs past the format's largest value, held there or at another's",
            lambda a: a.family("normal"), hidden=(3, 64, 769, 1024, 4096), gains=("huge",),
            mixes=False,
        ),
        Probe(
            "every-kind", "any fault of some sizes, eps or gains alone",
            _kinds, hidden=(), rows=1, gains=("mixed", "none", "random"), everywhere=True,
            mixes=False,
        ),
        Probe(
            "many-rows", "any fault of some rows alone, or of many",
            _kinds, hidden=(16, 65, 128, 300), rows=1100, gains=("mixed", "none"), mixes=False,
        ),
        Probe(
            "special-rows", "a NaN or an infinity that is lost, or spreads, at some sizes or rows",
            specials, hidden=(64, 256, 512, 1024, 4096, 8192), rows=64, gains=("random", "none"),
            mixes=False,
        ),
        Probe(
            "special-widths", "a NaN or an infinity that is lost at some sizes alone",
            one_special, hidden=(), rows=4, gains=("random", "none"), everywhere=True,
            briefly=True, mixes=False,
        ),
        Probe(
            "many-special-rows", "a NaN or an infinity that is lost, or spreads, among many rows",
            specials, hidden=(16, 33, 64), rows=1100, gains=("random", "none"), mixes=False,
        ),
    ],
)  # fmt: skip
