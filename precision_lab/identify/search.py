# SPDX-License-Identifier: Apache-2.0
"""The search for the plan behind outputs, each stage of each plan computed once.

The outputs of a row say what its reciprocal root was, to a fraction of their own rounding. So the
search first settles, in float32, which function was computed; then which roots come near; and only
those are carried through to outputs and compared bit by bit. Plans that hold the same statistic
share it, and those that come to the same roots share those.
"""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.emulate import Moments, Run
from precision_lab.identify.calls import Call, bits
from precision_lab.identify.grid import (
    DEFAULTS,
    GAINS,
    Switches,
    functions,
    outputs,
    plan,
    roots,
    statistics,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from precision_lab.norms import Norm
    from precision_lab.plan import Plan

    Floats = NDArray[np.float64]

NEAREST = 160
"""Roots, with a form of the gain each, that are tried on a few rows."""
KEPT = 16
"""And those of them that are tried on all."""
SAMPLE = 16
"""The few rows."""
NEAR = 1.0 / 256
"""Functions farther than this from the nearest one, in the mean over the rows, are given up."""


@dataclass(eq=False)
class Shared:
    """What several plans have in common after a stage.

    Parameters
    ----------
    moments, factors
        One a call: the statistic and the reciprocal roots.
    switches
        Of each of the plans, up to this stage.
    """

    moments: list[Moments]
    factors: list[NDArray[Any]] = field(default_factory=list)
    switches: list[Switches] = field(default_factory=list)

    def root(self) -> Floats:
        """What multiplies x, of all rows of all calls."""
        found = []
        with np.errstate(all="ignore"):
            for moments, factor in zip(self.moments, self.factors, strict=True):
                wide = factor.astype(np.float64)
                wide = 1 / wide if self.switches[0]["inverse"] == "divide" else wide
                rows = len(moments.x)
                found.append(np.broadcast_to(wide * moments.scale, (rows, 1))[:, 0])
        return np.concatenate(found)


@dataclass(frozen=True, eq=False)
class Found:
    """Plans that give the same outputs.

    Parameters
    ----------
    plans
        Those plans, the one nearest to the textbook's first.
    share
        Of the kernel's outputs that equal theirs, bit for bit.
    """

    plans: tuple[Plan, ...]
    share: float


def search(calls: Sequence[Call], norm: Norm, *, narrow: bool) -> list[Found]:
    """The plans nearest to the answers, best first; plans of equal outputs are found together.

    Parameters
    ----------
    calls
        The questions and a kernel's answers.
    norm
        What it is taken to compute.
    narrow
        Whether its outputs are narrower than float32: then orders of summation do not show.
    """
    seen = {gain: _seen(calls, gain) for gain in GAINS}
    kept = _functions(calls, norm, seen)
    bias = any(call.inputs.bias is not None for call in calls)
    ends = outputs(norm, narrow=narrow, bias=bias)
    states = _states(calls, norm, kept, narrow=narrow)
    found: dict[bytes, Found] = {}
    for state, gain in _likely(calls, norm, _nearest(states, kept, seen), ends):
        for end in ends:
            plans = _plans(norm, state, gain, end)
            if not plans:
                continue
            answer = [
                bits(Run(plans[0], call.inputs).finished(moments, factor))
                for call, moments, factor in zip(calls, state.moments, state.factors, strict=True)
            ]
            key = b"".join(part.tobytes() for part in answer)
            share = found[key].share if key in found else _share(calls, answer)
            earlier = found[key].plans if key in found else ()
            found[key] = Found(earlier + plans, share)
    ranked = [
        Found(tuple(sorted(dict.fromkeys(one.plans), key=departures)), one.share)
        for one in found.values()
    ]
    return sorted(ranked, key=lambda one: (-one.share, departures(one.plans[0])))


def departures(plan: Plan) -> int:
    """In how many switches a plan differs from the textbook's."""
    return sum(value != DEFAULTS[switch] for switch, value in plan.switches.items())


def _plans(norm: Norm, state: Shared, gain: str, end: Switches) -> tuple[Plan, ...]:
    made = (plan(norm, **switches, **end, gain=gain) for switches in state.switches)
    return tuple(one for one in made if one is not None)


# What outputs say of the root ---------------------------------------------------------------------


def _seen(calls: Sequence[Call], gain: str) -> Floats:
    """The root of each row by least squares over its outputs; NaN where it left the range."""
    found = []
    with np.errstate(all="ignore"):
        for call in calls:
            inputs = call.inputs
            z = inputs.x.astype(np.float64)
            if inputs.norm.centred:
                z = z - np.mean(z, -1, keepdims=True)
            if inputs.weight is not None and gain != "ignored":
                z = z * (inputs.weight.astype(np.float64) + (gain == "one_plus"))
            y = call.y if inputs.bias is None else call.y - inputs.bias.astype(np.float64)
            found.append(np.sum(y * z, -1) / np.sum(z * z, -1))
    return np.concatenate(found)


def _apart(root: Floats, seen: Floats) -> float:
    """How far roots are from those seen, relative, in the mean over the rows; at most 1 each."""
    with np.errstate(all="ignore"):
        apart = np.minimum(np.abs(root - seen) / np.maximum(np.abs(root), np.abs(seen)), 1.0)
    lost = ~np.isfinite(root) | (root == 0), ~np.isfinite(seen) | (seen == 0)
    apart = np.where(lost[0] | lost[1], 1.0 * (lost[0] != lost[1]), apart)
    return float(np.mean(apart))


# The stages ---------------------------------------------------------------------------------------


def _functions(
    calls: Sequence[Call], norm: Norm, seen: dict[str, Floats]
) -> list[tuple[Switches, str]]:
    """Statistic, divisor, place of eps and form of the gain: those that come near in float32."""
    apart: list[tuple[float, Switches, str]] = []
    for function in functions(norm):
        for state in _state(calls, norm, [function]):
            apart += [(_apart(state.root(), seen[gain]), function, gain) for gain in GAINS]
    least = min(distance for distance, *_ in apart)
    return [(function, gain) for distance, function, gain in apart if distance <= least + NEAR]


def _states(
    calls: Sequence[Call],
    norm: Norm,
    kept: Sequence[tuple[Switches, str]],
    *,
    narrow: bool,
) -> list[Shared]:
    """All roots of plans that compute one of the functions."""
    chosen = {(f["statistic"], f["divisor"], f["eps_place"]) for f, _ in kept}
    made = [
        {**statistic, **root}
        for statistic, root in itertools.product(
            statistics(norm, narrow=narrow), roots(narrow=narrow)
        )
        if (statistic["statistic"], statistic["divisor"], root["eps_place"]) in chosen
    ]
    return _state(calls, norm, made)


def _state(calls: Sequence[Call], norm: Norm, wanted: Iterable[Switches]) -> list[Shared]:
    """Statistic and roots of plans, those that are equal held once."""
    statistics: dict[tuple[str, ...], Shared] = {}
    held: dict[bytes, Shared] = {}
    known: dict[bytes, Shared] = {}
    for switches in wanted:
        made = plan(norm, **switches)
        if made is None:
            continue
        early = switches["eps_place"] == "sum"
        key = (*(switches[name] for name in EARLY_SWITCHES), early * switches["eps_format"])
        if key not in statistics:
            moments = [Run(made, call.inputs).moments() for call in calls]
            # Formats that later stages compute in keep equal numbers apart.
            parts = [" ".join(switches[name] for name in LATER_FORMATS).encode(), bytes(early)]
            parts += [b"".join(_bytes(part) for part in moments)]
            statistics[key] = held.setdefault(b" ".join(parts), Shared(moments))
        state = statistics[key]
        later = "/".join(switches[name] for name in ("eps_place", "eps_format", "inverse"))
        one = f"{id(state)} {later}".encode()
        if one not in known:
            factors = [
                Run(made, call.inputs).factor(moments)
                for call, moments in zip(calls, state.moments, strict=True)
            ]
            parts = [str(switches["inverse"] == "divide").encode()]
            parts += [switches["compute_format"].encode()]
            parts += [factor.astype(np.float64).tobytes() for factor in factors]
            parts += [part.mean.tobytes() + part.scale.tobytes() for part in state.moments]
            same = b" ".join(parts)
            known[one] = known.setdefault(same, Shared(state.moments, factors))
        known[one].switches.append(switches)
    return list({id(state): state for state in known.values()}.values())


EARLY_SWITCHES = (
    "compute_format", "square_format", "sum_format", "statistic", "divisor", "order", "prescale",
)  # fmt: skip
LATER_FORMATS = ("compute_format", "sum_format", "reciprocal_format")


def _bytes(moments: Moments) -> bytes:
    return moments.squares.tobytes() + moments.mean.tobytes() + moments.scale.tobytes()


def _nearest(
    states: Sequence[Shared], kept: Sequence[tuple[Switches, str]], seen: dict[str, Floats]
) -> list[tuple[Shared, str]]:
    """The roots that come nearest to those seen, each with a form of the gain."""
    gains = [gain for gain in GAINS if any(gain == other for _, other in kept)]
    scored = [
        (_apart(state.root(), seen[gain]), place, gain)
        for place, state in enumerate(states)
        for gain in gains
    ]
    return [(states[place], gain) for _, place, gain in sorted(scored)[:NEAREST]]


def _likely(
    calls: Sequence[Call],
    norm: Norm,
    near: Sequence[tuple[Shared, str]],
    ends: Sequence[Switches],
) -> list[tuple[Shared, str]]:
    """Those of the roots that give most outputs of a few rows, by some way out."""
    call = max(calls, key=lambda one: one.inputs.x.shape[-1])
    place = calls.index(call)
    rows = slice(None, None, max(1, len(call.y) // SAMPLE))
    inputs = dataclasses.replace(call.inputs, x=call.inputs.x[rows])
    scored = []
    for order, (state, gain) in enumerate(near):
        moments = Moments(*(_some(part, rows) for part in state.moments[place]))
        factor = (
            state.factors[place][rows] if len(state.factors[place]) > 1 else state.factors[place]
        )
        equal = 0
        for end in ends:
            plans = _plans(norm, Shared([], [], state.switches[:1]), gain, end)
            if plans:
                answer = bits(Run(plans[0], inputs).finished(moments, factor))
                equal = max(equal, int(np.count_nonzero(answer == call.bits[rows])))
        scored.append((-equal, order))
    return [near[order] for _, order in sorted(scored)[:KEPT]]


def _some(part: NDArray[Any] | None, rows: slice) -> Any:
    """Some rows of what has one row for all, or a row each."""
    return part if part is None or len(part) == 1 else part[rows]


def _share(calls: Sequence[Call], answer: Sequence[NDArray[np.int64]]) -> float:
    equal = sum(
        int(np.count_nonzero(call.bits == part)) for call, part in zip(calls, answer, strict=True)
    )
    return equal / max(sum(call.y.size for call in calls), 1)
