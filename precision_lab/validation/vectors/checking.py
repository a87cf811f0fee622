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
from precision_lab.identification import KernelAnswer, answer
from precision_lab.kernels.running import Claim, Outcome
from precision_lab.norm import Inputs, check
from precision_lab.validation.calls import Call
from precision_lab.validation.diagnosing import diagnosis
from precision_lab.validation.examination import examine
from precision_lab.validation.vectors.manifest import (
    NAME,
    CallEntry,
    FileEntry,
    Manifest,
    read_manifest,
)
from precision_lab.validation.vectors.writing import IDENTIFY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from precision_lab.plan import Plan
    from precision_lab.validation.verdict import Diagnosis, Verdict

    Tensors = dict[str, NDArray[Any]]

NAMED = 3
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
        Whether some outputs may be missing: their calls are reported as not run, and the others are
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
        claim = Claim.of(**msgspec.to_builtins(manifest.settings))
    except InputError as error:
        raise InputError(f"{path / NAME}: {error}") from None
    calls: list[Call] = []
    answers: list[KernelAnswer] = []
    missing: list[CallEntry] = []
    for file in manifest.files:
        entries = [call for call in manifest.calls if call.file == file.name]
        tensors = _input_tensors(path, file, entries)
        inputs = [_inputs(entry, tensors, claim, path) for entry in entries]
        outputs = _output_tensors(path, file.name, entries, claim)
        for entry, arguments in zip(entries, inputs, strict=True):
            y = outputs.get(f"{entry.name}.y")
            if y is None:
                missing.append(entry)
            else:
                calls.append(Call(entry.probe, arguments, entry.gain))
                answers.append(KernelAnswer(arguments, y))
    if not calls:
        first = manifest.files[0].name
        raise InputError(
            f"{path} holds no outputs yet: put those of {first}.safetensors into"
            f" {first}.y.safetensors, {manifest.calls[0].name}.y and so on"
        )
    if missing and not partial:
        raise InputError(
            f"{path} lacks {_missing_outputs(path, missing, manifest)}: put them there, or have the"
            " others judged alone with --partial (partial=True)"
        )
    calls.sort(key=lambda call: call.inputs.x.size)
    verdict = examine(
        lambda inputs: _outcome(inputs, answers),
        claim,
        calls,
        name=name or path.resolve().name,
        plan=plan,
        bits=bits,
        diagnose=lambda made, outcomes: _diagnosis(made, outcomes, claim),
    )
    if not missing:
        return verdict
    limit = (
        f"{len(missing)} of {len(manifest.calls)} calls, which have no output and were not run:"
        f" {_first_names(f'{c.name} ({c.probe} [{c.rows}, {c.hidden}])' for c in missing)}"
    )
    return dataclasses.replace(verdict, unsupported=(limit, *verdict.unsupported))


def _missing_outputs(path: Path, missing: Sequence[CallEntry], manifest: Manifest) -> str:
    """Which outputs are not there: those of whole files, and those of single calls."""
    names = [file.name for file in manifest.files]
    files = [name for name in names if not (path / f"{name}.y.safetensors").exists()]
    single = [f"{row.name}.y of {row.file}" for row in missing if row.file not in files]
    parts = [_first_names(f"{name}.y.safetensors" for name in files)] if files else []
    if single:
        parts.append(f"{len(single)} output{'s' * (len(single) > 1)}, {_first_names(single)}")
    return " and ".join(parts)


def _first_names(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:NAMED]) + (", …" if len(listed) > NAMED else "")


def _outcome(inputs: Inputs, answers: Sequence[KernelAnswer]) -> Outcome:
    """The outputs of inputs, which are those of a call or some rows of them.

    A failing call is made again, in fewer rows and elements and with other values: the rows
    are known, for the rest nobody is there to answer.
    """
    for call in answers:
        rows = _rows(inputs, call.inputs)
        if rows is not None:
            return Outcome(call.y[rows])
    return Outcome(raised="NotImplementedError", message="no device is at hand")


def _rows(inputs: Inputs, call: Inputs) -> slice | None:
    """Which rows of a call they are, None if they are none."""
    if inputs is call:
        return slice(None)
    same = all(getattr(inputs, name) is getattr(call, name) for name in ("weight", "bias"))
    x, of = inputs.x, call.x
    if not same or inputs.eps != call.eps or x.shape[1:] != of.shape[1:] or not of.size * x.size:
        return None
    # They lie in its memory.
    start = (x.ctypes.data - of.ctypes.data) // of[0].nbytes
    rows = slice(start, start + len(x))
    return rows if 0 <= start <= len(of) - len(x) and np.shares_memory(x, of[rows]) else None


def _diagnosis(calls: Sequence[Call], outcomes: Sequence[Outcome], claim: Claim) -> Diagnosis:
    """The plan behind the outputs of the calls that were made for it."""
    answered = [
        KernelAnswer(call.inputs, outcome.y)
        for call, outcome in zip(calls, outcomes, strict=True)
        if call.probe == IDENTIFY and outcome.y is not None
    ]
    if not answered:
        return diagnosis([])
    return diagnosis(
        answer(answered, weight_offset=claim.weight_offset, output_format=claim.output_format)
    )


# Files --------------------------------------------------------------------------------------------


def _input_tensors(path: Path, file: FileEntry, entries: Sequence[CallEntry]) -> Tensors:
    """The tensors of a file of inputs, which is the one that was written."""
    place = path / f"{file.name}.safetensors"
    tensors, _ = read_safetensors(place)
    content = place.read_bytes()
    if (len(content), hashlib.sha256(content).hexdigest()) != (file.bytes, file.sha256):
        raise InputError(f"{place} is not the file that {NAME} tells of: its digest is another")
    wanted = {f"{call.name}.{role}" for call in entries for role in _roles(call)}
    if wanted != set(tensors):
        odd = min(wanted ^ set(tensors))
        raise InputError(f"{place} and {NAME} disagree about the tensor {odd!r}")
    return tensors


def _roles(call: CallEntry) -> list[str]:
    return ["x", "eps", *["weight"] * call.weight, *["bias"] * call.bias]


def _inputs(row: CallEntry, tensors: Tensors, claim: Claim, path: Path) -> Inputs:
    """The arguments of a call, as the manifest has them."""
    x, eps = tensors[f"{row.name}.x"], tensors[f"{row.name}.eps"]
    weight, bias = (tensors.get(f"{row.name}.{role}") for role in ("weight", "bias"))
    shapes = {"x": (x, claim.format, (row.rows, row.hidden))}
    for role, part in (("weight", weight), ("bias", bias)):
        if part is not None:
            shapes[role] = (part, claim.weight_format, (row.hidden,))  # type: ignore[assignment]
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
    return check(claim.norm, x, weight, bias, eps=row.eps, weight_offset=claim.weight_offset)


def _output_tensors(path: Path, name: str, entries: Sequence[CallEntry], claim: Claim) -> Tensors:
    """The outputs beside a file, those of some calls at least; none where there is no file."""
    place = path / f"{name}.y.safetensors"
    if not place.exists():
        return {}
    tensors, _ = read_safetensors(place)
    shapes = {f"{call.name}.y": (call.rows, call.hidden) for call in entries}
    for tensor, y in tensors.items():
        if tensor not in shapes:
            raise InputError(
                f"{place} holds {tensor!r}, which is no output of {name}.safetensors: they are"
                f" named {entries[0].name}.y to {entries[-1].name}.y"
            )
        target = claim.output_format
        if y.dtype != target.dtype or y.shape != shapes[tensor]:
            raise InputError(
                f"{place} holds {tensor} as {y.dtype} of shape {y.shape}: asked for is"
                f" {target.name} of shape {shapes[tensor]}"
            )
    return tensors
