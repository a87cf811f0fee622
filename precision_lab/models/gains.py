# SPDX-License-Identifier: Apache-2.0
"""The gains and biases of a checkpoint's norms, and nothing else of it.

A norm's parameters are known by their names: the part before ``weight``, ``bias``, ``gamma``,
``beta`` or ``scale`` speaks of a norm (``input_layernorm``, ``ln_1``, ``q_norm``, ``norms.3``),
and they have one dimension. Batch and group norms are left out.

Source: parameter names in transformers 5.24.0; the index of sharded checkpoints that it writes.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from precision_lab.exceptions import InputError, unknown
from precision_lab.files import check_path, read_chosen, read_object
from precision_lab.inputs import by_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

SINGLE_FILE = "model.safetensors"
INDEX = "model.safetensors.index.json"
INDEX_LIMIT = 2**25
"""Bytes of the largest index; 92,000 tensors have one of 9 MB."""

PARTS = {"weight": 0, "gamma": 0, "scale": 0, "bias": 1, "beta": 1}
"""The last part of a parameter's name, and whether it is the gain (0) or the bias (1)."""

NORM = re.compile(r"\w*norm\w*|(\w+_)?ln(_?[0-9a-z]+)?(_\w+)?|(\w+_)?rms(_\w+)?", re.IGNORECASE)
OTHER = re.compile(r"batch|group|instance|weight_?norm|spectral", re.IGNORECASE)

Gains = dict[str, "tuple[NDArray[Any], NDArray[Any] | None]"]


def read_gains(path: str | Path) -> Gains:
    """Read the parameters of a checkpoint's norms, of files of any size: nothing else is read.

    Parameters
    ----------
    path
        A safetensors file, or a folder with ``model.safetensors`` or the shards of
        ``model.safetensors.index.json``.

    Returns
    -------
    dict of str to (ndarray, ndarray or None)
        By the norm's name, in the model's order as far as numbers in names say it: the weight as
        stored (to which a model may add 1) [hidden], and the bias, None where there is none. Empty
        for a folder that has neither of these files, and where no parameter is a norm's.

    Raises
    ------
    InputError
        If a file is missing, can't be read or is not strictly well-formed, if the index names what
        is no file of the folder or what its file lacks, or if the parameters of a norm don't fit
        each other.
    """
    path = Path(path)
    check_path(path)
    try:
        folder = path.is_dir()
        there = {file.name for file in path.iterdir()} if folder else set()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    if not folder:
        return _gains(path, read_chosen(path, _is_norm_parameter))
    if SINGLE_FILE in there:
        return _gains(path / SINGLE_FILE, read_chosen(path / SINGLE_FILE, _is_norm_parameter))
    if INDEX not in there:
        return {}
    tensors: dict[str, NDArray[Any]] = {}
    for shard, names in _shards(path / INDEX, there).items():
        present: set[str] = set()

        def chosen(
            name: str, shape: tuple[int, ...], names: set[str] = names, present: set[str] = present
        ) -> bool:
            present.add(name)
            return name in names and _is_norm_parameter(name, shape)

        tensors |= read_chosen(path / shard, chosen)
        if missing := sorted(names - present):
            raise InputError(f"{path / INDEX} puts {missing[0]!r} in {shard}, which lacks it")
    return _gains(path / INDEX, tensors)


def is_norm(name: str) -> bool:
    """Whether a parameter of this name belongs to a norm.

    Examples
    --------
    >>> is_norm("model.layers.0.input_layernorm.weight"), is_norm("h.0.ln_1.bias")
    (True, True)
    >>> is_norm("norm.linear.weight"), is_norm("lm_head.weight")
    (False, False)
    """
    stem, _, part = name.rpartition(".")
    owner = re.sub(r"(\.\d+)+$", "", stem).rpartition(".")[2]
    return part in PARTS and bool(NORM.fullmatch(owner)) and not OTHER.search(owner)


def _is_norm_parameter(name: str, shape: tuple[int, ...]) -> bool:
    return len(shape) == 1 and is_norm(name)


def _shards(index: Path, there: set[str]) -> dict[str, set[str]]:
    """The shards that hold parameters of norms, and which."""
    weight_map = read_object(index, limit=INDEX_LIMIT).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise InputError(f"{index} is no index: it has no weight_map from tensors to files")
    files = sorted(name for name in there if name.endswith(".safetensors"))
    shards: dict[str, set[str]] = {}
    for name, shard in weight_map.items():
        shown = repr(shard)[:80]
        if not isinstance(shard, str) or not _is_file_name(shard):
            raise InputError(f"{index} names the shard {shown}, which is no file of its folder")
        if is_norm(name):
            shards.setdefault(shard, set()).add(name)
    for shard in shards:
        if shard not in there:
            if not files:
                raise InputError(f"{index} names the shard {shard[:80]!r}, and its folder has none")
            raise InputError(f"{index}: {unknown('shard', shard[:80], files)}")
    return shards


def _is_file_name(name: str) -> bool:
    """Whether this is a file's name, and no path to elsewhere."""
    return bool(re.fullmatch(r"[\w-][\w.-]{0,250}\.safetensors", name, re.ASCII))


def _gains(path: Path, tensors: Mapping[str, NDArray[Any]]) -> Gains:
    """Weight and bias of each norm, side by side."""
    pairs: dict[str, list[NDArray[Any] | None]] = {}
    for name, array in tensors.items():
        stem, _, part = name.rpartition(".")
        pair = pairs.setdefault(stem, [None, None])
        if pair[PARTS[part]] is not None:
            kind = "biases" if PARTS[part] else "weights"
            raise InputError(f"{path}: {stem!r} has two {kind}, one of them named {part!r}")
        pair[PARTS[part]] = array
    gains: Gains = {}
    for stem in sorted(pairs, key=by_number):
        weight, bias = pairs[stem]
        if weight is None:
            raise InputError(f"{path}: {stem!r} has a bias but no weight")
        if bias is not None and bias.shape != weight.shape:
            raise InputError(
                f"{path}: {stem!r} has {bias.size} biases, not {weight.size} as it has weights"
            )
        gains[stem] = (weight, bias)
    return gains
