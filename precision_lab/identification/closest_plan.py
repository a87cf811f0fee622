# SPDX-License-Identifier: Apache-2.0
"""Which plan a kernel follows: the one whose outputs are the kernel's, bit for bit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from precision_lab.exceptions import InputError
from precision_lab.identification.diagnosis import changes, eps_faults, faults
from precision_lab.identification.effective import effective_eps
from precision_lab.identification.queries import (
    EPS,
    SIZES,
    KernelAnswer,
    ask_all,
    bits,
    rows_by_size,
)
from precision_lab.identification.search import Match, PlanSearch
from precision_lab.kernels import Kernel
from precision_lab.kernels.running import open_kernel
from precision_lab.norm import norms
from precision_lab.numbers import format_of, formats
from precision_lab.plan import computes, emulate, plans

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from precision_lab.norm import Norm
    from precision_lab.numbers import Format
    from precision_lab.plan import Plan

SHOWN = 5
"""Plans that are told, the nearest first."""

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
        For an unknown norm or format, and what is no kernel or takes other arrays than NumPy's.

    Examples
    --------
    >>> from precision_lab import emulate
    >>> def kernel(x, weight, bias, eps):
    ...     return emulate(x, weight, eps=eps, plan="hf-llama")
    >>> best = identify(kernel)[0]
    >>> best.share, best.switches["cast"], "hf-llama" in best.known
    (1.0, 'early', True)
    """
    row, x = norms.find(norm), formats.find(format)
    weight = x if weight_format is None else formats.find(weight_format)
    sizes = SIZES if hidden is None else rows_by_size(hidden)
    with open_kernel(kernel) as tool:
        function = tool.function if isinstance(tool, Kernel) and tool.framework == "numpy" else None
    if function is None:
        raise InputError(f"{tool.name} takes no NumPy arrays: use precision-lab identify")
    calls = ask_all(
        function, row, x, weight, sizes=sizes, eps=eps, weight_offset=weight_offset, seed=seed
    )
    return answer(
        calls,
        weight_offset=weight_offset,
        output_format=x if output_format is None else formats.find(output_format),
    )


def answer(
    calls: Sequence[KernelAnswer],
    *,
    weight_offset: float = 0.0,
    output_format: Format | None = None,
) -> list[Identified]:
    """The same from calls that were made already."""
    norm = calls[0].inputs.norm
    format = format_of(calls[0].inputs.x)
    output = format if output_format is None else output_format
    other = norms["rms" if norm.centred else "layer"]
    variants = [calls, [call.of(norm=other) for call in calls]]
    if (eps := effective_eps(calls, weight_offset)) is not None:
        variants.append([call.of(eps=one) for call, one in zip(calls, eps, strict=True)])
    searches = [PlanSearch(variant) for variant in variants]
    distances = [search.smallest_distance for search in searches]
    # What the kernel was asked for stands first, where it is as near as any.
    near = LIKE * min(distances)
    order = sorted(
        range(len(variants)), key=lambda i: (0, i) if distances[i] <= near else (1, distances[i])
    )
    narrow = output.precision < formats["float32"].precision
    name = "input" if output == format else output.name
    found: list[Match] = []
    for i in order:
        if not found or (found[0].share < CLOSE and distances[i] <= near):
            found += searches[i].matches(narrow=narrow, output=name)[:SHOWN]
            found.sort(key=lambda one: -one.share)
    if CLOSE <= found[0].share < 1 and (rows := _matching_rows(calls, norm)):
        # Plans of libraries may have orders and switches together that the grid leaves out.
        found.insert(0, Match(calls, rows, 1.0))
    identified = [
        _identified(match, calls, format.name, weight_offset, in_full=not place)
        for place, match in enumerate(found)
    ]
    if found[0].share < LIKELY:
        identified = [replace(one, faults=()) for one in identified]
    return identified[:SHOWN]


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
    by_faults = {best.faults: best}
    for one in found[1:]:
        if best.share - one.share <= MARGIN:
            by_faults.setdefault(one.faults, one)
    return list(by_faults.values()) if len(by_faults) > 1 else []


def _identified(
    match: Match, calls: Sequence[KernelAnswer], format: str, offset: float, *, in_full: bool
) -> Identified:
    """A match with its faults, and in full with what else is known; `calls` as they were made."""
    norm, plan = match.calls[0].inputs.norm, match.plans[0]
    undecided: dict[str, tuple[str, ...]] = {}
    if in_full:
        plan, undecided = match.simplest_plan()
    wrong = faults(
        plan, norm, format=format, weight_offset=offset, wanted=calls[0].inputs.norm
    ) + eps_faults([call.inputs.eps for call in calls], [call.inputs.eps for call in match.calls])
    is_known = in_full and not wrong and match.share == 1
    return Identified(
        plan=plan,
        norm=norm,
        share=match.share,
        known=tuple(row.name for row in _matching_rows(match.calls, norm)) if is_known else (),
        undecided=undecided,
        faults=tuple(wrong),
        compared=sum(call.y.size for call in calls),
    )


def _matching_rows(calls: Sequence[KernelAnswer], norm: Norm) -> tuple[Plan, ...]:
    """The rows of the catalogue with all of the outputs."""
    return tuple(
        plan
        for plan in plans.values()
        if computes(plan, norm.name) and all(_gives(call, plan, norm) for call in calls)
    )


def _gives(call: KernelAnswer, plan: Plan, norm: Norm) -> bool:
    inputs = call.inputs
    y = emulate(*inputs.arguments(), eps=inputs.eps, plan=plan, norm=norm)
    return bool((bits(y) == call.bits).all())
