# SPDX-License-Identifier: Apache-2.0
"""Rows of every kind, and whether the errors of a plan stay within its bounds."""

from __future__ import annotations

import numpy as np

from precision_lab.norm.ground_truth import truth
from precision_lab.numbers.table import formats
from precision_lab.plan.a_priori import bound
from precision_lab.plan.bounds.enclosed import Multiple, Squares, Total
from precision_lab.plan.bounds.error_model import SLACK, Approximation, Interval
from precision_lab.plan.emulation import emulate

ROWS = {
    "normal": lambda rng, n: rng.standard_normal((4, n)),
    "offset": lambda rng, n: 100 + rng.standard_normal((4, n)),
    "constant": lambda rng, n: np.repeat(rng.standard_normal((4, 1)), n, axis=1),
    "spread": lambda rng, n: rng.standard_normal((4, n)) * 2.0 ** rng.integers(-20, 8, (4, n)),
    "outlier": lambda rng, n: np.where(np.arange(n) == 0, 200.0, rng.standard_normal((4, n))),
    "tiny": lambda rng, n: rng.standard_normal((4, n)) * 2.0**-15,
    "subnormal": lambda rng, n: rng.standard_normal((4, n)) * 2.0**-130,
    "edge": lambda rng, n: np.cumsum(rng.standard_normal((4, n)), axis=-1) * 2.0**-127,
    "small squares": lambda rng, n: rng.standard_normal((4, n)) * 2.0**-63,
    "zero": lambda rng, n: np.zeros((4, n)),
}


def made(family: str, format: str, n: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Rows, weight and bias in a format."""
    rng, target = np.random.default_rng(seed), formats[format]
    x = target.cast(ROWS[family](rng, n), overflow="saturate")
    return x, *(target.cast(rng.standard_normal(n)) for _ in range(2))


def exceeding(inputs, eps, plan, norm, *, share=1.0):
    """How many elements' measured error is above `share` of the bound."""
    x, g, b = inputs
    offset = 1.0 if plan.gain == "one_plus" and g is not None else 0.0
    exact = truth(norm, x, g, b, eps=eps, weight_offset=offset)
    y = emulate(x, g, b, eps=eps, plan=plan, norm=norm).astype(np.float64)
    limit = bound(x, g, b, eps=eps, plan=plan, norm=norm)
    assert y.shape == limit.shape
    assert (limit >= 0).all()
    with np.errstate(invalid="ignore"):
        error = np.abs(y - exact.value) - exact.radius
    finite = np.isfinite(limit)
    return np.count_nonzero(finite & ~(error <= share * limit))


def assert_enclosed(trace, derived):
    """Every traced variable lies where the analysis puts it, if that is anywhere."""
    held = {step.name: step.values.astype(np.float64) for step in trace}
    places = [(op.step, op.out) for op in derived.program.operations if op.step]
    places += [("mean_x", op.mean) for op in derived.program.operations if op.mean]
    for step, variable in places:
        value, known = held[step], derived.known[variable]
        if isinstance(known, Squares | Total | Multiple):
            # What is known of these shows in their sum, mean or difference.
            continue
        if isinstance(known, Interval):
            outside = ~((known.low <= value) & (value <= known.high))
            # The root of what may be negative may be a NaN.
            bounded = np.isfinite(known.low) & np.isfinite(known.high)
            assert not (outside & bounded).any(), step
            continue
        near, error = known if isinstance(known, Approximation) else known.approximation
        far = np.abs(value - near) > error + 2 * SLACK * np.abs(near)
        assert not (far & np.isfinite(error)).any(), step
