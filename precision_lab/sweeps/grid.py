# SPDX-License-Identifier: Apache-2.0
"""A sweep as its user writes it: a grid, which lists its cases."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from precision_lab.exceptions import InputError, unknown
from precision_lab.inputs import MOST, biases, gains
from precision_lab.kernels import Kernel, find_kernel
from precision_lab.norm import check_eps, norms
from precision_lab.numbers import Format, formats
from precision_lab.plan import STEPS, Plan, can_run, computes, plans, steps_of
from precision_lab.sweeps.case import OWN, Case
from precision_lab.sweeps.kernel_limits import fields_taken, refusals
from precision_lab.sweeps.sources import Source, family

# How inputs are brought into a format: as they are, or scaled by a power of two first.
SCALES = ("none", "per_tensor")
# Formats of more bits have the range to do without a scale, and none is applied to them.
SCALED_BITS = 8

# What a case says of its inputs, and whether gain and bias are given.
Tensors: TypeAlias = tuple[dict[str, Any], tuple[bool, bool]]


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """A grid of cases: every combination of what its axes list.

    An axis takes one value or several. A combination that makes no sense is left out: a plan on a
    norm that is not its own, a scale for a format that needs none, arithmetic in a format that has
    no NaN (the 4- and 6-bit ones, in which only outputs are held).

    Parameters
    ----------
    norm
        Names or records of norms.
    plans
        Names or records of plans; None stands for ``late`` where there is no kernel.
    kernels
        Kernels that stand where plans do: ``"path/to/file.py:function"``,
        ``"package.module:function"``, a `Kernel` from `find_kernel`, or a callable ``f(x, weight,
        bias, eps)``, which lives in this process alone. One whose framework has no type for a
        format has no case in it.
    formats
        Names or records of formats, in which the inputs are.
    weight_formats
        The same for gain and bias; None stands for the format of the inputs.
    eps
        Numbers; None stands for the capture's own eps, or else for the plan's default.
    inputs
        Names of families, `family` with parameters, `capture`.
    hidden, rows, seeds
        Integers. A capture has its own rows and elements, and no seed.
    gains, biases
        Names of rows of `gains` and `biases`. A capture has its own. A `Source` may have seeds,
        gains and biases of its own, a capture too.
    scales
        ``none``, ``per_tensor``.
    exact
        Names of steps, as `STEPS` has them: one of them at a time is computed in float64 instead of
        the plan's format. ``none`` stands for the plan as it is. A plan that does not have a step
        (without a bias, ``bias``) has no case in which it is exact; one whose step is in float64
        anyway has, with the numbers of ``none``.
    against
        Names or records of other plans, with whose outputs all others are compared bit by bit;
        ``none`` stands for no comparison.
    """

    norm: Any = "rms"
    plans: Any = None
    kernels: Any = ()
    formats: Any = "bfloat16"
    weight_formats: Any = None
    eps: Any = None
    inputs: Any = "normal"
    hidden: Any = 1024
    rows: Any = 16
    seeds: Any = 0
    gains: Any = "random"
    biases: Any = "none"
    scales: Any = "none"
    exact: Any = "none"
    against: Any = "none"

    def __post_init__(self) -> None:
        """Check every axis, so that a grid that was made can be listed."""
        given = {name: _axis(getattr(self, name)) for name in CHECKS}
        if self.plans is None:
            given["plans"] = () if given["kernels"] else ("late",)
        for name, check in CHECKS.items():
            values = tuple(check(value) for value in given[name])
            if not values and not (name == "kernels" or (name == "plans" and given["kernels"])):
                raise InputError(f"the sweep's {name} is empty: give one or more")
            object.__setattr__(self, name, values)
        _check_names(self.plans, self.kernels)
        made = any(source.kind == "family" for source in self.inputs)
        if made and (largest := max(self.rows) * max(self.hidden)) > MOST:
            raise InputError(
                f"{max(self.rows)} rows of {max(self.hidden)} are {largest} elements, more than "
                f"{MOST}"
            )

    @cached_property
    def record(self) -> dict[str, Any]:
        """The grid as plain data."""
        axes = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        axes["plans"] = [_switches(plan) for plan in self.plans]
        axes["kernels"] = [kernel.record for kernel in self.kernels]
        axes["against"] = [plan and _switches(plan) for plan in self.against]
        for name, nothing in (("kernels", []), ("exact", ("",)), ("against", [None])):
            # A grid is told as it was before there were these axes.
            if axes[name] == nothing:
                del axes[name]
        axes["inputs"] = [dataclasses.asdict(source) for source in self.inputs]
        return axes

    def cases(self) -> tuple[Case, ...]:
        """All cases, each once, in a fixed order: what shares inputs stands together.

        Raises
        ------
        InputError
            No plan or kernel of the sweep is one for any of its norms and formats, or a capture is
            of another norm.
        """
        # A dict keeps the first of each key, in order.
        cases = tuple({case.key: case for case in self._combinations()}.values())
        if not cases and None not in self.against and not self._held_against_any():
            raise InputError(
                f"the sweep has no case: none of the plans it is held against "
                f"({', '.join(plan.name for plan in self.against)}) computes the norm "
                f"{' or '.join(self.norm)} in its formats"
            )
        fitting = [kernel for kernel in self.kernels if kernel.norm in ("", *self.norm)]
        if not cases and (limits := refusals(fitting)):
            raise InputError(f"the sweep has no case: {limits}")
        if not cases:
            what = " and ".join(filter(None, (self.plans and "plans", self.kernels and "kernels")))
            names = ", ".join(item.name for item in (*self.plans, *self.kernels))
            lacks = (
                f"computes the norm {' or '.join(self.norm)} of its inputs"
                if "" in self.exact
                else f"has the step {' or '.join(self.exact)} on its norm and inputs"
                f"{self._steps_there_are()}"
            )
            raise InputError(f"the sweep has no case: none of its {what} ({names}) {lacks}")
        return cases

    def _steps_there_are(self) -> str:
        known = {
            step
            for plan, norm in itertools.product(self.plans, self.norm)
            if computes(plan, norm)
            for step in steps_of(plan, norm, True, True)
        }
        return f": they have {', '.join(filter(known.__contains__, STEPS))}" if known else ""

    def _held_against_any(self) -> bool:
        return any(
            computes(other, norm) and can_run(other, format)
            for other, norm, format in itertools.product(self.against, self.norm, self.formats)
        )

    def _combinations(self) -> Iterator[Case]:
        told = [(plan, _switches(plan)) for plan in self.plans]
        for norm in self.norm:
            # Once for all inputs: what is asked of a plan a million times is worth keeping.
            fits = {
                format: [
                    (plan, switches)
                    for plan, switches in told
                    if computes(plan, norm) and can_run(plan, format)
                ]
                for format in self.formats
            }
            kernels = [
                (kernel, kernel.record) for kernel in self.kernels if kernel.norm in ("", norm)
            ]
            for source in self.inputs:
                yield from self._of_source(source, norm, fits, kernels)

    def _of_source(
        self,
        source: Source,
        norm: str,
        fits: dict[str, list[tuple[Plan, dict[str, str]]]],
        kernels: list[tuple[Kernel, dict[str, Any]]],
    ) -> Iterator[Case]:
        tensors = self._layers(source, norm) if source.kind == "capture" else self._made(source)
        for (tensor, given), eps, format, weight_format in itertools.product(
            tensors, self.eps, self.formats, self.weight_formats
        ):
            computing = list(self._computing(norm, format, given, fits[format], kernels))
            own = tensor["eps"] if eps is None else eps
            for scale, (told, by) in itertools.product(scales_of(format, self.scales), computing):
                fields: dict[str, Any] | None = {
                    "weight_format": weight_format or format,
                    "eps": by.eps_default if own is None and isinstance(by, Plan) else own,
                }
                if isinstance(by, Kernel):
                    fields = fields_taken(
                        by, format=format, weight_format=weight_format, hidden=tensor["hidden"],
                        eps=own, scale=scale,
                    )  # fmt: skip
                if fields is not None:
                    known = {"norm": norm, "format": format, "scale": scale}
                    yield Case(**{**tensor, **told, **known, **fields})

    def _computing(
        self,
        norm: str,
        format: str,
        given: tuple[bool, bool],
        told: list[tuple[Plan, dict[str, str]]],
        kernels: list[tuple[Kernel, dict[str, Any]]],
    ) -> Iterator[tuple[dict[str, Any], Plan | Kernel]]:
        """What cases say of plans and kernels, each with the one that it is."""
        others = [
            _switches(other) if other else {}
            for other in self.against
            if other is None or (computes(other, norm) and can_run(other, format))
        ]
        for (plan, switches), exact, other in itertools.product(told, self.exact, others):
            if not exact or exact in steps_of(plan, norm, *given):
                yield {"plan": switches, "exact": exact, "against": other}, plan
        # A kernel has no steps that could be exact.
        for (kernel, record), other in itertools.product(kernels, others):
            if "" in self.exact:
                where = kernel.where
                yield {"plan": {}, "kernel": record, "where": where, "against": other}, kernel

    def _made(self, source: Source) -> Iterator[Tensors]:
        """The tensors of a family, outermost axis first."""
        for seed, rows, hidden, gain, bias in itertools.product(
            source.seeds or self.seeds,
            self.rows,
            self.hidden,
            source.gains or self.gains,
            source.biases or self.biases,
        ):
            tensor = {
                "source": f"family:{source.name}",
                "parameters": source.parameters,
                "seed": seed,
                "rows": rows,
                "hidden": hidden,
                "gain": gain,
                "bias": bias,
                "eps": None,
            }
            yield tensor, (gain != "none", bias != "none")

    def _layers(self, source: Source, norm: str) -> Iterator[Tensors]:
        """The tensors of a capture, in its order; none where it is of another norm."""
        captured = source.capture()
        if captured.norm != norm:
            return
        chosen = [x for x in captured.layers if not source.layers or x.name in source.layers]
        for layer, gain, bias in itertools.product(
            chosen, source.gains or (OWN,), source.biases or (OWN,)
        ):
            # What was captured has no seed.
            seeds = (0,) if gain == bias == OWN else source.seeds or (0,)
            given = (gain != "none", bias != "none" and (bias != OWN or layer.bias is not None))
            for seed in seeds:
                tensor = {
                    "source": f"capture:{source.name}:{layer.name}",
                    "seed": seed,
                    "rows": layer.x.shape[0],
                    "hidden": layer.x.shape[1],
                    "gain": gain,
                    "bias": bias,
                    "eps": captured.eps,
                    "path": source.path,
                }
                yield tensor, given


def _axis(values: Any) -> tuple[Any, ...]:
    """The values of an axis; a lone one is an axis of one."""
    if isinstance(values, str | Mapping | Format | Plan | Source | Kernel) or not isinstance(
        values, Iterable
    ):
        return (values,)
    return tuple(values)


def scales_of(format: str, scales: Sequence[str]) -> tuple[str, ...]:
    """Those of the scales that are applied to a format."""
    return tuple(scales) if formats[format].bits <= SCALED_BITS else ("none",)


def _switches(plan: Plan) -> dict[str, str]:
    return {"name": plan.name, "norm": plan.norm, **plan.switches}


def _format(row: Any) -> str:
    found = formats.find(row)
    if found != formats[found.name]:
        raise InputError(f"the format {found.name} has its switches set: a sweep takes the rows")
    return found.name


def _source(value: Any) -> Source:
    return value if isinstance(value, Source) else family(value)


def _kernel(value: Any) -> Kernel:
    if isinstance(value, str) and value in plans:
        raise InputError(f"{value} is a plan: list it among the plans")
    return find_kernel(value)


def _check_names(plans: Sequence[Plan], kernels: Sequence[Kernel]) -> None:
    """Refuse names by which charts and tables could not tell kernels apart."""
    taken = {plan.name for plan in plans}
    for kernel in dict.fromkeys(kernels):
        if kernel.name in taken:
            raise InputError(
                f"the kernel {kernel.source} has the name {kernel.name!r}, which another of the "
                "sweep's plans and kernels has: give it one of its own"
            )
        taken.add(kernel.name)


def _scale(value: Any) -> str:
    if value not in SCALES:
        raise unknown("scale", value, SCALES)
    return str(value)


def _step(value: Any) -> str:
    if value in (None, "", "none"):
        return ""
    if value not in STEPS:
        raise unknown("step", value, ("none", *STEPS))
    return str(value)


def _count(value: Any, name: str, *, least: int, most: int = MOST) -> int:
    try:
        # Refuses 2.5 and "3", takes NumPy's integers.
        count = value.__index__()
    except (AttributeError, TypeError):
        raise InputError(f"{name} is {value!r}: give an integer") from None
    if isinstance(value, bool) or count < least:
        raise InputError(f"{name} is {value!r}: give an integer from {least} up")
    if count > most:
        raise InputError(f"{name} is {value!r}: give an integer up to {most}")
    return int(count)


CHECKS: dict[str, Callable[[Any], Any]] = {
    "norm": lambda norm: norms.find(norm).name,
    "plans": plans.find,
    "kernels": _kernel,
    "formats": _format,
    "weight_formats": lambda row: None if row is None else _format(row),
    "eps": lambda eps: None if eps is None else check_eps(eps),
    "inputs": _source,
    "hidden": lambda count: _count(count, "hidden", least=1),
    "rows": lambda count: _count(count, "rows", least=0),
    "seeds": lambda seed: _count(seed, "seed", least=0, most=2**64 - 1),
    "gains": lambda gain: gains.find(gain).name,
    "biases": lambda bias: biases.find(bias).name,
    "scales": _scale,
    "exact": _step,
    "against": lambda plan: None if plan in (None, "none") else plans.find(plan),
}
"""What makes a value of each axis out of what the user gave, or refuses it."""
