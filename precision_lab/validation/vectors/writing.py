# SPDX-License-Identifier: Apache-2.0
"""Writes the inputs of a run into a folder."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.exceptions import InputError
from precision_lab.files import DTYPES, write_safetensors
from precision_lab.identification import make_queries
from precision_lab.kernels.running import Claim
from precision_lab.validation.calls import Call, default_calls
from precision_lab.validation.vectors.manifest import (
    NAME,
    VERSION,
    CallEntry,
    ClaimEntry,
    FileEntry,
    Manifest,
    write_manifest,
)
from precision_lab.versions import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from precision_lab.norm import Norm
    from precision_lab.numbers import Format
    from precision_lab.validation.probe_table import Probe

LIMIT = 256 * 2**20
"""Bytes of inputs that are written unless more are allowed."""

IDENTIFY = "identify"
"""The probe whose outputs tell plans apart."""


@dataclass(frozen=True)
class VectorFolder:
    """A folder of vectors that was written."""

    folder: Path
    files: tuple[str, ...]
    """Names of the files of inputs."""
    calls: int
    size: int
    """Bytes of inputs."""


def write_vectors(
    folder: str | Path,
    *,
    norm: Norm | str = "rms",
    format: Format | str = "bfloat16",
    eps: float | Iterable[float] = (1e-6, 1e-5),
    weight_offset: float = 0.0,
    weight_format: Format | str | None = None,
    output_format: Format | str | None = None,
    overflow: str = "ieee",
    hidden: Iterable[int] | None = None,
    rows: Iterable[int] | None = None,
    probes: Iterable[Probe | str] | None = None,
    seed: int = 1,
    limit: int = LIMIT,
) -> VectorFolder:
    """Write the inputs of a run, a file for each size of rows, and a manifest.

    Parameters
    ----------
    folder
        Made if it is not there; it may hold no vectors yet.
    norm, format, eps, weight_offset, weight_format, output_format, overflow
        What the kernel claims, as for `validate`.
    hidden, rows, probes, seed
        What is asked, as for `validate`.
    limit
        Bytes of inputs at most.

    Raises
    ------
    InputError
        As for `validate`; a format that safetensors has no name for; the inputs pass the limit; the
        folder cannot be written or holds vectors.
    OSError
        With ``errno.ENOSPC`` if the disk is full.
    """
    claim = Claim.of(
        norm=norm, format=format, weight_format=weight_format, output_format=output_format,
        eps=eps, weight_offset=weight_offset, overflow=overflow, seed=seed,
    )  # fmt: skip
    _check_storable(claim)
    calls = default_calls(claim, hidden=hidden, rows=rows, chosen=probes)
    calls += _identifying_calls(claim, None if hidden is None else {call.hidden for call in calls})
    size = sum(_bytes(call) for call in calls)
    if size > limit:
        raise InputError(
            f"the inputs are {size / 2**20:.0f} MiB, more than the limit of {limit / 2**20:.0f}:"
            " ask for fewer sizes or probes, or allow more"
        )
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        if (path / NAME).exists():
            raise InputError(f"{path} holds vectors already: name another folder")
    except OSError as error:
        raise InputError(f"{path} cannot be made: {error.strerror or error}") from error
    files: list[FileEntry] = []
    entries: list[CallEntry] = []
    for size_of_rows in sorted({call.hidden for call in calls}):
        name = f"h{size_of_rows}"
        tensors: dict[str, NDArray[Any]] = {}
        for call in calls:
            if call.hidden == size_of_rows:
                row = _call_entry(f"c{len(entries):03d}", name, call)
                entries.append(row)
                tensors |= _tensors(row.name, call)
        place = path / f"{name}.safetensors"
        write_safetensors(place, tensors)
        files.append(_file_entry(name, place))
    claims = ClaimEntry(**claim.to_dict())  # type: ignore[arg-type]
    manifest = Manifest(
        vectors=VERSION, written_by=__version__, settings=claims, files=files, calls=entries
    )
    write_manifest(path, manifest)
    return VectorFolder(path, tuple(file.name for file in files), len(entries), size)


def _check_storable(claim: Claim) -> None:
    stored = set(DTYPES.values())
    for row in (claim.format, claim.weight_format, claim.output_format):
        if row.dtype not in stored:
            raise InputError(f"safetensors has no name for {row.name}: vectors cannot hold it")


def _identifying_calls(claim: Claim, sizes: set[int] | None) -> list[Call]:
    """Calls whose outputs tell plans apart, at two of the sizes that were asked for."""
    chosen: dict[str, Any] = {}
    if sizes is not None:
        few = sorted(size for size in sizes if size > 1)[:2] or sorted(sizes)[:1]
        chosen["sizes"] = {n: max(8, 2560 // n) for n in few}
    inputs = make_queries(
        claim.norm, claim.format, claim.weight_format,
        eps=claim.eps[:2], weight_offset=claim.weight_offset, **chosen,
    )  # fmt: skip
    return [Call(IDENTIFY, one, "random") for one in inputs]


def _bytes(call: Call) -> int:
    return sum(part.nbytes for part in call.inputs.named_arguments().values())


def _call_entry(name: str, file: str, call: Call) -> CallEntry:
    return CallEntry(
        name=name, file=file, probe=call.probe, gain=call.gain, rows=call.rows,
        hidden=call.hidden, eps=call.inputs.eps,
        weight=call.inputs.weight is not None, bias=call.inputs.bias is not None,
    )  # fmt: skip


def _tensors(name: str, call: Call) -> dict[str, NDArray[Any]]:
    inputs = call.inputs
    arguments = {f"{name}.{role}": part for role, part in inputs.named_arguments().items()}
    return {**arguments, f"{name}.eps": np.array([inputs.eps])}


def _file_entry(name: str, path: Path) -> FileEntry:
    content = path.read_bytes()
    return FileEntry(name=name, bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
