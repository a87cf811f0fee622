# SPDX-License-Identifier: Apache-2.0
"""Holding rounded values to decision points: what is policy, what is fault, and of which kind.

Policy is what a standard leaves open or a format has no code for, answered the same way everywhere:
what stands past the largest value, for infinities, for NaN where there is none, for zero and
negative numbers where there are none, the sign of a zero that has none, ties at precision 1.
Everything else that differs is a fault, and so is a policy that is not kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from precision_lab.numbers.conformance.decision_points import KINDS, expected, same_values
from precision_lab.numbers.format import OVERFLOW_POLICIES
from precision_lab.numbers.table import formats

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from precision_lab.numbers.conformance.decision_points import Points
    from precision_lab.numbers.format import Format

    Mask = NDArray[np.bool_]
    Values = NDArray[np.float64]

BEHAVIOUR_SHARE = 0.75
"""Share of the points where a behaviour departs from the right one that must bear it out."""
POLICY_SHARE = 0.95
"""Share of a question's points that must have the same answer for it to be a policy; the rest
are its faults."""

INTERMEDIATES = ("float32", "float16", "bfloat16")
"""Formats through which a library may round on its way, to nearest-even."""

MODE_NAMES = {
    "nearest_even": "ties to even",
    "nearest_away": "ties away from zero",
    "nearest_zero": "ties toward zero",
    "nearest_odd": "ties to odd",
    "toward_zero": "truncation",
    "up": "rounding up",
    "down": "rounding down",
    "to_odd": "rounding to odd",
}


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Wrong answers of one kind: how many, what explains them, and the worst point.

    `kind` is one of `KINDS`; `value`, `got` and `right` are the input, the answer, the right one.
    """

    diagnosis: str
    count: int
    kind: str
    value: float
    got: float
    right: float


class PointsJudgement(NamedTuple):
    """A judgement of the points of one format.

    The policies that differ from this package's, what is right under them, and what is wrong.
    """

    policies: tuple[str, ...]
    right: Values
    wrong: Mask


def judge(where: Points, got: Values, *, mode: str) -> PointsJudgement:
    """Tell policy from fault in what a function gave for the points, in one rounding mode."""
    right = expected(where, mode=mode)
    wrong = ~same_values(got, right)
    policies: list[str] = []
    for question in _questions(where, mode):
        if not wrong[question.points].any() or wrong[question.points].mean() <= 1 - POLICY_SHARE:
            continue
        for answer, values in question.answers(got).items():
            # Signs of zeros and of the one answer to a free question are no matter.
            agrees = (got == values) | (np.isnan(got) & np.isnan(values))
            agrees |= question.free & (abs(got) == abs(values))
            if agrees[question.points].mean() >= POLICY_SHARE:
                policies.append(f"{question.text}: {answer}")
                right = np.where(question.points, np.where(agrees, got, values), right)
                break
    return PointsJudgement(tuple(policies), right, ~same_values(got, right))


@dataclass(frozen=True)
class Question:
    """Something left open: where it arises, and the answers that are policy if kept throughout."""

    text: str
    points: Mask
    choices: dict[str, Values]
    free: bool = False

    def answers(self, got: Values) -> dict[str, Values]:
        """The answers; a free question takes any one magnitude, the first that was given."""
        if not self.free:
            return self.choices
        first = abs(float(got[self.points][0]))
        return {"NaN" if np.isnan(first) else f"{first:g}": np.full(got.shape, first)}


def _questions(where: Points, mode: str) -> Iterator[Question]:
    """What this format leaves open."""
    row, x = where.format, where.values.astype(np.float64)
    right = expected(where, mode=mode)
    saturated = expected(where, mode=mode, overflow="saturate")
    nan = np.full(x.shape, np.nan)
    over = ~same_values(right, saturated) & (abs(x) > row.largest)
    ties = where.kind == KINDS.index("midpoint")
    ties &= (row.precision == 1) & mode.startswith("nearest")
    beyond = {
        "infinity": np.copysign(np.inf, x),
        "NaN": nan,
        "the largest value": np.copysign(row.largest, x),
    }
    yield Question("past the largest value", over & np.isfinite(x) & ~ties, beyond)
    yield Question("a tie at the overflow edge", over & ties, beyond)
    yield Question("infinity", over & np.isinf(x), beyond)
    if not row.nan:
        yield Question("NaN", np.isnan(x), {}, free=True)
    if not row.zero:
        yield Question("zero", x == 0, {}, free=True)
        lowest = np.full(x.shape, row.smallest)
        yield Question(
            "below the smallest value",
            (x > 0) & (x < row.smallest),
            {
                "the smallest value": lowest,
                "NaN": nan,
                "zero up to half of it": np.where(where.rest > 0.5, lowest, 0.0),
                "zero below half of it": np.where(where.rest >= 0.5, lowest, 0.0),
                "NaN up to half of it": np.where(where.rest > 0.5, lowest, nan),
            },
        )
    if not row.signed:
        # Each point's positive twin stands half the list away.
        twin = np.roll(right, len(where) // 2)
        answers = {
            "NaN": nan,
            "zero": np.zeros(x.shape),
            "the smallest value": np.full(x.shape, row.smallest),
            "the magnitude's": twin,
        }
        yield Question("negative numbers", (x < 0) & np.isfinite(x), answers)
        answers |= {"the largest value": np.full(x.shape, row.largest)}
        yield Question("minus infinity", x == -np.inf, answers)
    if not row.negative_zero and row.zero:
        kept = np.signbit(x) & (right == 0)
        yield Question("the sign of zero", kept, {"kept": np.full(x.shape, -0.0)})
    if ties.any():
        ties &= (where.lower > 0) & (where.upper <= row.largest) & (row.signed | (x > 0))
        code = np.frexp(np.where(ties, where.lower, 1.0))[1] - 1 - row.emin
        even = np.where(code % 2 == 0, where.lower, where.upper)
        choices = {"the even code": even, "toward zero": where.lower}
        yield Question(
            "ties", ties, {name: np.copysign(values, x) for name, values in choices.items()}
        )


def diagnose(
    where: Points, got: Values, wrong: Mask, *, right: Values, mode: str
) -> tuple[Fault, ...]:
    """Sort the wrong answers to points by what explains them, the largest group first."""
    if not wrong.any():
        return ()
    # What policy has settled says nothing of how the rest went wrong.
    open_points = same_values(right, expected(where, mode=mode)) | (mode == "stochastic")
    behaviours = []
    for name, values in _behaviours(where, right, mode):
        departs = open_points & ~same_values(values, right)
        matches = departs & same_values(got, values)
        if matches.sum() >= max(1, BEHAVIOUR_SHARE * departs.sum()):
            behaviours.append((name, matches, int(departs.sum() - matches.sum())))
    faults, left = [], wrong.copy()
    while left.any() and behaviours:
        # Of two that explain as much, the one that asks for no other wrong answers.
        name, matches, _ = max(behaviours, key=lambda one: (int((one[1] & left).sum()), -one[2]))
        if not (matches & left).any():
            break
        faults.append(_fault(name, where, got, right, matches & left))
        left &= ~matches
    for name, matches in _remainder(where, got, right):
        if (matches & left).any():
            faults.append(_fault(name, where, got, right, matches & left))
            left &= ~matches
    return tuple(sorted(faults, key=lambda fault: -fault.count))


def _behaviours(where: Points, right: Values, mode: str) -> Iterator[tuple[str, Values]]:
    """Known ways to go wrong, and what each would give."""
    row, x = where.format, where.values.astype(np.float64)
    # Through its own format a function rounds once, to nearest: there the mode is at fault.
    ways = [name for name in INTERMEDIATES if name != row.name and mode != "stochastic"]
    through = {f"double rounding through {name}": formats[name].round(x) for name in ways}
    for overflow in OVERFLOW_POLICIES:
        for text, values in through.items():
            yield text, row.round(values, mode=mode, overflow=overflow)
        for other, name in MODE_NAMES.items():
            if other != mode:
                yield name, expected(where, mode=other, overflow=overflow)
        if mode != "nearest_even":
            for text, values in through.items():
                name = f"{MODE_NAMES['nearest_even']}, and {text}"
                yield name, row.round(values, overflow=overflow)
    zero = np.copysign(0.0, x)
    below = np.isfinite(x) & (x != 0)
    yield "subnormals flushed", np.where(below & (abs(right) < row.tiny), zero, right)
    yield "subnormals flushed", np.where(below & (abs(x) < row.tiny), zero, right)
    yield "the sign of zero lost", np.where(right == 0, 0.0, right)


def _remainder(where: Points, got: Values, right: Values) -> Iterator[tuple[str, Mask]]:
    """What is left unexplained, by what it looks like."""
    row, x = where.format, where.values.astype(np.float64)
    yield "NaN taken for a number", np.isnan(x)
    yield "not a value of the format", np.isfinite(got) & ~in_format(row, got)
    over = ~np.isfinite(right) & (abs(x) > row.largest) & (row.signed | (x > 0))
    yield "no one answer past the largest value", over
    yield "no one answer where the format has no value", np.isnan(right)
    yield "infinity or NaN within the range", ~np.isfinite(got)
    yield "wrong sign", same_values(got, -right)
    magnitude = abs(got)
    neighbour = (magnitude == where.lower) | (magnitude == where.upper)
    yield "wrong neighbour", neighbour & (np.signbit(got) == np.signbit(right))
    yield "neither neighbour", np.ones(x.shape, bool)


def in_format(row: Format, values: Values) -> Mask:
    """Where a format has these finite values."""
    with np.errstate(invalid="ignore"):
        exponent = np.maximum(np.frexp(values)[1] - 1, row.emin)
        steps = np.ldexp(values, row.precision - 1 - exponent)
        inside = (steps == np.trunc(steps)) & (abs(values) <= row.largest)
    inside &= row.signed | ~np.signbit(values)
    inside &= row.zero | (values != 0)
    return np.asarray(inside & (row.negative_zero | (values != 0) | ~np.signbit(values)))


def _fault(name: str, where: Points, got: Values, right: Values, mask: Mask) -> Fault:
    at = np.flatnonzero(mask)
    with np.errstate(all="ignore"):
        distance = abs(got - right)[at] / (where.upper - where.lower)[at]
    worst = at[np.argmax(np.where(np.isnan(distance), np.inf, distance))]
    return Fault(
        diagnosis=name, count=len(at), kind=KINDS[where.kind[worst]],
        value=float(where.values[worst]), got=float(got[worst]), right=float(right[worst]),
    )  # fmt: skip
