# SPDX-License-Identifier: Apache-2.0
"""Whether this machine computes what it should: versions, subnormals, known answers.

A known answer is the SHA-256 of many results of one row (a format's roundings, a family's inputs, a
packaged capture's values, a plan's outputs), committed in ``data/known_answers.json``. The same on
every machine, or something here computes differently: a library, a compiler flag, a processor mode;
or a file of the package is not what it was.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

import numpy as np

from precision_lab.exceptions import InputError
from precision_lab.inputs import captures, families, make_inputs
from precision_lab.norm import norms, truth
from precision_lab.numbers import MODES, formats
from precision_lab.plan import emulate, plans
from precision_lab.processes import NEAREST, current_arithmetic
from precision_lab.versions import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

REQUIRED = (
    "numpy", "ml_dtypes", "mpmath", "pandas", "matplotlib", "click", "rich", "jinja2", "msgspec",
)  # fmt: skip
OPTIONAL = (
    "torch", "transformers", "onnx", "onnxruntime", "flax", "jax", "python-flint", "gmpy2",
    "gfloat", "pyarrow",
)  # fmt: skip
ROWS, HIDDEN, EPS, SEED = 4, 67, 1e-6, 2


@dataclass(frozen=True)
class MachineCheck:
    """One thing that was checked: what this machine gives, and what it should."""

    name: str
    found: str
    expected: str

    @property
    def passed(self) -> bool:
        """Whether both are the same."""
        return self.found == self.expected


def versions() -> dict[str, str | None]:
    """Versions of Python, this package and all that it uses; None for what is not installed."""
    ours = {"precision-lab": __version__, "python": platform.python_version()}
    return {**ours, **{name: _version(name) for name in (*REQUIRED, *OPTIONAL)}}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def machine() -> dict[str, str]:
    """The machine that this runs on."""
    return {
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": str(os.cpu_count()),
        "byte order": "little" if np.little_endian else "big",
    }


def examine() -> list[MachineCheck]:
    """Every check, in order; in another arithmetic nothing is proved, and nothing else asked."""
    now = current_arithmetic()
    if now.flushes:
        return [MachineCheck("subnormals", "flushed to zero", "kept")]
    if now.rounding != NEAREST:
        return [MachineCheck("rounding", now.rounding, NEAREST)]
    known = known_answers()
    return [
        MachineCheck("subnormals", "kept", "kept"),
        *(
            MachineCheck(name, digest, known.get(name, "not recorded"))
            for name, digest in answers()
        ),
    ]


def known_answers() -> dict[str, str]:
    """The committed digests by name."""
    file = resources.files("precision_lab.inputs.data") / "known_answers.json"
    digests: dict[str, str] = json.loads(file.read_text("utf-8"))
    return digests


def answers() -> Iterator[tuple[str, str]]:
    """The digests of this machine, one a row of each table."""
    single, double = patterns()
    for row in formats.values():
        modes = [mode for mode in MODES if mode != "stochastic" and row.bits < 64]
        rounded = (
            row.round(x, mode=mode) for mode in modes or ["nearest_even"] for x in (single, double)
        )
        yield f"rounding:{row.name}", digest(*rounded)
    for family in families:
        yield f"inputs:{family}", digest(make_inputs(family, rows=ROWS, hidden=HIDDEN, seed=SEED))
    for capture, shipped in captures.items():
        try:
            layers = shipped.load().layers
        except InputError as error:
            yield f"capture:{capture}", str(error)
            continue
        parts = (part for layer in layers for part in (layer.x, layer.weight, layer.bias))
        stored = (part.astype(np.float64) for part in parts if part is not None)
        yield f"capture:{capture}", digest(*stored)
    values = make_inputs("normal", rows=ROWS, hidden=HIDDEN, seed=SEED)
    x, weight = formats["bfloat16"].cast(values), formats["bfloat16"].cast(1 + values[0] / 8)
    for norm in norms:
        exact = truth(norm, x, weight, eps=EPS)
        roundings = (exact.round(row).astype(np.float64) for row in formats.values())
        yield f"truth:{norm}", digest(*roundings)
    for plan in plans:
        yield f"emulate:{plan}", digest(emulate(x, weight, eps=EPS, plan=plan).astype(np.float64))


def patterns() -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Bit patterns spread over all of float32 and float64, NaN and infinities included."""
    count = np.arange(2**15, dtype=np.uint64)
    spread = count * np.uint64(0x9E3779B97F4A7C15)
    return (spread >> np.uint64(32)).astype(np.uint32).view(np.float32), spread.view(np.float64)


def digest(*arrays: NDArray[np.float64]) -> str:
    """SHA-256 of values as little-endian float64, every NaN the same."""
    total = hashlib.sha256()
    for array in arrays:
        values = np.where(np.isnan(array), np.nan, array).astype("<f8")
        total.update(values.tobytes())
    return total.hexdigest()
