# SPDX-License-Identifier: Apache-2.0
"""Judges the outputs that were put beside vectors."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from precision_lab.exceptions import InputError
from precision_lab.files import read_safetensors
from precision_lab.identification import KernelAnswer as Answered
from precision_lab.identification import answer
from precision_lab.kernels.running import Claim, Outcome
from precision_lab.norm import Inputs, check
from precision_lab.validation.calls import Call
from precision_lab.validation.diagnosing import diagnosis
from precision_lab.validation.examination import examine
from precision_lab.validation.vectors.manifest import NAME, Asked, Manifest, read_manifest
from precision_lab.validation.vectors.writing import IDENTIFY
from precision_lab.validation.verdict import Diagnosis, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from precision_lab.plan import Plan

    Tensors = dict[str, NDArray[Any]]

SHOWN = 3
"""Calls and files without an output that are named."""


def check_vectors(
    folder: str | Path,
    *,
    name: str | None = None,
    plan: Plan | str | None = None,
    bits: bool | None = None,
    partial: bool = False,
) -> Verdict:
    """Judge the outputs in a folder of vectors, as `validate` judges a kernel.

    The outputs of ``NAME.safetensors`` are in ``NAME.y.safetensors``: for each call ``CALL.x`` a
    tensor ``CALL.y`` of its shape, in the output's format.

    Parameters
    ----------
    folder
        As `write_vectors` left it, outputs added.
    name
        Of the kernel, for the verdict; by default the folder's.
    plan, bits
        As for `validate`.
    partial
        Whether some outputs may be missing: their calls are told as not run, and the others are
        judged.

    Raises
    ------
    InputError
        In one sentence: the manifest and the files disagree, a file is cut short or another than
        was written, an output has another type or shape than asked for or is missing, or there are
        none at all.
    """
    path = Path(folder)
    manifest = read_manifest(path)
    try:
        settings = Claim.of(**msgspec.to_builtins(manifest.settings))
    except InputError as error:
        raise InputError(f"{path / NAME}: {error}") from None
    calls: list[Call] = []
    recorded: list[Answered] = []
    missing: list[Asked] = []
    for file in manifest.files:
        asked = [call for call in manifest.calls if call.file == file.name]
        tensors = _inputs(path, file.name, manifest, asked)
        made = {row.name: _made(row, tensors, settings, path) for row in asked}
        given = _outputs(path, file.name, asked, settings)
        for row in asked:
            y = given.get(f"{row.name}.y")
            if y is None:
                missing.append(row)
                continue
            call = Call(row.probe, made[row.name], row.gain)
            calls.append(call)
            recorded.append(Answered(call.inputs, y))
    if not calls:
        first = manifest.files[0].name
        raise InputError(
            f"{path} holds no outputs yet: put those of {first}.safetensors into"
            f" {first}.y.safetensors, {manifest.calls[0].name}.y and so on"
        )
    if missing and not partial:
        raise InputError(
            f"{path} lacks {_lacking(path, missing, manifest)}: put them there, or have the others"
            " judged alone with --partial (partial=True)"
        )
    calls.sort(key=lambda call: call.inputs.x.size)
    verdict = examine(
        lambda inputs: _outcome(inputs, recorded),
        settings,
        calls,
        name=name or path.resolve().name,
        plan=plan,
        bits=bits,
        diagnose=lambda asked, outcomes: _diagnosis(asked, outcomes, settings),
    )
    if not missing:
        return verdict
    told = (
        f"{len(missing)} of {len(manifest.calls)} calls, which have no output and were not run:"
        f" {_named(f'{row.name} ({row.probe} [{row.rows}, {row.hidden}])' for row in missing)}"
    )
    return dataclasses.replace(verdict, unsupported=(told, *verdict.unsupported))


def _lacking(path: Path, missing: Sequence[Asked], manifest: Manifest) -> str:
    """Which outputs are not there: those of whole files, and those of single calls."""
    names = [file.name for file in manifest.files]
    whole = [name for name in names if not (path / f"{name}.y.safetensors").exists()]
    single = [f"{row.name}.y of {row.file}" for row in missing if row.file not in whole]
    parts = [_named(f"{name}.y.safetensors" for name in whole)] if whole else []
    if single:
        parts.append(f"{len(single)} output{'s' * (len(single) > 1)}, {_named(single)}")
    return " and ".join(parts)


def _named(names: Iterable[str]) -> str:
    """The first few."""
    listed = list(names)
    return ", ".join(listed[:SHOWN]) + (", …" if len(listed) > SHOWN else "")


def _outcome(inputs: Inputs, recorded: Sequence[Answered]) -> Outcome:
    """What was recorded for inputs, which are those of a call or some rows of them.

    A failing call is asked for again, in fewer rows and elements and with other values: the rows
    are known, for the rest nobody is there to answer.
    """
    for known in recorded:
        rows = _rows(inputs, known.inputs)
        if rows is not None:
            return Outcome(known.y[rows])
    return Outcome(raised="NotImplementedError", message="no device is at hand")


def _rows(inputs: Inputs, whole: Inputs) -> slice | None:
    """Which rows of a call they are, None if they are none."""
    if inputs is whole:
        return slice(None)
    same = all(getattr(inputs, name) is getattr(whole, name) for name in ("weight", "bias"))
    x, of = inputs.x, whole.x
    if (
        not same
        or inputs.eps != whole.eps
        or x.shape[1:] != of.shape[1:]
        or not (x.size and of.size)
    ):
        return None
    # They lie in its memory.
    start = (x.ctypes.data - of.ctypes.data) // of[0].nbytes
    found = slice(start, start + len(x))
    return found if 0 <= start <= len(of) - len(x) and np.shares_memory(x, of[found]) else None


def _diagnosis(calls: Sequence[Call], outcomes: Sequence[Outcome], settings: Claim) -> Diagnosis:
    """The plan behind the outputs of the calls that were made for it."""
    answered = [
        Answered(call.inputs, outcome.y)
        for call, outcome in zip(calls, outcomes, strict=True)
        if call.probe == IDENTIFY and outcome.y is not None
    ]
    if not answered:
        return Diagnosis(None)
    return diagnosis(
        answer(answered, weight_offset=settings.weight_offset, output_format=settings.output_format)
    )


# Files --------------------------------------------------------------------------------------------


def _inputs(path: Path, name: str, manifest: Manifest, asked: Sequence[Asked]) -> Tensors:
    """The tensors of a file of inputs, which is the one that was written."""
    place = path / f"{name}.safetensors"
    told = next(file for file in manifest.files if file.name == name)
    tensors, _ = read_safetensors(place)
    content = place.read_bytes()
    if (len(content), hashlib.sha256(content).hexdigest()) != (told.bytes, told.sha256):
        raise InputError(f"{place} is not the file that {NAME} tells of: its digest is another")
    wanted = {f"{call.name}.{role}" for call in asked for role in _roles(call)}
    if wanted != set(tensors):
        odd = min(wanted ^ set(tensors))
        raise InputError(f"{place} and {NAME} disagree about the tensor {odd!r}")
    return tensors


def _roles(call: Asked) -> list[str]:
    return ["x", "eps", *["weight"] * call.weight, *["bias"] * call.bias]


def _made(row: Asked, tensors: Tensors, settings: Claim, path: Path) -> Inputs:
    """The arguments of a call, as the manifest tells them."""
    x, eps = tensors[f"{row.name}.x"], tensors[f"{row.name}.eps"]
    weight, bias = (tensors.get(f"{row.name}.{role}") for role in ("weight", "bias"))
    shapes = {"x": (x, settings.format, (row.rows, row.hidden))}
    for role, part in (("weight", weight), ("bias", bias)):
        if part is not None:
            shapes[role] = (part, settings.weight_format, (row.hidden,))  # type: ignore[assignment]
    for role, (part, format, shape) in shapes.items():
        if part.dtype != format.dtype or part.shape != shape:
            raise InputError(
                f"{path / row.file}.safetensors holds {row.name}.{role} as {part.dtype} of shape"
                f" {part.shape}, where {NAME} says {format.name} of {shape}"
            )
    if eps.dtype != np.float64 or eps.tolist() != [row.eps]:
        raise InputError(
            f"{path / row.file}.safetensors holds another {row.name}.eps than {NAME} says"
        )
    return check(settings.norm, x, weight, bias, eps=row.eps, weight_offset=settings.weight_offset)


def _outputs(path: Path, name: str, asked: Sequence[Asked], settings: Claim) -> Tensors:
    """The outputs beside a file, those of some calls at least; none where there is no file."""
    place = path / f"{name}.y.safetensors"
    if not place.exists():
        return {}
    tensors, _ = read_safetensors(place)
    known = {f"{call.name}.y": (call.rows, call.hidden) for call in asked}
    for tensor, y in tensors.items():
        if tensor not in known:
            raise InputError(
                f"{place} holds {tensor!r}, which is no output of {name}.safetensors: they are"
                f" named {asked[0].name}.y to {asked[-1].name}.y"
            )
        target = settings.output_format
        if y.dtype != target.dtype or y.shape != known[tensor]:
            raise InputError(
                f"{place} holds {tensor} as {y.dtype} of shape {y.shape}: asked for is"
                f" {target.name} of shape {known[tensor]}"
            )
    return tensors
