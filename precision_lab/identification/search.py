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
from functools import cached_property, partial
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
from precision_lab.identification.observed_roots import distance, least_squares_roots
from precision_lab.identification.queries import KernelAnswer, bits
from precision_lab.numbers import format_of, formats
from precision_lab.plan import EPS_PLACES, EXACT, Emulation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from precision_lab.arithmetic import Floats
    from precision_lab.plan import Plan

Variables: TypeAlias = "dict[str, NDArray[Any]]"

UNSEEN = 32
"""Distances of roots that differ by less than this part of an output's rounding say nothing."""
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
LATER_FORMATS = ("compute_format", "sum_format", "reciprocal_format")
OF_ROOT = ("eps_place", "eps_format", "inverse", "reciprocal_format")
"""Switches of the root."""


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

    @property
    def departures(self) -> int:
        """In how many switches the simplest of the plans differs from the textbook's."""
        return min(
            sum(value != DEFAULTS[switch] for switch, value in one.items()) for one in self.switches
        )

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
    calls
        The answers, as they were taken: for those of another norm or eps at times.
    plans
        Those plans, the one nearest to the textbook's first.
    share
        Of the kernel's outputs that equal theirs, bit for bit.
    """

    calls: Sequence[KernelAnswer]
    plans: tuple[Plan, ...]
    share: float

    @property
    def rank(self) -> tuple[float, int]:
        """The lowest is the best: most outputs, then the fewest departures from the textbook."""
        return -self.share, departures(self.plans[0])

    def simplest_plan(self) -> tuple[Plan, dict[str, tuple[str, ...]]]:
        """Of all plans with the same outputs the nearest to the textbook's, and what stays open.

        Returns
        -------
        tuple
            The plan; and the switches, one at a time, whose other values give the same outputs.
        """
        norm, best = self.calls[0].inputs.norm, self.plans[0]
        expected = _outputs(best, self.calls)

        def same(other: Plan | None) -> bool:
            return other is not None and all(
                bool((bits(Emulation(other, call.inputs).output()) == part).all())
                for call, part in zip(self.calls, expected, strict=True)
            )

        for switch, default in DEFAULTS.items():
            if switch != "output_format" and best.switches[switch] != default:
                simpler = plan(norm, **{**best.switches, switch: default})
                best = simpler if simpler is not None and same(simpler) else best
        alternatives: dict[str, list[str]] = {}
        for switch, value in steps_from(best):
            if same(plan(norm, **{**best.switches, switch: value})):
                alternatives.setdefault(switch, [best.switches[switch]]).append(value)
        return best, {switch: tuple(values) for switch, values in alternatives.items()}


def departures(plan: Plan) -> int:
    """In how many switches a plan differs from the textbook's."""
    return sum(value != DEFAULTS[switch] for switch, value in plan.switches.items())


class PlanSearch:
    """The plans nearest to a kernel's answers, taken to be of the norm that they are marked with.

    Parameters
    ----------
    calls
        The questions and the answers.
    """

    def __init__(self, calls: Sequence[KernelAnswer]) -> None:
        self.calls = calls
        self.norm = calls[0].inputs.norm
        self._biased = any(call.inputs.bias is not None for call in calls)
        places = ("after_gain", "before_gain") if self._biased else ("after_gain",)
        self._observed: dict[Form, Floats] = {
            form: least_squares_roots(calls, *form) for form in itertools.product(GAINS, places)
        }

    def matches(self, *, narrow: bool, output: str = "input") -> list[Match]:
        """The plans, best first; plans of equal outputs are found together.

        Parameters
        ----------
        narrow
            Whether outputs are narrower than float32: then orders of summation show in sums of a
            narrow format alone. Those are tried where no other plan gives all outputs.
        output
            The format of the outputs.
        """
        limit = self.smallest_distance + NEAR
        kept = [(function, form) for away, function, form in self._distances if away <= limit]
        ends = outputs(self.norm, narrow=narrow, bias=self._biased, format=output)
        found: dict[bytes, Match] = {}
        source = format_of(self.calls[0].inputs.x)
        precision = source.precision if output == "input" else formats[output].precision
        near = partial(self._nearest, kept, narrow=narrow, step=2.0**-precision / UNSEEN)
        self._try(found, near(statistics(self.norm, narrow=narrow)), ends)
        is_low = narrow and source.precision < formats["float32"].precision
        if is_low and not any(match.share == 1 for match in found.values()):
            self._try(found, near(statistics(self.norm, narrow=narrow, low=source.name)), ends)
        best = sorted(
            (
                Match(
                    self.calls, tuple(sorted(dict.fromkeys(one.plans), key=departures)), one.share
                )
                for one in found.values()
            ),
            key=lambda match: match.rank,
        )
        climbs = [self._climb(one) for one in best[:CLIMBED] if HOPE < best[0].share < 1]
        return sorted([*climbs, *best], key=lambda match: match.rank)

    def _try(
        self,
        found: dict[bytes, Match],
        near: Sequence[tuple[Stage, Form]],
        ends: Sequence[Switches],
    ) -> None:
        """Add what plans with these roots give, by their outputs."""
        for stage, form, likely in self._likely_ends(near, ends):
            for end in likely:
                plans = self._plans(stage.switches, form, end)
                if not plans:
                    continue
                answer = [
                    bits(Emulation(plans[0], call.inputs).finish(values))
                    for call, values in zip(self.calls, stage.values, strict=True)
                ]
                key = b"".join(part.tobytes() for part in answer)
                earlier = found.get(key) or Match(self.calls, (), self._share(answer))
                found[key] = Match(self.calls, earlier.plans + plans, earlier.share)

    @property
    def smallest_distance(self) -> float:
        """How far the nearest function of the norm is: about a rounding where it was computed."""
        return min(away for away, *_ in self._distances)

    @cached_property
    def _distances(self) -> list[tuple[float, Switches, Form]]:
        """How far each statistic, divisor, place of eps and form of the gain is, in float32."""
        return [
            (distance(stage.root(), observed), function, form)
            for function in functions(self.norm)
            for stage in self._stages([function])
            for form, observed in self._observed.items()
        ]

    def _climb(self, best: Match) -> Match:
        """The best that can be reached by changing one switch after another."""
        while best.share < 1:
            neighbours = []
            for switch, value in steps_from(best.plans[0]):
                other = plan(self.norm, **{**best.plans[0].switches, switch: value})
                if other is not None:
                    share = self._share(_outputs(other, self.calls))
                    neighbours.append(Match(self.calls, (other,), share))
            top = min(neighbours, key=lambda match: match.rank)
            if top.share <= best.share:
                break
            best = top
        return best

    def _plans(self, known: Iterable[Switches], form: Form, end: Switches) -> tuple[Plan, ...]:
        gain, bias = form
        if end["bias"] != bias:
            return ()
        plans = (plan(self.norm, **switches, **end, gain=gain) for switches in known)
        return tuple(one for one in plans if one is not None)

    def _share(self, answer: Sequence[NDArray[np.int64]]) -> float:
        pairs = zip(self.calls, answer, strict=True)
        equal = sum(int(np.count_nonzero(call.bits == part)) for call, part in pairs)
        return equal / max(sum(call.y.size for call in self.calls), 1)

    # The stages -----------------------------------------------------------------------------------

    def _stages(self, wanted: Iterable[Switches]) -> list[Stage]:
        """Statistic and roots of plans, those that are equal once."""
        statistics: dict[Any, Stage] = {}
        equal: dict[bytes, Stage] = {}
        for switches in wanted:
            candidate = plan(self.norm, **switches)
            if candidate is None:
                continue
            runs = [Emulation(candidate, call.inputs) for call in self.calls]
            # Equal operations in equal formats and one order share a statistic.
            key = tuple((run.program.statistic, _formats(run), run.order.name) for run in runs)
            if key not in statistics:
                values = [run.statistic() for run in runs]
                # Formats that later stages compute in keep equal numbers apart.
                parts = [" ".join(switches[name] for name in LATER_FORMATS).encode()]
                parts += [bytes(EPS_PLACES[switches["eps_place"]].in_sum)]
                parts += [_bytes(part, "ms", "m", "s") for part in values]
                statistics[key] = equal.setdefault(b" ".join(parts), Stage(values))
            stage = statistics[key]
            later = "/".join(switches[name] for name in OF_ROOT)
            one = f"{id(stage)} {later}".encode()
            if one not in equal:
                rooted = [run.root(part) for run, part in zip(runs, stage.values, strict=True)]
                parts = [str(switches["inverse"] == "divide").encode()]
                parts += [switches["compute_format"].encode()]
                parts += [part["r"].astype(np.float64).tobytes() for part in rooted]
                parts += [_bytes(part, "m", "s") for part in rooted]
                equal[one] = equal.setdefault(b" ".join(parts), Stage(rooted))
            equal[one].switches.append(switches)
        # Of a statistic alone no plan is known.
        return list({id(stage): stage for stage in equal.values() if stage.switches}.values())

    def _nearest(
        self,
        kept: Sequence[tuple[Switches, Form]],
        known: Iterable[Switches],
        *,
        narrow: bool,
        step: float,
    ) -> list[tuple[Stage, Form]]:
        """The roots that come nearest to those observed: of these functions and statistics.

        Of those within the same `step` the simplest come first.
        """
        names = ("statistic", "divisor", "eps_place")
        chosen = {tuple(function[name] for name in names) for function, _ in kept}
        pairs = itertools.product(known, roots(narrow=narrow))
        wanted = ({**statistic, **root} for statistic, root in pairs)
        stages = self._stages(one for one in wanted if tuple(one[name] for name in names) in chosen)
        forms = dict.fromkeys(form for _, form in kept)
        scored = [
            (distance(stage.root(), self._observed[form]) // step, stage.departures, place, form)
            for place, stage in enumerate(stages)
            for form in forms
        ]
        return [(stages[place], form) for *_, place, form in sorted(scored)[:NEAREST]]

    def _likely_ends(
        self, near: Sequence[tuple[Stage, Form]], ends: Sequence[Switches]
    ) -> list[tuple[Stage, Form, list[Switches]]]:
        """Those of the roots that give most outputs of a few rows, with the ways out that do.

        The first roots are near enough to the true one to tell which ways out are worth a try.
        """
        call = max(self.calls, key=lambda one: one.inputs.x.shape[-1])
        place = self.calls.index(call)
        rows = slice(None, None, max(1, len(call.y) // SAMPLE))
        inputs = call.inputs.take(rows)
        expected = call.bits[rows]

        def equal(stage: Stage, form: Form, end: Switches) -> int:
            plans = self._plans(stage.switches[:1], form, end)
            if not plans:
                return -1
            # A variable has one row for all, or a row each.
            values = {
                name: part if len(part) == 1 else part[rows]
                for name, part in stage.values[place].items()
            }
            output = bits(Emulation(plans[0], inputs).finish(values))
            return int(np.count_nonzero(output == expected))

        tried = [max(equal(stage, form, end) for stage, form in near[:FIRST]) for end in ends]
        worth = [end for count, end in zip(tried, ends, strict=True) if count >= WORTH * max(tried)]
        scored = [
            (-max((equal(stage, form, end) for end in worth), default=0), order)
            for order, (stage, form) in enumerate(near)
        ]
        return [(*near[order], worth) for _, order in sorted(scored)[:KEPT]]


def _outputs(plan: Plan, calls: Sequence[KernelAnswer]) -> list[NDArray[np.int64]]:
    return [bits(Emulation(plan, call.inputs).output()) for call in calls]


def _formats(run: Emulation) -> tuple[Any, ...]:
    return tuple(run.formats[op.kind] for op in run.program.statistic if op.kind != EXACT)


def _bytes(values: Variables, *names: str) -> bytes:
    return b"".join(values[name].tobytes() for name in names if name in values)
