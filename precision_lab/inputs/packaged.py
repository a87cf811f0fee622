# SPDX-License-Identifier: Apache-2.0
"""The captures that the package ships; `data/README.md` says where they come from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from precision_lab.inputs.capture import Capture, read_capture
from precision_lab.table import Table

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class PackagedCapture:
    """A capture that the package ships."""

    name: str
    description: str
    path: Path

    def load(self) -> Capture:
        """The capture, read once; its arrays cannot be written to."""
        return _load(self.path)


@cache
def _load(path: Path) -> Capture:
    capture = read_capture(path)
    lock(capture)
    return capture


def lock(capture: Capture) -> None:
    """Let nobody write to the arrays of a capture that many share."""
    for layer in capture.layers:
        for array in (layer.x, layer.weight, layer.bias):
            if array is not None:
                array.flags.writeable = False


captures: Table[PackagedCapture] = Table(
    "capture",
    [
        PackagedCapture(
            "smollm2", "SmolLM2-135M-Instruct: 61 RMSNorm layers, 10 tokens of 576",
            DATA / "smollm2.safetensors",
        ),
        PackagedCapture(
            "minilm", "all-MiniLM-L6-v2: 13 LayerNorm layers, 16 tokens of 384",
            DATA / "minilm.safetensors",
        ),
    ],
)  # fmt: skip
