# SPDX-License-Identifier: Apache-2.0
"""What a run measures beside right and wrong: signed errors, and what it would have seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from precision_lab.validation.soundness import Allowance, Exact, Judgement, last_cast
from precision_lab.validation.verdict import Power, Spread

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from precision_lab.arithmetic import Floats
    from precision_lab.kernels.running import Claim, Outcome
    from precision_lab.norm import Inputs
    from precision_lab.validation.calls import Call
    from precision_lab.validation.soundness import Hypothesis

MEASURED = 2048
"""Outputs of a call that are measured at most: rows from the first on, and no less than one."""

ROWS = 4
"""Rows of a call whose detectable errors are derived."""


def signed_errors(inputs: Inputs, y: Floats, claim: Claim) -> tuple[Floats, Floats]:
    """Signed errors in ulp of a call's finite outputs, and the sign of the exact values."""
    count = max(1, MEASURED // y.shape[-1])
    inputs, y = inputs.take(slice(count)), y[:count]
    target, exact = claim.output_format, Exact(inputs)
    with np.errstate(all="ignore"):
        t = exact.output[0]
        known = np.isfinite(y) & exact.finite & (np.abs(t) <= target.largest)
        known &= Allowance(exact).judged
        return target.distance(y[known], t[known]), np.sign(t[known])


def spreads(errors: Iterable[tuple[str, Floats]]) -> tuple[Spread, ...]:
    """Signed errors by probe.

    Parameters
    ----------
    errors
        A probe's name and errors, call by call.
    """
    pools: dict[str, list[Floats]] = {}
    for probe, some in errors:
        if some.size:
            pools.setdefault(probe, []).append(some)
    return tuple(
        Spread(probe, len(pool), float(pool.min()), float(pool.max()), float(pool.mean()))
        for probe, pool in ((name, np.concatenate(several)) for name, several in pools.items())
    )


def powers(
    calls: Sequence[Call], outcomes: Sequence[Outcome], claim: Claim, assumed: Hypothesis
) -> tuple[Power, ...]:
    """What a run would have seen under the hypothesis that it ended with, by size.

    A relative error of r larger than the bound and what the outputs of a row leave open moves some
    output of that row out of what is sound; of a size's rows the sharpest counts.
    """
    sizes = {call.hidden for call in calls if call.probe in ("normal", "exact")}
    roots: dict[int, float] = {}
    elements: dict[int, float] = {}
    for call, outcome in zip(calls, outcomes, strict=True):
        if (
            outcome.y is None
            or call.hidden not in sizes
            or call.probe not in ("normal", "exact", "sparse", "tail")
        ):
            continue
        few = call.inputs.take(slice(ROWS))
        judgement = Judgement(Exact(few), outcome.y[:ROWS], last_cast(claim))
        power = judgement.power(assumed)
        n = call.hidden
        if np.isfinite(power).any():
            roots[n] = min(roots.get(n, np.inf), float(np.nanmin(power)))
        if call.probe == "normal":
            elements[n] = _element_power(judgement, assumed, claim)
    return tuple(
        Power(n, roots.get(n, np.nan), elements.get(n, np.nan)) for n in sorted({*roots, *elements})
    )


def _element_power(judgement: Judgement, assumed: Hypothesis, claim: Claim) -> float:
    """The relative error that always moves an element out of what is sound, in the median."""
    low, high = judgement.expected(assumed)
    with np.errstate(all="ignore"):
        size = np.abs(judgement.exact.output[0])
        moved = (high - low + claim.output_format.ulp(judgement.y)) / size
    known = np.isfinite(moved) & (size > 0)
    return float(np.median(moved[known])) if known.any() else float("nan")
