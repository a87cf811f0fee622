# SPDX-License-Identifier: Apache-2.0
"""`precision-lab capture MODEL`: what enters every norm of one's own torch model, as a file."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from precision_lab.cli.output import as_json, fields, print_json, print_note, print_table
from precision_lab.exceptions import InputError
from precision_lab.inputs import SUFFIX
from precision_lab.kernels.torch import ROWS, Recorded, capture

if TYPE_CHECKING:
    from pathlib import Path

    from precision_lab.inputs import Capture


@click.command("capture")
@click.argument("model")
@click.option(
    "--input",
    "source",
    required=True,
    metavar="INPUT",
    help="file.py:name of a tensor, a tuple or a dict; or of a function of the model, which runs "
    "it, or of nothing, which makes its input.",
)
@click.option("--out", required=True, metavar="FILE", help=f"Where to write; ends in {SUFFIX}.")
@click.option("--rows", type=int, default=ROWS, show_default=True, help="Rows kept a layer.")
@click.option("--only", default="", metavar="PART", help="Norms whose name has this part alone.")
@as_json
def command(model: str, *, source: str, out: str, rows: int, only: str, as_json: bool) -> None:
    """Record what enters every norm of MODEL while it runs on INPUT.

    MODEL is file.py:name or package.module:name: a torch module, or a function or class that makes
    one. It runs as for inference: eval(), with no gradient. A model whose norms differ in kind or
    in eps gives a file for each.
    """
    if not out.endswith(SUFFIX):
        raise InputError(f"{out} would be no capture: give a name that ends in {SUFFIX}")
    recorded = record(model, source, rows=rows, only=only)
    files = recorded.write(out)
    for sentence in recorded.untold:
        print_note(sentence)
    captures = [
        describe(one, path) for one, path in zip(recorded.captures, files, strict=True)
    ]  # fmt: skip
    if as_json:
        name = recorded.captures[0].model
        print_json({"model": name, "captures": captures, "untold": recorded.untold})
        return
    print_table(
        ("file", "norm", "layers", "rows", "format", "eps"),
        [
            (one["file"], one["norm"], len(one["layers"]), one["rows"], one["format"], one["eps"])
            for one in captures
        ],
        left=2,
    )
    if len(captures) > 1:
        click.echo("the model has norms of several kinds: a file each")


def record(model: str, source: str, *, rows: int, only: str) -> Recorded:
    """The model of this name, run on the input of that name."""
    from precision_lab.cli.modules import make_module
    from precision_lab.kernels.torch import tensors as bridge
    from precision_lab.processes import RefusedError, guard_call, import_folder, load_values

    bridge.version("cpu")
    import torch

    value, inputs = load_values(model, source)
    with ExitStack() as places:
        for place in dict.fromkeys(where.rpartition(":")[0] for where in (model, source)):
            places.enter_context(import_folder(place))
        module = make_module(model, value)
        recorded = capture(module.eval(), rows=rows, only=only)
        try:
            with guard_call(f"running {model}"), torch.no_grad(), recorded:
                run_model(module, inputs)
        except RefusedError as error:
            raise InputError(f"{model} does not run on {source}: it raised {error}") from error
    return recorded


def run_model(model: Any, inputs: Any) -> None:
    """Run a model on a tensor, a tuple, a dict, or as a function says."""
    import torch

    if inspect.isfunction(inputs):
        if inspect.signature(inputs).parameters:
            inputs(model)
            return
        inputs = inputs()
    if isinstance(inputs, torch.Tensor):
        model(inputs)
    elif isinstance(inputs, Mapping):
        model(**inputs)
    elif isinstance(inputs, (list, tuple)):
        model(*inputs)
    else:
        raise TypeError(
            f"the input is {type(inputs).__name__}, not a tensor, a tuple, a dict or a function"
        )


def describe(one: Capture, path: Path) -> dict[str, Any]:
    """A capture as plain data, but for its values."""
    layers = [
        {
            "name": layer.name,
            "rows": len(layer.x),
            "hidden": layer.x.shape[1],
            "format": layer.x.dtype.name,
            "class": layer.class_name,
            "plan": layer.plan,
        }
        for layer in one.layers
    ]
    return {
        "file": str(path),
        **fields(one, "norm eps weight_offset"),
        "rows": max(len(layer.x) for layer in one.layers),
        "format": ", ".join(sorted({layer.x.dtype.name for layer in one.layers})),
        "layers": layers,
    }
