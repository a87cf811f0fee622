# SPDX-License-Identifier: Apache-2.0
"""The manifest of a folder of vectors: what is in its files, and what is asked."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import msgspec

from precision_lab.exceptions import InputError
from precision_lab.files import replace_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

NAME = "manifest.json"
VERSION = 1
LIMIT = 2**24
"""Bytes of the longest manifest that is read."""

PLAIN_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
"""Names of files without their ending, and of calls: nothing in them can lead elsewhere."""


class FileEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of inputs: ``NAME.safetensors``, whose outputs are in ``NAME.y.safetensors``."""

    name: str
    bytes: int
    sha256: str


class CallEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A call: its tensors are ``NAME.x``, ``NAME.weight`` and ``NAME.bias`` of its file.

    ``NAME.eps`` is one float64. The output is ``NAME.y``.
    """

    name: str
    file: str
    probe: str
    gain: str
    rows: int
    hidden: int
    eps: float
    weight: bool
    bias: bool


class ClaimEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the kernel claims to compute: the arguments of `Claim.of`."""

    norm: str
    format: str
    weight_format: str
    output_format: str
    eps: list[float]
    weight_offset: float
    overflow: str
    seed: int


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that a folder of vectors says of itself."""

    vectors: int
    written_by: str
    settings: ClaimEntry
    files: list[FileEntry]
    calls: list[CallEntry]


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, a call a line."""
    document = msgspec.to_builtins(manifest)
    files, calls = (
        ",\n".join(f"    {json.dumps(one)}" for one in document.pop(key))
        for key in ("files", "calls")
    )
    head = json.dumps(document, indent=2)[:-2]
    text = f'{head},\n  "files": [\n{files}\n  ],\n  "calls": [\n{calls}\n  ]\n}}\n'
    replace_file(folder / NAME, [text.encode()])


def read_manifest(folder: Path) -> Manifest:
    """Read a manifest, with distrust.

    Raises
    ------
    InputError
        In one sentence: it is not there, too long, no JSON, of another version, or says something
        twice, too little or too much.
    """
    path = folder / NAME
    try:
        if not path.is_file():
            raise InputError(f"{path} is not there: write vectors with precision-lab vectors write")
        if path.stat().st_size > LIMIT:
            raise InputError(f"{path} is longer than {LIMIT} bytes")
        text = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    try:
        parsed = json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)
        return _manifest(parsed)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except RecursionError:
        raise InputError(f"{path} is nested too deeply") from None
    except (ValueError, msgspec.ValidationError) as error:
        raise InputError(f"{path} is no manifest: {str(error)[:200]}") from error


def _manifest(parsed: Any) -> Manifest:
    version = parsed.get("vectors") if isinstance(parsed, dict) else None
    if version != VERSION:
        text = repr(version)[:40]
        raise InputError(f"it is of version {text}, and this release reads version {VERSION}")
    manifest = msgspec.convert(parsed, Manifest)
    _check_calls(manifest)
    return manifest


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise InputError("a key stands there twice")
    return mapping


def _refuse_constant(name: str) -> float:
    raise InputError(f"it holds {name}, which JSON does not have")


def _check_calls(manifest: Manifest) -> None:
    """Names are plain and differ, and every call is of a file."""
    _check_names("file", (file.name for file in manifest.files))
    _check_names("call", (call.name for call in manifest.calls))
    known = {file.name for file in manifest.files}
    if not manifest.calls:
        raise InputError("it lists no calls")
    for call in manifest.calls:
        if call.file not in known:
            raise InputError(f"the call {call.name!r} is of a file {call.file[:64]!r} not listed")
        if call.rows < 0 or call.hidden < 1:
            raise InputError(f"the call {call.name!r} has no shape")
    if idle := known - {call.file for call in manifest.calls}:
        raise InputError(f"the file {min(idle)!r} is of no call")


def _check_names(kind: str, names: Iterable[str]) -> None:
    earlier: set[str] = set()
    for name in names:
        if not PLAIN_NAME.fullmatch(name):
            raise InputError(
                f"the {kind} name {name[:64]!r} is not plain: letters a to z, digits, - and _"
            )
        if name in earlier:
            raise InputError(f"the {kind} {name!r} is listed twice")
        earlier.add(name)
