# SPDX-License-Identifier: Apache-2.0
"""What kind of file a model's is, told by its first bytes, then by the end of its name.

Files that hold code (pickles) or that are packed are never opened: their row says what to give
instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from precision_lab.exceptions import InputError
from precision_lab.files import read_start
from precision_lab.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from precision_lab.models.configs import ModelConfig

CONFIG_INSTEAD = "give the model's config.json, or its folder"
ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+):/{1,2}(.*)", re.IGNORECASE | re.DOTALL)
OTHER_CONFIGS = ("params.json", "model_index.json", "adapter_config.json")
"""Configs of other names, in the order in which they are looked for."""
REST = re.compile(r"-(?!0*1-)\d+-of-\d+\.gguf$", re.IGNORECASE)
"""Shards of a GGUF file after its first."""
HUB = re.compile(r"(?:huggingface\.co/|hf\.co/)?([\w.-]+/[\w.-]+)(?:[/@].*)?", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class FileType:
    """One kind of file that is no JSON.

    Parameters
    ----------
    name
        What it is, with its article.
    starts
        Any of the first bytes of such a file, each with its place.
    suffixes
        Ends of the names of such files, where the bytes do not tell.
    instead
        What to give in its place; "" for a kind that is read.
    read
        Reads it.
    """

    name: str
    starts: tuple[tuple[int, bytes], ...] = ()
    suffixes: tuple[str, ...] = ()
    instead: str = ""
    read: Callable[[Path], ModelConfig] | None = None


def _gguf(path: Path) -> ModelConfig:
    from precision_lab.models.gguf_file import read_gguf_config

    return read_gguf_config(path)


def _onnx(path: Path) -> ModelConfig:
    from precision_lab.models.onnx_file import read_onnx_config

    return read_onnx_config(path)


UNPACK = "unpack it and give what is inside"
PICKLE = (
    "it is code that would run here, so it is not opened: give the config.json beside it, or save "
    "its weights as safetensors"
)

file_types: Table[FileType] = Table(
    "type of file",
    [
        FileType(name="a GGUF file", starts=((0, b"GGUF"),), suffixes=(".gguf",), read=_gguf),
        FileType(name="an ONNX model", suffixes=(".onnx", ".ort"), read=_onnx),
        FileType(name="a gzip file", starts=((0, b"\x1f\x8b"),), instead=UNPACK),
        FileType(name="a bzip2 file", starts=((0, b"BZh"),), instead=UNPACK),
        FileType(name="an xz file", starts=((0, b"\xfd7zXZ\0"),), instead=UNPACK),
        FileType(name="a zstd file", starts=((0, b"\x28\xb5\x2f\xfd"),), instead=UNPACK),
        FileType(name="a tar archive", starts=((257, b"ustar"),), instead=UNPACK),
        FileType(
            name="a NumPy archive", suffixes=(".npz",),
            instead="write its rows to a capture in safetensors (write_capture)",
        ),
        FileType(
            name="a NumPy array", starts=((0, b"\x93NUMPY"),), suffixes=(".npy",),
            instead="write its rows to a capture in safetensors (write_capture)",
        ),
        FileType(
            name="a checkpoint of torch (a zip archive of a pickle)", starts=((0, b"PK\x03\x04"),),
            suffixes=(".pt", ".pth", ".bin", ".ckpt"), instead=PICKLE,
        ),
        FileType(
            name="a pickle", starts=tuple((0, bytes((0x80, version))) for version in range(2, 6)),
            suffixes=(".pkl", ".pickle"), instead=PICKLE,
        ),
        FileType(
            name="a Keras file", starts=((0, b"\x89HDF\r\n\x1a\n"),), suffixes=(".keras", ".h5"),
            instead=CONFIG_INSTEAD,
        ),
        FileType(
            name="a TFLite model", starts=((4, b"TFL3"),), suffixes=(".tflite",),
            instead=f"export it to ONNX, or {CONFIG_INSTEAD}",
        ),
    ],
)  # fmt: skip


def file_type(path: Path) -> FileType | None:
    """The kind of a file; None for one that may be JSON."""
    start = read_start(path)
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return file_types["a NumPy archive"]
    if suffix == ".zip" and start.startswith(b"PK"):
        return FileType(name="a zip archive", instead=UNPACK)
    for row in file_types.values():
        if any(start[place:].startswith(mark) for place, mark in row.starts):
            return row
    if start[:1].isspace() or start[:1] in (b"{", b"["):
        return None
    return next((row for row in file_types.values() if suffix in row.suffixes), None)


def read_by_type(path: Path) -> ModelConfig | None:
    """What a file that is no JSON says of its model; None for one that may be JSON.

    Raises
    ------
    InputError
        If the kind of file is not read: what it is, and what to give instead.
    """
    row = file_type(path)
    if row is None:
        return None
    if row.read is None:
        raise InputError(f"{path} is {row.name}: {row.instead}")
    return row.read(path)


def only_model(names: list[str]) -> str | None:
    """The one file of a folder without config.json that tells of a model; None for none or several.

    Shards of one GGUF file are one.
    """
    for name in OTHER_CONFIGS:
        if name in names:
            return name
    ends = tuple(suffix for row in file_types.values() if row.read for suffix in row.suffixes)
    found = [name for name in names if name.lower().endswith(ends) and not REST.search(name)]
    return found[0] if len(found) == 1 else None


def has_known_suffix(name: str) -> bool:
    """Whether a name ends as a model's file does, so that it is no name of a model."""
    suffix = Path(name).suffix.lower()
    return any(suffix in row.suffixes for row in file_types.values())


def refuse_address(name: str) -> None:
    """Refuse an address: nothing is downloaded.

    Raises
    ------
    InputError
        With the name to give where the address is a model's, and what to download.
    """
    match = ADDRESS.fullmatch(name)
    if match is None:
        return
    inside = HUB.fullmatch(match[2])
    what = "download its config.json and give that"
    if inside is not None and match[1].lower() in ("hf", "http", "https"):
        what += f", or give its name {inside[1]} if --list has it"
    raise InputError(f"{name[:80]} is an address, and nothing is downloaded: {what}")
