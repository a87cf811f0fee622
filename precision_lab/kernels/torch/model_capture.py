# SPDX-License-Identifier: Apache-2.0
"""What enters every norm of one's own model, recorded while it runs on one's own input."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.exceptions import InputError, the_nearest
from precision_lab.inputs import SUFFIX, Capture, Layer, write_capture
from precision_lab.kernels.torch.model_norms import norms_of, refuse_traced, unread_norms
from precision_lab.kernels.torch.recording import Recorder

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from precision_lab.kernels.torch.model_norms import ModelNorm, UnreadNorm
    from precision_lab.kernels.torch.recording import RowSample

ROWS = 256
"""Rows kept a layer unless the caller wants more or fewer."""


class Recorded:
    """What `capture` gives: a context in which a model's norms are recorded.

    Entering it again goes on: the rows of all runs count. Leaving it, also by an error, takes the
    hooks out of the model.
    """

    def __init__(
        self,
        model: str,
        recorder: Recorder,
        unread: tuple[UnreadNorm, ...] = (),
    ) -> None:
        self._model = model
        self._recorder = recorder
        self._unread = unread

    def __enter__(self) -> Self:
        self._recorder.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._recorder.stop()

    @property
    def captures(self) -> tuple[Capture, ...]:
        """A capture for each norm, eps and weight offset that the model has, in its order.

        Raises
        ------
        InputError
            Nothing has entered any norm.
        """
        ran = [
            (norm, rows)
            for norm, rows in zip(self._recorder.norms, self._recorder.rows, strict=True)
            if rows.x is not None
        ]
        offsets: dict[tuple[str, float], float] = {}
        for norm, _ in ran:
            if norm.weight is not None:
                offsets.setdefault((norm.norm, norm.eps), norm.weight_offset)
        groups: dict[tuple[str, float, float], list[Layer]] = {}
        for norm, rows in ran:
            offset = norm.weight_offset
            if norm.weight is None:
                # A gain of 1 can be told with any offset: it opens no capture of its own.
                offset = offsets.get((norm.norm, norm.eps), 0.0)
            groups.setdefault((norm.norm, norm.eps, offset), []).append(_layer(norm, rows, offset))
        captures = [
            Capture(
                model=self._model, norm=norm, eps=eps, layers=tuple(layers), weight_offset=offset
            )
            for (norm, eps, offset), layers in groups.items()
        ]
        if not captures:
            first = self._recorder.norms[0].name
            why = f": {self.untold[0]}" if self.untold else ""
            raise InputError(
                f"nothing entered {first} or any other norm{why}: run the model itself inside the"
                " with block"
            )
        return tuple(captures)

    @property
    def capture(self) -> Capture:
        """The only capture.

        Raises
        ------
        InputError
            There are several, or none.
        """
        first, *others = self.captures
        if others:
            several = ", ".join(f"{one.norm} with eps {one.eps:g}" for one in (first, *others))
            raise InputError(f"the model has several kinds of norm ({several}): take captures")
        return first

    @property
    def untold(self) -> tuple[str, ...]:
        """A sentence for each norm of which nothing is recorded, or not all; for like ones one."""
        sentences = []
        for norm, rows in zip(self._recorder.norms, self._recorder.rows, strict=True):
            if rows.trouble:
                sentences.append(f"{norm.name} is not recorded in full: {rows.trouble}")
            elif rows.x is None:
                sentences.append(f"{norm.name} never ran")
            elif not len(rows.x):
                sentences.append(f"{norm.name} ran on no rows")
        groups: dict[tuple[str, str], list[str]] = {}
        for one in self._unread:
            groups.setdefault((re.sub(r"\d+", "*", one.name), one.why), []).append(one.name)
        sentences += [
            f"{names[0]} is not recorded: {why}"
            if len(names) == 1
            else f"{pattern} are not recorded, {len(names)} norms: {why}"
            for (pattern, why), names in groups.items()
        ]
        return tuple(sentences)

    def write(self, path: str | os.PathLike[str]) -> tuple[Path, ...]:
        """Write what is recorded; where there are several captures, a file each.

        Parameters
        ----------
        path
            Of a safetensors file. Several are called ``NAME-rms-1e-06.safetensors`` and so on.

        Returns
        -------
        tuple of Path
            In the order of `captures`.

        Raises
        ------
        InputError
            As for `captures`; or the name ends otherwise, or cannot be written.
        """
        target = Path(path)
        if target.suffix != SUFFIX:
            raise InputError(f"{target} would be no capture: give a name that ends in {SUFFIX}")
        captures = self.captures
        places = (
            [target]
            if len(captures) == 1
            else [target.with_name(_file_name(target, x)) for x in captures]
        )
        for place, one in zip(places, captures, strict=True):
            write_capture(place, one)
        return tuple(places)


def capture(model: Any, *, rows: int = ROWS, only: str = "") -> Recorded:
    """Record what enters every norm of a torch model while it runs.

    Parameters
    ----------
    model
        A torch module. It is left as it was: its outputs, its gradients and its own hooks too.
    rows
        Rows kept a layer, spread evenly over all that enter it, and the same on every run.
    only
        Part of the names of the norms to be recorded.

    Returns
    -------
    Recorded
        To be entered; then it has `captures`, `capture` where there is one, and `write`.

    Raises
    ------
    InputError
        It is no torch module, is compiled or scripted, or has no such norm.

    Examples
    --------
    With torch::

        with precision_lab.capture(model) as recorded:
            model(**inputs)
        recorded.write("acts.safetensors")
    """
    if isinstance(model, str | os.PathLike):
        raise InputError(
            f"capture records a torch model, and {str(model)!r} is none: captured(…) gives a sweep"
            " the rows of a capture, and read_capture(…) reads one"
        )
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(model, torch.nn.Module):
        raise InputError(
            f"capture records a torch module while it runs, and this is {type(model).__name__}"
        )
    if isinstance(rows, bool) or not isinstance(rows, int | np.integer) or rows < 1:
        raise InputError(f"rows is {rows!r}: give a whole number from 1 up, such as {ROWS}")
    refuse_traced(model)
    captures = list(norms_of(model))
    unread = tuple(unread_norms(model))
    if not captures:
        raise InputError(
            f"{type(model).__name__} has no norm: a module counts as one that has an eps, and a"
            " weight of one dimension or none"
            + "".join(f"; {one.name} is left out, for {one.why}" for one in unread[:1])
        )
    chosen = [(module, norm) for module, norm in captures if only in norm.name]
    if not chosen:
        near = the_nearest(only, [norm.name for _, norm in captures])
        raise InputError(f"no norm of {type(model).__name__} is called like {only!r}: {near}")
    left_out = tuple(one for one in unread if only in one.name)
    recorder = Recorder(chosen, int(rows))
    return Recorded(_model_name(model), recorder, left_out)


def _layer(norm: ModelNorm, rows: RowSample, offset: float) -> Layer:
    x = rows.x
    assert x is not None  # noqa: S101
    weight = norm.weight
    if weight is None:
        weight = np.full(x.shape[1], 1 - offset).astype(x.dtype)
    return Layer(
        name=norm.name, x=x, weight=weight, bias=norm.bias, class_name=norm.class_name,
        plan=norm.plan,
    )  # fmt: skip


def _file_name(path: Path, one: Capture) -> str:
    offset = "-one-plus" if one.weight_offset else ""
    return f"{path.stem}-{one.norm}-{one.eps:g}{offset}{SUFFIX}"


def _model_name(model: Any) -> str:
    """The name that it was loaded by, or its class."""
    name = getattr(model, "name_or_path", "")
    return name if isinstance(name, str) and name else type(model).__name__
