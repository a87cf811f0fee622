# SPDX-License-Identifier: Apache-2.0
"""The norms of timm's models, built on the meta device; run as a script, it writes their file.

torchvision, which timm needs for its data alone, is stood in for where it is missing. Nothing of
`precision_lab` is used here.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import sys
import types
import warnings
from collections import Counter
from pathlib import Path

OUT = Path(__file__).parents[2] / "precision_lab" / "models" / "timm_norms.json"
PARTS = ("transforms", "transforms.functional", "transforms.v2", "ops", "ops.misc", "datasets",
         "models", "models.feature_extraction", "utils")  # fmt: skip
GROUPED = (
    "BatchNorm",
    "GroupNorm",
    "InstanceNorm",
    "LocalResponse",
    "FrozenBatch",
    "FilterResponse",
)


class AnyName(type):
    """Classes that have every attribute: its name."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class StandIn(types.ModuleType):
    """A module that has every name, each a class without content."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, AnyName(name, (), {}))
        return getattr(self, name)


def load():
    """The package timm, imported with what it needs of torchvision."""
    if importlib.util.find_spec("torchvision") is None:
        for part in ("", *PARTS):
            name = f"torchvision.{part}".rstrip(".")
            module = StandIn(name)
            module.__path__ = []
            module.__version__ = "0.0"
            module.__spec__ = importlib.machinery.ModuleSpec(name, None)
            sys.modules[name] = module
            above, _, last = name.rpartition(".")
            if above:
                setattr(sys.modules[above], last, module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import timm
    return timm


def norms(timm, name):
    """A model's norms of rows, counted by kind, eps and width; and the kinds and eps of others."""
    import torch

    with torch.device("meta"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = timm.create_model(name, pretrained=False)
    rows, others = Counter(), set()
    for module in model.modules():
        kind = next((base.__name__ for base in type(module).__mro__
                     if base.__name__.lower().startswith(("layernorm", "rmsnorm", "simplenorm"))
                     or base.__name__.startswith(GROUPED)), "")  # fmt: skip
        leaf = not any(True for _ in module.children())
        if not kind and not (leaf and "norm" in type(module).__name__.lower()):
            continue
        eps = getattr(module, "eps", None)
        shape = getattr(module, "normalized_shape", None)
        lowered = kind.lower()
        if shape is not None and len(shape) == 1 and lowered.startswith(("layernorm", "rmsnorm")):
            rows["rms" if "rms" in lowered else "layer", eps, int(shape[0])] += 1
        else:
            others.add((type(module).__name__, eps))
    return rows, others


def record(timm, name):
    """The line of a model."""
    rows, others = norms(timm, name)
    # The width that most norms have comes first, for it is the stream's.
    ordered = sorted(rows.items(), key=lambda pair: (-pair[1], pair[0]))
    return {
        "norms": [[*key, count] for key, count in ordered],
        "others": [[kind, eps] for kind, eps in sorted(others, key=str)],
    }


def main(names):
    """Write the file; with names, print the lines of these models alone."""
    timm = load()
    if names:
        sys.stdout.write(json.dumps({
            "source": timm.__version__, "models": {name: record(timm, name) for name in names}
        }))  # fmt: skip
        return
    lines = []
    for name in timm.list_models():
        try:
            found = record(timm, name)
        except Exception as error:  # noqa: BLE001 - one model must not stop the others
            sys.stderr.write(f"{name}: {error!r}\n")
            continue
        lines.append(f"{json.dumps(name)}: {json.dumps(found, separators=(',', ':'))}")
    head = f'{{"source": "timm {timm.__version__}, the models that it builds", "models": {{\n'
    OUT.write_text(head + ",\n".join(lines) + "\n}}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
