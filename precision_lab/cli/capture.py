# SPDX-License-Identifier: Apache-2.0
"""`precision-lab capture MODEL`: what enters every norm of one's own torch model, as a file."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from precision_lab.cli.output import as_json, columns, emit
from precision_lab.exceptions import InputError
from precision_lab.inputs import SUFFIX
from precision_lab.kernels.torch import ROWS, Recorded, capture

if TYPE_CHECKING:
    from pathlib import Path


@click.command("capture")
@click.argument("model")
@click.option(
    "--input",
    "given",
    required=True,
    metavar="INPUT",
    help="file.py:name of a tensor, a tuple or a dict; or of a function of the model, which runs "
    "it, or of nothing, which makes its input.",
)
@click.option("--out", required=True, metavar="FILE", help=f"Where to write; ends in {SUFFIX}.")
@click.option("--rows", type=int, default=ROWS, show_default=True, help="Rows kept a layer.")
@click.option("--only", default="", metavar="PART", help="Norms whose name has this part alone.")
@as_json
def command(model: str, *, given: str, out: str, rows: int, only: str, as_json: bool) -> None:
    """Record what enters every norm of MODEL while it runs on INPUT.

    MODEL is file.py:name or package.module:name: a torch module, or a function or class that makes
    one. It runs as for inference: eval(), with no gradient. A model whose norms differ in kind or
    in eps gives a file for each.
    """
    if not out.endswith(SUFFIX):
        raise InputError(f"{out} would be no capture: give a name that ends in {SUFFIX}")
    recorded = _recorded(model, given, rows=rows, only=only)
    files = recorded.write(out)
    for sentence in recorded.untold:
        click.echo(f"precision-lab: {sentence}", err=True)
    told = [
        _told(one, path) for one, path in zip(recorded.captures, files, strict=True)
    ]  # fmt: skip
    if as_json:
        emit({"model": recorded.captures[0].model, "captures": told, "untold": recorded.untold})
        return
    columns(
        ("file", "norm", "layers", "rows", "format", "eps"),
        [
            (one["file"], one["norm"], len(one["layers"]), one["rows"], one["format"], one["eps"])
            for one in told
        ],
        left=2,
    )
    if len(told) > 1:
        click.echo("the model has norms of several kinds: a file each")


def _recorded(model: str, given: str, *, rows: int, only: str) -> Recorded:
    """The model of this name, run on the input of that name."""
    from precision_lab.cli.modules import made_module
    from precision_lab.kernels.torch import tensors as bridge
    from precision_lab.processes import RefusedError, guard_call, import_folder, load_values

    bridge.version("cpu")
    import torch

    found, input_ = load_values(model, given)
    with ExitStack() as places:
        for place in dict.fromkeys(where.rpartition(":")[0] for where in (model, given)):
            places.enter_context(import_folder(place))
        made = made_module(model, found)
        recorded = capture(made.eval(), rows=rows, only=only)
        try:
            with guard_call(f"running {model}"), torch.no_grad(), recorded:
                _run(made, input_)
        except RefusedError as error:
            raise InputError(f"{model} does not run on {given}: it raised {error}") from error
    return recorded


def _run(model: Any, given: Any) -> None:
    """Run a model on what was given, in whichever way that is."""
    import torch

    if inspect.isfunction(given):
        if inspect.signature(given).parameters:
            given(model)
            return
        given = given()
    if isinstance(given, torch.Tensor):
        model(given)
    elif isinstance(given, Mapping):
        model(**given)
    elif isinstance(given, (list, tuple)):
        model(*given)
    else:
        raise TypeError(
            f"the input is {type(given).__name__}, not a tensor, a tuple, a dict or a function"
        )


def _told(one: Any, path: Path) -> dict[str, Any]:
    """What is told of a capture."""
    return {
        "file": str(path),
        "norm": one.norm,
        "eps": one.eps,
        "weight_offset": one.weight_offset,
        "rows": max(len(layer.x) for layer in one.layers),
        "format": ", ".join(sorted({layer.x.dtype.name for layer in one.layers})),
        "layers": [
            {
                "name": layer.name,
                "rows": len(layer.x),
                "hidden": layer.x.shape[1],
                "format": layer.x.dtype.name,
            }
            for layer in one.layers
        ],
    }
