# SPDX-License-Identifier: Apache-2.0
"""A kernel: a black box that claims to compute a norm, called with arrays whatever it takes."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.exceptions import InputError, unknown
from precision_lab.kernels import jax_arrays
from precision_lab.kernels.declared import NOTHING, Declared
from precision_lab.kernels.foreign_arrays import as_array, is_array
from precision_lab.kernels.kept_answers import KeptAnswers
from precision_lab.kernels.layouts import in_any_layout
from precision_lab.kernels.runner import attempt, run
from precision_lab.kernels.torch import tensors as bridge
from precision_lab.numbers import format_of
from precision_lab.processes import (
    RefusedError,
    describe_error,
    guard_call,
    import_folder,
    refuse_changes,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from precision_lab.kernels.runner import Outcome
    from precision_lab.kernels.running.claim import Claim
    from precision_lab.norm import Inputs

FRAMEWORKS = ("numpy", "torch", "jax", "onnx")
DEVICES = ("cpu", "cuda")
BRIDGES: dict[str, Any] = {"torch": bridge, "jax": jax_arrays}
"""What hands over the arrays of a framework that has its own; each has ``version`` and ``call``."""
TYPES = {"torch": frozenset(bridge.STORAGE), "jax": frozenset((*jax_arrays.TYPES, "tf32"))}
"""Formats that a framework has a type for, where it has not one for all."""
STARS: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
HERE = "in this process "
"""How the place of a callable begins that has none but this process."""
CALLED = "(x, weight, bias, eps)"
"""How every kernel is called."""


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """A callable that computes a norm of arrays, made by `find_kernel`.

    Parameters
    ----------
    name
        A short one, by which charts and tables tell it from others.
    source
        Where it came from: the file's name or the module, and the function's.
    where
        As what it is found again, on this machine; "" for a callable of this process alone.
    framework
        Whose arrays it takes: ``numpy``, ``torch`` or ``jax``; ``onnx`` is a model, of NumPy's.
    device
        ``cpu`` or ``cuda``.
    version
        Of torch, jax or onnxruntime, "" for a NumPy kernel.
    digest
        SHA-256 of the code: of its file and the modules of its folder that they import, or of its
        module's file and version.
    norm
        The one that it computes, "" for whichever it is asked for.
    weight_offset
        What it adds to the weight: 1 where it multiplies by 1 + g.
    declared
        What is fixed in it: all else it refuses.
    parameters
        What it has of its own, as a module has: a call without a weight or a bias is run with ones
        or zeros, of the format that is claimed.
    function
        Called as ``function(x, weight, bias, eps)``; weight and bias may be None. It gives y, in
        the shape of x, or a dict that has it.
    """

    name: str
    source: str
    where: str
    framework: str = "numpy"
    device: str = "cpu"
    version: str = ""
    digest: str = ""
    norm: str = ""
    weight_offset: float = 0.0
    declared: Declared = NOTHING
    parameters: tuple[str, ...] = field(default=(), compare=False)
    function: Callable[..., Any] = field(repr=False, compare=False)

    @property
    def record(self) -> dict[str, Any]:
        """What its numbers depend on, as plain data: where a file lies is no part of it."""
        names = ("name", "source", "framework", "device", "version", "digest")
        optional = (name for name in ("norm", "weight_offset") if getattr(self, name))
        return {name: getattr(self, name) for name in (*names, *optional)}

    @property
    def lives_here(self) -> bool:
        """Whether it is a callable of this process, which no other can find."""
        return self.where.startswith(HERE)

    def takes(
        self,
        format: str,
        *,
        weight_format: str = "",
        hidden: int | None = None,
        eps: float | None = None,
    ) -> bool:
        """Whether it takes x of a format, and weights of another, a size and an eps, if given.

        There has to be a type for arrays of the formats where it runs, and nothing else may be
        fixed in it.
        """
        types = TYPES.get(self.framework)
        stored = types is None or {format, weight_format} <= {"", *types}
        return stored and self.declared.takes(
            format=format, weight_format=weight_format, hidden=hidden, eps=eps
        )

    def run(self, inputs: Inputs, claim: Claim) -> Outcome:
        """Call it once, and note what it did beside computing: none of it is an error."""
        before = self._answers.before(inputs.x.shape)
        outcome = run(self._apply_in_layouts, self._completed(inputs, claim), claim)
        if any(answer.changed for answer in before):
            found = ("overwritten", "it overwrites an array that it returned from a call before")
            outcome = dataclasses.replace(outcome, findings=(*outcome.findings, found))
        return outcome

    def _completed(self, inputs: Inputs, claim: Claim) -> Inputs:
        """With what a module has and a call has not."""
        neutral = {"weight": 1.0 - claim.weight_offset, "bias": 0.0}
        size = (1, inputs.x.shape[1])
        missing: dict[str, Any] = {
            name: np.full(size, neutral[name]).astype(claim.weight_format.dtype)
            for name in self.parameters
            if getattr(inputs, name) is None
        }
        return dataclasses.replace(inputs, **missing) if missing else inputs

    @cached_property
    def _in_layouts(self) -> Callable[..., Any]:
        """A function of NumPy's arrays or torch's is called with views of them, too."""
        viewed = self.framework in ("numpy", "torch")
        return in_any_layout(self.function) if viewed else self.function

    @cached_property
    def _answers(self) -> KeptAnswers:
        """What it returned of late."""
        return KeptAnswers()

    def _apply(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """What a function gives for arrays, in its own framework; what it raises is raised."""
        with import_folder(self.where.rpartition(":")[0]) if self.where else nullcontext():
            if self.framework in BRIDGES:
                *arrays, eps = arguments
                return BRIDGES[self.framework].call(function, arrays, eps, self.device)
            return function(*arguments)

    def _apply_in_layouts(self, *arguments: Any) -> Any:
        """What it gives, in other layouts, too; an array of any library is seen as NumPy's."""
        return self._seen(self._apply(self._in_layouts, arguments))

    def apply_to_arrays(self, *arguments: Any) -> Any:
        """What it gives; an array of any library is seen as one of NumPy."""
        return self._seen(self._apply(self.function, arguments))

    def _seen(self, value: Any) -> Any:
        y = value["y"] if isinstance(value, Mapping) and "y" in value else value
        if not is_array(y):
            return value
        array = as_array(y)
        self._answers.keep(y, array)
        return array

    def __call__(
        self,
        x: NDArray[Any],
        weight: NDArray[Any] | None = None,
        bias: NDArray[Any] | None = None,
        *,
        eps: float,
    ) -> NDArray[Any]:
        """The kernel's y for x, in the type that it gives it.

        Parameters
        ----------
        x, weight, bias
            [rows, hidden], [hidden] or None, in types of formats. A kernel may write to them.
        eps
            A Python float.

        Returns
        -------
        ndarray
            [rows, hidden].

        Raises
        ------
        InputError
            In one sentence: it raised or tried to end the process, or gave something else than an
            array of a format in the shape of x.
        """
        doing = f"the kernel {self.name} ({self.source})"
        arguments = (x, weight, bias, float(eps))
        tried = attempt(self._apply, self.function, arguments, printed=sys.stderr)
        try:
            with guard_call(doing):
                value = tried.result()
        except RefusedError as error:
            raise InputError(f"{doing} raised {error}{_hint(self.function, error)}") from error
        # The cases after this one are not to suffer for it.
        refuse_changes(doing, tried.changes)
        y = self._array(value, doing)
        if y.shape != x.shape:
            raise InputError(f"{doing} gave the shape {y.shape} for x of shape {x.shape}")
        return y

    def _array(self, value: Any, doing: str) -> NDArray[Any]:
        """What the function gave as an array of a format's type."""
        if isinstance(value, Mapping):
            if "y" not in value:
                keys = ", ".join(map(repr, list(value)[:5])) or "nothing"
                raise InputError(f"{doing} gave a dict without 'y': it has {keys}")
            value = value["y"]
        if not is_array(value):
            kind = type(value)
            name = "None" if value is None else f"{kind.__module__}.{kind.__qualname__}"
            raise InputError(
                f"{doing} gave {name.removeprefix('builtins.')}, not an array: give y, or a dict"
                " that has y"
            )
        if isinstance(value, np.ma.MaskedArray) and np.any(value.mask):
            raise InputError(
                f"{doing} gave an array of which {np.count_nonzero(value.mask)} elements are "
                "masked: give y.filled(nan), or its data"
            )
        try:
            y = as_array(value)
            format_of(y)
        except Exception as error:
            # On an accelerator this is where its errors show.
            text = str(error) if isinstance(error, InputError) else describe_error(error)
            raise InputError(f"{doing} gave what cannot be used: {text}") from error
        return y


def _hint(function: Callable[..., Any], error: RefusedError) -> str:
    """What to do about a function that was made to be called in another way."""
    names = parameters(function)
    if not isinstance(error.__cause__, TypeError) or names is None:
        return ""
    # It could be called, so what counts is whether the second is a weight, gamma, gain or scale.
    fits = len(names) < 2 or names[1].startswith(("*", "w", "g", "scale"))
    return "" if fits else f"; {_mismatch(names)}"


def _mismatch(names: list[str] | None) -> str:
    return (
        f"it takes ({', '.join(names or [])}) and is called with {CALLED}: give a function of your "
        "own that hands them over"
    )


def parameters(function: Callable[..., Any]) -> list[str] | None:
    """The names of a function's parameters, None where it does not tell."""
    try:
        return [
            STARS.get(found.kind, "") + name
            for name, found in inspect.signature(function).parameters.items()
        ]
    except (TypeError, ValueError):
        return None


def check_callable(function: Any, source: str) -> None:
    """Refuse what cannot be called as a kernel is.

    Raises
    ------
    InputError
        It is a class, or takes other arguments.
    """
    if isinstance(function, type):
        raise InputError(
            f"{source} is a class: give a function {CALLED} that makes one of it and calls that"
        )
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        # Written in C: it will say so itself when it is called.
        return
    try:
        signature.bind(None, None, None, 0.0)
    except TypeError:
        raise InputError(f"{source} is no kernel: {_mismatch(parameters(function))}") from None


def check_choice(kind: str, value: str, choices: tuple[str, ...]) -> str:
    """One of the choices.

    Raises
    ------
    InputError
        It is another, naming the nearest.
    """
    if value not in choices:
        raise unknown(kind, value, choices)
    return value
