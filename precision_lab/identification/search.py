# SPDX-License-Identifier: Apache-2.0
"""The search for the plan behind outputs, each stage of each plan computed once.

The outputs of a row say what its reciprocal root was, to a fraction of their own rounding. So the
search first settles, in float32, which function was computed; then which roots come near; and only
those are carried through to outputs and compared bit by bit. Plans that hold the same statistic
share it, and those that come to the same roots share those.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from precision_lab.identification.candidates import (
    DEFAULTS,
    GAINS,
    Form,
    Switches,
    functions,
    outputs,
    plan,
    roots,
    statistics,
    steps_from,
)
from precision_lab.identification.queries import KernelAnswer, bits
from precision_lab.plan import EPS_PLACES, EXACT, Emulation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from precision_lab.norm import Norm
    from precision_lab.numbers import Format
    from precision_lab.plan import Plan

    Floats = NDArray[np.float64]

Variables: TypeAlias = "dict[str, NDArray[Any]]"

NEAREST = 160
"""Roots, with a form of the gain each, that are tried on a few rows."""
KEPT = 12
"""And those of them that are tried on all."""
SAMPLE = 16
"""The few rows."""
CLIMBED = 2
"""Plans from which the search goes on switch by switch, where none gives all outputs."""
HOPE = 0.5
"""Below this share no plan of the grid is the kernel's, nor are its neighbours."""
FIRST, WORTH = 6, 0.9
"""Roots that say which ways out are worth a try: those that give so much of what the best gives."""
NEAR = 1.0 / 256
"""Functions farther than this from the nearest one, in the mean over the rows, are given up."""


@dataclass(eq=False)
class Stage:
    """What several plans have in common after a stage.

    Parameters
    ----------
    values
        One a call: the variables of the plans' programs.
    switches
        Of each of the plans, up to this stage.
    """

    values: list[Variables]
    switches: list[Switches] = field(default_factory=list)

    def root(self) -> Floats:
        """What multiplies x, of all rows of all calls."""
        found = []
        with np.errstate(all="ignore"):
            for values in self.values:
                wide = values["r"].astype(np.float64)
                wide = 1 / wide if self.switches[0]["inverse"] == "divide" else wide
                rows = len(values["x"])
                found.append(np.broadcast_to(wide * values["s"], (rows, 1))[:, 0])
        return np.concatenate(found)


@dataclass(frozen=True, eq=False)
class Match:
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


def search(
    calls: Sequence[KernelAnswer], norm: Norm, *, narrow: bool, output: str = "input"
) -> list[Match]:
    """The plans nearest to the answers, best first; plans of equal outputs are found together.

    Parameters
    ----------
    calls
        The questions and a kernel's answers.
    norm
        What it is taken to compute.
    narrow
        Whether its outputs are narrower than float32: then orders of summation do not show.
    output
        The format of its outputs.
    """
    observed = _observed_roots(calls)
    distances = _function_distances(calls, norm, observed)
    least = min(distance for distance, *_ in distances)
    kept = [(function, form) for distance, function, form in distances if distance <= least + NEAR]
    bias = any(call.inputs.bias is not None for call in calls)
    ends = outputs(norm, narrow=narrow, bias=bias, format=output)
    states = _states(calls, norm, kept, narrow=narrow)
    found: dict[bytes, Match] = {}
    near = _nearest(states, kept, observed)
    for state, form, chosen in _likely_ends(calls, norm, near, ends):
        for end in chosen:
            plans = _plans(norm, state, form, end)
            if not plans:
                continue
            answer = [
                bits(Emulation(plans[0], call.inputs).finish(values))
                for call, values in zip(calls, state.values, strict=True)
            ]
            key = b"".join(part.tobytes() for part in answer)
            share = found[key].share if key in found else _share(calls, answer)
            earlier = found[key].plans if key in found else ()
            found[key] = Match(earlier + plans, share)
    ranked = [
        Match(tuple(sorted(dict.fromkeys(one.plans), key=departures)), one.share)
        for one in found.values()
    ]
    best = sorted(ranked, key=_rank)
    climbs = [_climb(calls, norm, one) for one in best[:CLIMBED] if HOPE < best[0].share < 1]
    return sorted([*climbs, *best], key=_rank)


def _rank(one: Match) -> tuple[float, int]:
    return -one.share, departures(one.plans[0])


def _climb(calls: Sequence[KernelAnswer], norm: Norm, found: Match) -> Match:
    """The best that can be reached by changing one switch after another."""
    best = found
    while best.share < 1:
        tried = []
        for switch, value in steps_from(best.plans[0]):
            made = plan(norm, **{**best.plans[0].switches, switch: value})
            if made is not None:
                answer = [bits(Emulation(made, call.inputs).output()) for call in calls]
                tried.append(Match((made,), _share(calls, answer)))
        top = min(tried, key=_rank)
        if top.share <= best.share:
            break
        best = top
    return best


def simplest_plan(
    calls: Sequence[KernelAnswer], norm: Norm, found: Match
) -> tuple[Plan, dict[str, tuple[str, ...]]]:
    """Of all plans with the same outputs the nearest to the textbook's, and what stays open.

    Returns
    -------
    tuple
        The plan; and the switches, one at a time, whose other values give the same outputs.
    """
    best = found.plans[0]
    wanted = [bits(Emulation(best, call.inputs).output()) for call in calls]

    def same(made: Plan | None) -> bool:
        return made is not None and all(
            bool((bits(Emulation(made, call.inputs).output()) == part).all())
            for call, part in zip(calls, wanted, strict=True)
        )

    for switch, default in DEFAULTS.items():
        if switch != "output_format" and best.switches[switch] != default:
            made = plan(norm, **{**best.switches, switch: default})
            best = made if made is not None and same(made) else best
    alternatives: dict[str, list[str]] = {}
    for switch, value in steps_from(best):
        if same(plan(norm, **{**best.switches, switch: value})):
            alternatives.setdefault(switch, [best.switches[switch]]).append(value)
    return best, {switch: tuple(values) for switch, values in alternatives.items()}


def departures(plan: Plan) -> int:
    """In how many switches a plan differs from the textbook's."""
    return sum(value != DEFAULTS[switch] for switch, value in plan.switches.items())


def _plans(norm: Norm, state: Stage, form: Form, end: Switches) -> tuple[Plan, ...]:
    gain, bias = form
    if end["bias"] != bias:
        return ()
    made = (plan(norm, **switches, **end, gain=gain) for switches in state.switches)
    return tuple(one for one in made if one is not None)


# What outputs say of the root ---------------------------------------------------------------------


def _observed_roots(calls: Sequence[KernelAnswer]) -> dict[Form, Floats]:
    bias = any(call.inputs.bias is not None for call in calls)
    places = ("after_gain", "before_gain") if bias else ("after_gain",)
    return {form: least_squares_roots(calls, *form) for form in itertools.product(GAINS, places)}


def least_squares_roots(calls: Sequence[KernelAnswer], gain: str, place: str) -> Floats:
    """The root of each row by least squares over its outputs; NaN where it left the range."""
    found = []
    with np.errstate(all="ignore"):
        for call in calls:
            inputs = call.inputs
            z = inputs.x.astype(np.float64)
            if inputs.norm.centred:
                z = z - np.mean(z, -1, keepdims=True)
            g: Floats = np.ones(1)
            if inputs.weight is not None and gain != "ignored":
                g = inputs.weight.astype(np.float64) + (gain == "one_plus")
            y = call.y
            if inputs.bias is not None:
                bias = inputs.bias.astype(np.float64)
                y = y - (bias if place == "after_gain" else bias * g)
            z = z * g
            found.append(np.sum(y * z, -1) / np.sum(z * z, -1))
    return np.concatenate(found)


def _distance(root: Floats, observed: Floats) -> float:
    """How far roots are from those seen, relative, in the mean over the rows; at most 1 each."""
    with np.errstate(all="ignore"):
        distances = np.minimum(
            np.abs(root - observed) / np.maximum(np.abs(root), np.abs(observed)), 1.0
        )
    lost = ~np.isfinite(root) | (root == 0), ~np.isfinite(observed) | (observed == 0)
    distances = np.where(lost[0] | lost[1], 1.0 * (lost[0] != lost[1]), distances)
    return float(np.mean(distances))


# The stages ---------------------------------------------------------------------------------------


def _function_distances(
    calls: Sequence[KernelAnswer], norm: Norm, observed: dict[Form, Floats]
) -> list[tuple[float, Switches, Form]]:
    """How far each statistic, divisor, place of eps and form of the gain is, in float32."""
    distances: list[tuple[float, Switches, Form]] = []
    for function in functions(norm):
        for state in _stages(calls, norm, [function]):
            distances += [
                (_distance(state.root(), observed[form]), function, form) for form in observed
            ]
    return distances


def smallest_distance(calls: Sequence[KernelAnswer], norm: Norm) -> float:
    """How far the outputs are from the nearest function of a norm: about a rounding if it is it."""
    return min(
        distance for distance, *_ in _function_distances(calls, norm, _observed_roots(calls))
    )


def _states(
    calls: Sequence[KernelAnswer],
    norm: Norm,
    kept: Sequence[tuple[Switches, Form]],
    *,
    narrow: bool,
) -> list[Stage]:
    """All roots of plans that compute one of the functions."""
    chosen = {(f["statistic"], f["divisor"], f["eps_place"]) for f, _ in kept}
    made = [
        {**statistic, **root}
        for statistic, root in itertools.product(
            statistics(norm, narrow=narrow), roots(narrow=narrow)
        )
        if (statistic["statistic"], statistic["divisor"], root["eps_place"]) in chosen
    ]
    return _stages(calls, norm, made)


def _stages(calls: Sequence[KernelAnswer], norm: Norm, wanted: Iterable[Switches]) -> list[Stage]:
    """Statistic and roots of plans, those that are equal held once."""
    statistics: dict[Any, Stage] = {}
    alternatives: dict[bytes, Stage] = {}
    known: dict[bytes, Stage] = {}
    for switches in wanted:
        made = plan(norm, **switches)
        if made is None:
            continue
        runs = [Emulation(made, call.inputs) for call in calls]
        # Equal operations in equal formats share a statistic.
        key = tuple((run.program.statistic, _formats(run)) for run in runs)
        if key not in statistics:
            values = [run.statistic() for run in runs]
            # Formats that later stages compute in keep equal numbers apart.
            parts = [" ".join(switches[name] for name in LATER_FORMATS).encode()]
            parts += [bytes(EPS_PLACES[switches["eps_place"]].in_sum)]
            parts += [_bytes(part, "ms", "m", "s") for part in values]
            statistics[key] = alternatives.setdefault(b" ".join(parts), Stage(values))
        state = statistics[key]
        later = "/".join(switches[name] for name in ("eps_place", "eps_format", "inverse"))
        one = f"{id(state)} {later}".encode()
        if one not in known:
            rooted = [run.root(part) for run, part in zip(runs, state.values, strict=True)]
            parts = [str(switches["inverse"] == "divide").encode()]
            parts += [switches["compute_format"].encode()]
            parts += [part["r"].astype(np.float64).tobytes() for part in rooted]
            parts += [_bytes(part, "m", "s") for part in rooted]
            same = b" ".join(parts)
            known[one] = known.setdefault(same, Stage(rooted))
        known[one].switches.append(switches)
    return list({id(state): state for state in known.values()}.values())


LATER_FORMATS = ("compute_format", "sum_format", "reciprocal_format")


def _formats(run: Emulation) -> tuple[Format, ...]:
    return tuple(run.formats[op.kind] for op in run.program.statistic if op.kind != EXACT)


def _bytes(values: Variables, *names: str) -> bytes:
    return b"".join(values[name].tobytes() for name in names if name in values)


def _nearest(
    states: Sequence[Stage], kept: Sequence[tuple[Switches, Form]], observed: dict[Form, Floats]
) -> list[tuple[Stage, Form]]:
    """The roots that come nearest to those seen, each with a form of the gain."""
    forms = dict.fromkeys(form for _, form in kept)
    scored = [
        (_distance(state.root(), observed[form]), place, form)
        for place, state in enumerate(states)
        for form in forms
    ]
    return [(states[place], form) for _, place, form in sorted(scored)[:NEAREST]]


def _likely_ends(
    calls: Sequence[KernelAnswer],
    norm: Norm,
    near: Sequence[tuple[Stage, Form]],
    ends: Sequence[Switches],
) -> list[tuple[Stage, Form, list[Switches]]]:
    """Those of the roots that give most outputs of a few rows, with the ways out that do.

    The first roots are near enough to the true one to tell which ways out are worth a try.
    """
    call = max(calls, key=lambda one: one.inputs.x.shape[-1])
    place = calls.index(call)
    rows = slice(None, None, max(1, len(call.y) // SAMPLE))
    inputs = call.inputs.take(rows)
    ask_all = call.bits[rows]

    def equal(state: Stage, form: Form, end: Switches) -> int:
        plans = _plans(norm, Stage([], state.switches[:1]), form, end)
        if not plans:
            return -1
        values = {name: _rows_of(part, rows) for name, part in state.values[place].items()}
        return int(np.count_nonzero(bits(Emulation(plans[0], inputs).finish(values)) == ask_all))

    tried = [max(equal(state, form, end) for state, form in near[:FIRST]) for end in ends]
    worth = [end for count, end in zip(tried, ends, strict=True) if count >= WORTH * max(tried)]
    scored = [
        (-max((equal(state, form, end) for end in worth), default=0), order)
        for order, (state, form) in enumerate(near)
    ]
    return [(*near[order], worth) for _, order in sorted(scored)[:KEPT]]


def _rows_of(part: NDArray[Any], rows: slice) -> NDArray[Any]:
    """Some rows of what has one row for all, or a row each."""
    return part if len(part) == 1 else part[rows]


def _share(calls: Sequence[KernelAnswer], answer: Sequence[NDArray[np.int64]]) -> float:
    equal = sum(
        int(np.count_nonzero(call.bits == part)) for call, part in zip(calls, answer, strict=True)
    )
    return equal / max(sum(call.y.size for call in calls), 1)
