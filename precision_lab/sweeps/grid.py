# SPDX-License-Identifier: Apache-2.0
"""A sweep as its user writes it: a grid, which lists its cases."""

from __future__ import annotations

import dataclasses
import itertools
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from precision_lab.exceptions import InputError
from precision_lab.inputs import MOST
from precision_lab.plan import can_run, computes
from precision_lab.sweeps.axes import (
    AXES,
    at_level,
    combinations,
    known_steps,
    values_of,
    with_axes,
)
from precision_lab.sweeps.case import OMITTED_IF_EMPTY, OWN, Case
from precision_lab.sweeps.kernel_limits import fields_taken, refusals

# What a case says of its inputs, and whether gain and bias are given.
CaseInputs: TypeAlias = tuple[dict[str, Any], tuple[bool, bool]]

MADE, STORED, COMPUTED = map(at_level, ("made", "stored", "computed"))
# Kernels have no steps that could be exact.
OF_PLANS = [axis for axis in COMPUTED if not axis.of_kernels]
OF_ALL = [axis for axis in COMPUTED if axis.of_kernels]

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from precision_lab.kernels import Kernel
    from precision_lab.plan import Plan
    from precision_lab.sweeps.axes import Axis, Choice
    from precision_lab.sweeps.sources import Source

    class _Axes:
        """One field an axis: what was given, and once that is checked the axis' values."""

        def __init__(self, **axes: Any) -> None: ...
        def __getattr__(self, name: str) -> Any: ...

else:
    _Axes = dataclasses.make_dataclass(
        "_Axes",
        [(axis.name, "Any", axis.default) for axis in AXES.values()],
        frozen=True,
        kw_only=True,
    )


class Sweep(_Axes):
    """A grid of cases: every combination of what its axes list.

    An axis takes one value or several. A combination that makes no sense is left out: a plan on a
    norm that is not its own, a scale for a format that needs none, arithmetic in a format that has
    no NaN (the 4- and 6-bit ones, in which only outputs are held).
    """

    def __post_init__(self) -> None:
        """Check every axis, so that a grid that was made can be listed."""
        listed = {name: values_of(getattr(self, name)) for name in AXES}
        if self.plans is None:
            listed["plans"] = () if listed["kernels"] else ("late",)
        for name, axis in AXES.items():
            values = tuple(axis.check(value) for value in listed[name])
            if not values and not (name == "kernels" or (name == "plans" and listed["kernels"])):
                raise InputError(f"the sweep's {name} is empty: give one or more")
            object.__setattr__(self, name, values)
        _check_names(self.plans, self.kernels)
        has_family = any(source.kind == "family" for source in self.inputs)
        if has_family and (largest := max(self.rows) * max(self.hidden)) > MOST:
            raise InputError(
                f"{max(self.rows)} rows of {max(self.hidden)} are {largest} elements, more than "
                f"{MOST}"
            )

    @cached_property
    def record(self) -> dict[str, Any]:
        """The grid as plain data, as it was before there were axes that it does not use."""
        return {
            axis.name: [axis.data(value) for value in values]
            for axis in AXES.values()
            for values in (self._values[axis.name],)
            if axis.field not in OMITTED_IF_EMPTY or values != axis.default_values
        }

    def cases(self) -> tuple[Case, ...]:
        """All cases, each once, in a fixed order: what shares inputs stands together.

        Raises
        ------
        InputError
            No plan or kernel of the sweep is one for any of its norms and formats, or a capture is
            of another norm.
        """
        # A dict keeps the first of each key, in order.
        cases = tuple({case.key: case for case in self._cases()}.values())
        if not cases and None not in self.against and not self._is_compared():
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
                f"{self._known_steps()}"
            )
            raise InputError(f"the sweep has no case: none of its {what} ({names}) {lacks}")
        return cases

    def _known_steps(self) -> str:
        known = known_steps(self.plans, self.norm)
        return f": they have {', '.join(known)}" if known else ""

    def _is_compared(self) -> bool:
        """Whether a plan of `against` computes any norm of the sweep in any of its formats."""
        return any(
            computes(other, norm) and can_run(other, format)
            for other, norm, format in itertools.product(self.against, self.norm, self.formats)
        )

    @cached_property
    def _values(self) -> dict[str, tuple[Any, ...]]:
        return {name: getattr(self, name) for name in AXES}

    def _cases(self) -> Iterator[Case]:
        named_plans = [(plan, {"plan": AXES["plans"].data(plan)}) for plan in self.plans]
        for norm in self.norm:
            # Once for all inputs: what is asked of a plan a million times is worth keeping.
            runs = {
                format: [
                    (plan, fields)
                    for plan, fields in named_plans
                    if computes(plan, norm) and can_run(plan, format)
                ]
                for format in self.formats
            }
            kernels = [
                (kernel, {"plan": {}, "kernel": kernel.record, "where": kernel.where})
                for kernel in self.kernels
                if kernel.norm in ("", norm)
            ]
            for source in self.inputs:
                captured = source.kind == "capture"
                tensors = (
                    self._capture_inputs(source, norm) if captured else self._family_inputs(source)
                )
                for tensor, vectors in tensors:
                    outer = {"norm": norm, "vectors": vectors}
                    for chosen in combinations(STORED, self._values, outer):
                        yield from self._cases_of_inputs(
                            tensor, chosen, runs[chosen["formats"]], kernels
                        )

    def _cases_of_inputs(
        self,
        tensor: dict[str, Any],
        stored: dict[str, Any],
        plans: list[tuple[Plan, dict[str, Any]]],
        kernels: list[tuple[Kernel, dict[str, Any]]],
    ) -> Iterator[Case]:
        """The cases of inputs as stored: what plans compute, then what kernels do."""
        eps = tensor["eps"] if stored["eps"] is None else stored["eps"]
        inputs = {**tensor, "norm": stored["norm"], **_fields(STORED, stored)}
        format, weight_format = stored["formats"], stored["weight_formats"]
        for plan, fields in plans:
            inputs["weight_format"] = weight_format or format
            inputs["eps"] = plan.default_eps(format) if eps is None else eps
            for chosen in combinations(COMPUTED, self._values, {**stored, "plans": plan}):
                yield Case(**{**inputs, **fields, **_fields(COMPUTED, chosen)})
        if any(axis.default_values[0] not in self._values[axis.name] for axis in OF_PLANS):
            return
        for kernel, fields in kernels:
            fields_of_kernel = fields_taken(
                kernel, format=format, weight_format=weight_format, hidden=tensor["hidden"],
                eps=eps, scale=stored["scales"],
            )  # fmt: skip
            if fields_of_kernel is not None:
                for chosen in combinations(OF_ALL, self._values, stored):
                    yield Case(
                        **{**inputs, **fields, **fields_of_kernel, **_fields(OF_ALL, chosen)}
                    )

    def _family_inputs(self, source: Source) -> Iterator[CaseInputs]:
        """The tensors of a family, outermost axis first."""
        values = {
            axis.name: _source_values(source, axis) or self._values[axis.name] for axis in MADE
        }
        for chosen in combinations(MADE, values, {}):
            tensor = {
                "source": f"family:{source.name}",
                "parameters": source.parameters,
                "eps": None,
                **_fields(MADE, chosen),
            }
            yield tensor, (tensor["gain"] != "none", tensor["bias"] != "none")

    def _capture_inputs(self, source: Source, norm: str) -> Iterator[CaseInputs]:
        """The tensors of a capture, in its order; none where it is of another norm."""
        captured = source.capture()
        if captured.norm != norm:
            return
        layers = [x for x in captured.layers if not source.layers or x.name in source.layers]
        for layer, gain, bias in itertools.product(
            layers, source.gains or (OWN,), source.biases or (OWN,)
        ):
            # What was captured has no seed.
            seeds = (0,) if gain == bias == OWN else source.seeds or (0,)
            vectors = (gain != "none", bias != "none" and (bias != OWN or layer.bias is not None))
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
                yield tensor, vectors


Sweep.__doc__ = with_axes(Sweep.__doc__ or "")
# Here and not as a decorator, for type checkers do not see the fields.
dataclasses.dataclass(frozen=True, kw_only=True)(Sweep)


def _source_values(source: Source, axis: Axis) -> tuple[Any, ...]:
    """The values of an axis that a source has for itself."""
    values: tuple[Any, ...] = getattr(source, axis.name) if axis.of_source else ()
    return values


def _fields(axes: Sequence[Axis], chosen: Choice) -> dict[str, Any]:
    """What a case says of the values that were chosen; of none what it says by default."""
    data = ((axis.field, axis.data(chosen[axis.name])) for axis in axes)
    return {field: value for field, value in data if value is not None}


def _check_names(plans: Sequence[Plan], kernels: Sequence[Kernel]) -> None:
    """Refuse names by which charts and tables could not tell kernels apart."""
    fields_of_kernel = {plan.name for plan in plans}
    for kernel in dict.fromkeys(kernels):
        if kernel.name in fields_of_kernel:
            raise InputError(
                f"the kernel {kernel.source} has the name {kernel.name!r}, which another of the "
                "sweep's plans and kernels has: give it one of its own"
            )
        fields_of_kernel.add(kernel.name)
