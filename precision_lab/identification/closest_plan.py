# SPDX-License-Identifier: Apache-2.0
"""Which plan a kernel follows: the one whose outputs are the kernel's, bit for bit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from precision_lab.exceptions import InputError
from precision_lab.identification.diagnosis import changes, eps_faults, faults
from precision_lab.identification.effective import effective_eps
from precision_lab.identification.queries import EPS, SIZES, KernelAnswer, ask_all, bits
from precision_lab.identification.search import Match, search, simplest_plan, smallest_distance
from precision_lab.norm import norms
from precision_lab.numbers import format_of, formats
from precision_lab.plan import emulate, plans

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from precision_lab.norm import Norm
    from precision_lab.numbers import Format
    from precision_lab.plan import Plan

__all__ = ["LIKELY", "Identified", "KernelAnswer", "answer", "identify", "rivals"]

SHOWN = 5
"""Plans that are told, the nearest first."""

ELEMENTS = 2560
"""Of a call with rows of a size that was asked for: rows are as many as that gives."""

CLOSE = 0.9
"""Below this share of equal outputs the kernel may compute something else, and that is tried."""

LIKELY = 0.5
"""Below this share the nearest plan is chance, and neither it nor its faults are told."""

MARGIN = 0.01
"""Plans whose shares are no farther apart are as near as each other."""

LIKE = 1.5
"""Functions that are so many times as far as the nearest one may be the kernel's all the same."""


@dataclass(frozen=True)
class Identified:
    """A plan that comes near a kernel.

    Parameters
    ----------
    plan
        The plan.
    norm
        The norm that it computes: the other one, where the kernel computes that.
    share
        Of the kernel's outputs that equal the plan's, bit for bit: 1 where it is the kernel's plan.
    known
        Names of known implementations with the same outputs.
    undecided
        Switches that the outputs cannot tell apart: all values that give the same outputs. It and
        `known` are looked for in the best plan alone.
    faults
        What the plan does that no sound computation does, a phrase each; none where no plan gives
        half of the outputs, and what the nearest does says nothing of the kernel.
    compared
        How many outputs.
    """

    plan: Plan
    norm: Norm
    share: float
    known: tuple[str, ...] = ()
    undecided: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    compared: int = 0

    @property
    def switches(self) -> dict[str, str]:
        """Every switch of the plan and its value."""
        return self.plan.switches

    @property
    def name(self) -> str:
        """The first known implementation, or what differs from the textbook."""
        return self.known[0] if self.known else " ".join(["late", *changes(self.plan)])

    @property
    def exact(self) -> bool:
        """Whether every output equals the plan's."""
        return self.share == 1


def identify(
    kernel: Callable[..., Any],
    *,
    norm: Norm | str = "rms",
    format: Format | str = "bfloat16",
    weight_format: Format | str | None = None,
    output_format: Format | str | None = None,
    weight_offset: float = 0.0,
    hidden: Sequence[int] | None = None,
    eps: Sequence[float] = EPS,
    seed: int = 0,
) -> list[Identified]:
    """The plans nearest to a kernel, best first.

    Parameters
    ----------
    kernel
        kernel(x, weight, bias, eps) -> y, as for `validate`. A LayerNorm that refuses a bias is
        asked without.
    norm
        What it is to compute.
    format, weight_format, output_format
        Of x; of weight and bias; of y: by default the same.
    weight_offset
        What it adds to the weight.
    hidden
        Elements of a row, for a kernel that takes few sizes; by default 3 and 40.
    eps
        The values given.
    seed
        Of the inputs.

    Returns
    -------
    list of Identified
        The first has share 1 if some plan of the grid gives all of the kernel's outputs, bit for
        bit; a kernel that fits no plan has a best share well below it.

    Raises
    ------
    InputError
        For an unknown norm or format.

    Examples
    --------
    >>> from precision_lab import emulate
    >>> def kernel(x, weight, bias, eps):
    ...     return emulate(x, weight, eps=eps, plan="hf-llama")
    >>> best = identify(kernel)[0]
    >>> best.share, best.switches["cast"], "hf-llama" in best.known
    (1.0, 'early', True)
    """
    row, own = norms.find(norm), formats.find(format)
    weight = own if weight_format is None else formats.find(weight_format)
    sizes = SIZES if hidden is None else {n: max(8, ELEMENTS // n) for n in hidden}
    calls = ask_all(
        kernel, row, own, weight, sizes=sizes, eps=eps, weight_offset=weight_offset, seed=seed
    )
    return answer(
        calls,
        weight_offset=weight_offset,
        output_format=own if output_format is None else formats.find(output_format),
    )


def answer(
    calls: Sequence[KernelAnswer],
    *,
    weight_offset: float = 0.0,
    output_format: Format | None = None,
) -> list[Identified]:
    """The same from calls that were made already."""
    ask_all = calls[0].inputs.norm
    own = format_of(calls[0].inputs.x)
    output = own if output_format is None else output_format
    other = norms["rms" if ask_all.centred else "layer"]
    variants = [calls, [call.of(norm=other) for call in calls]]
    if (eps := effective_eps(calls, weight_offset)) is not None:
        variants.append([call.of(eps=one) for call, one in zip(calls, eps, strict=True)])
    distances = [smallest_distance(moved, moved[0].inputs.norm) for moved in variants]
    # What the kernel was asked for stands first, where it is as near as any.
    near = LIKE * min(distances)
    order = sorted(
        range(len(variants)), key=lambda i: (0, i) if distances[i] <= near else (1, distances[i])
    )
    found: list[_Candidate] = []
    for i in order:
        if not found or (found[0].share < CLOSE and distances[i] <= near):
            found += _found(variants[i], variants[i][0].inputs.norm, own, output)
            found.sort(key=lambda one: -one.share)
    if CLOSE <= found[0].share < 1 and (rows := _rows(calls, ask_all)):
        # Plans of libraries may have orders and switches together that the grid leaves out.
        found.insert(0, _Candidate(calls, Match(rows, 1.0)))
    told = [one.told(calls, own.name, weight_offset, whole=not i) for i, one in enumerate(found)]
    if found[0].share < LIKELY:
        told = [replace(one, faults=()) for one in told]
    return told[:SHOWN]


def rivals(found: Sequence[Identified]) -> list[Identified]:
    """Plans about as near as the best, which say other things of the kernel's faults; or none.

    Parameters
    ----------
    found
        What `identify` gave: none of it gives all outputs.
    """
    if not found or found[0].exact or found[0].share < LIKELY:
        return []
    best = found[0]
    told = {best.faults: best}
    for one in found[1:]:
        if best.share - one.share <= MARGIN:
            told.setdefault(one.faults, one)
    return list(told.values()) if len(told) > 1 else []


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A find, with the calls as they were taken for it: with another norm or eps at times."""

    calls: Sequence[KernelAnswer]
    found: Match

    @property
    def share(self) -> float:
        return self.found.share

    def told(
        self, calls: Sequence[KernelAnswer], format: str, offset: float, *, whole: bool
    ) -> Identified:
        """The find with what is known of it, all where it is `whole`; `calls` as they were made."""
        norm, ask_all = self.calls[0].inputs.norm, calls[0].inputs.norm
        plan = self.found.plans[0]
        undecided: dict[str, tuple[str, ...]] = {}
        if whole:
            plan, undecided = simplest_plan(self.calls, norm, self.found)
        told = faults(plan, norm, format=format, weight_offset=offset, ask_all=ask_all)
        told += eps_faults(
            [call.inputs.eps for call in calls], [call.inputs.eps for call in self.calls]
        )
        return Identified(
            plan=plan,
            norm=norm,
            share=self.share,
            known=() if told or not whole else _known(self.calls, norm, self.share),
            undecided=undecided,
            faults=tuple(told),
            compared=sum(call.y.size for call in calls),
        )


def _found(
    calls: Sequence[KernelAnswer], norm: Norm, own: Format, output: Format
) -> list[_Candidate]:
    narrow = output.precision < formats["float32"].precision
    name = "input" if output == own else output.name
    found = search(calls, norm, narrow=narrow, output=name)[:SHOWN]
    return [_Candidate(calls, one) for one in found]


def _known(calls: Sequence[KernelAnswer], norm: Norm, share: float) -> tuple[str, ...]:
    """The rows of the catalogue with all of the outputs."""
    return () if share < 1 else tuple(plan.name for plan in _rows(calls, norm))


def _rows(calls: Sequence[KernelAnswer], norm: Norm) -> tuple[Plan, ...]:
    """The same as plans."""
    found = []
    for plan in plans.values():
        try:
            plan.norm_for(norm)
        except InputError:
            continue
        if all(_same(call, plan, norm) for call in calls):
            found.append(plan)
    return tuple(found)


def _same(call: KernelAnswer, plan: Plan, norm: Norm) -> bool:
    inputs = call.inputs
    y = emulate(*inputs.arguments(), eps=inputs.eps, plan=plan, norm=norm)
    return bool((bits(y) == call.bits).all())
