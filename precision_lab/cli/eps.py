# SPDX-License-Identifier: Apache-2.0
"""`precision-lab eps MODEL`: which eps is right for this model, and whether a port kept it."""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING, Any

import click

from precision_lab.cli.judging import real
from precision_lab.cli.output import columns, emit
from precision_lab.exceptions import InputError

if TYPE_CHECKING:
    from precision_lab.eps import EpsAdvice

HELP = """\
Say which eps is safe for MODEL in the format and the plan that it will run in, and why.

MODEL is a Hugging Face config (a .json file or its folder; gains in safetensors beside it are
used), a capture (.safetensors, or smollm2 and minilm, which come with the package), the name of a
known model (--list), or a torch module: path/to/file.py:name, package.module:name, which may be a
function that makes it.

With a second MODEL, or an eps, say whether a port kept the eps of the first, and what a wrong one
costs.

Exit code 0 whatever the answer is; with --check, 1 unless it is "keep", and with a second MODEL 1
where eps was not kept."""

CHECK_FAILED = 1


@click.command("eps", help=HELP)
@click.argument("model", metavar="MODEL", required=False)
@click.argument("other", metavar="[OTHER]", required=False)
@click.option("--format", "own", metavar="NAME", help="It runs in this; the model's own if absent.")
@click.option("--plan", metavar="NAME", help="How it computes; the model's own plan if absent.")
@click.option("--port-plan", metavar="NAME", help="How OTHER computes; as its own code if absent.")
@click.option("--norm", help="rms or layer, where the model does not say.")
@click.option("--eps", metavar="NUMBER", help="Instead of the model's own.")
@click.option("--activations", metavar="FILE", help="A capture: its rows are the evidence.")
@click.option(
    "--rms", nargs=2, metavar="LOW HIGH", help="Without rows, those of this rms: 0.1 to 100."
)
@click.option("--new", is_flag=True, help="A new design: eps is free, not part of the function.")
@click.option(
    "--amplification", metavar="NUMBER",
    help="How far noise in a row near zero may grow, with --new; 1024 times by default.",
)  # fmt: skip
@click.option(
    "--check",
    is_flag=True,
    help='Exit code 1 unless the answer is "keep"; of two, unless eps was kept.',
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON; NaN and infinity are null.")
@click.option("--html", metavar="FILE", help="Write the answer as a page too.")
@click.option("--list", "listed", is_flag=True, help="List the known models, and no more.")
@click.pass_context
def command(
    ctx: click.Context,
    model: str | None,
    other: str | None,
    *,
    own: str | None,
    plan: str | None,
    port_plan: str | None,
    norm: str | None,
    eps: str | None,
    activations: str | None,
    rms: tuple[str, str] | None,
    new: bool,
    amplification: str | None,
    check: bool,
    as_json: bool,
    html: str | None,
    listed: bool,
) -> None:
    """See HELP, which click shows."""
    if listed:
        _list(as_json=as_json)
        return
    if not model:
        raise InputError("name a model, as in precision-lab eps Llama-3.1-8B, or a config's folder")
    alone = {"norm": norm, "eps": eps, "new": new, "html": html, "amplification": amplification}
    _refuse(alone, other=other, port_plan=port_plan, rms=rms, activations=activations)
    given: dict[str, Any] = {"format": own, "plan": plan, "activations": activations}
    if rms is not None:
        given["rms"] = (real(rms[0]), real(rms[1]))
    if other is not None:
        _ports(ctx, model, other, given | {"port_plan": port_plan}, as_json=as_json, check=check)
        return
    if amplification is not None:
        given["amplification"] = real(amplification)
    from precision_lab.eps import recommend_eps

    advice = recommend_eps(*_found(model), norm=norm, eps=real(eps), new=new, **given)
    if as_json:
        emit(json.loads(advice.to_json()))
    else:
        click.echo(str(advice))
    if html is not None:
        _page(advice, html)
    ctx.exit(CHECK_FAILED if check and advice.verdict != "keep" else 0)


def _refuse(
    alone: dict[str, Any], *, other: str | None, port_plan: str | None,
    rms: tuple[str, str] | None, activations: str | None,
) -> None:  # fmt: skip
    """Refuse options that would be of no effect beside each other."""
    if rms is not None and activations is not None:
        raise InputError("--rms is of assumed rows, and --activations gives rows: give one")
    absent = [name for name, value in alone.items() if value]
    if other is not None and absent:
        raise InputError(f"--{absent[0]} is for one model: two are compared as they are")
    if other is None and port_plan is not None:
        raise InputError("--port-plan is for a second model: name one, or give --plan")
    if alone["amplification"] is not None and not alone["new"]:
        raise InputError("--amplification is for a new design: give --new with it")


def _ports(
    ctx: click.Context, first: str, second: str, given: dict[str, Any], *,
    as_json: bool, check: bool,
) -> None:  # fmt: skip
    """Whether the second model, or an eps alone, is what the first has."""
    from precision_lab.eps import compare_eps
    from precision_lab.files import number

    try:
        pair = [*_found(first), number(second)]
    except InputError:
        pair = _found(first, second)
    comparison = compare_eps(*pair, **given)
    if as_json:
        emit(json.loads(comparison.to_json()))
    else:
        click.echo(str(comparison))
    ctx.exit(CHECK_FAILED if check and not comparison.kept else 0)


def _found(*names: str) -> list[Any]:
    """The models of these names: a torch module as what it says of itself, others as they are."""
    from precision_lab.cli.modules import named_modules, names_module
    from precision_lab.eps import find_model

    modules = [name for name in names if names_module(name)]
    if not modules:
        return [*names]
    with named_modules(*modules) as made:
        given = dict(zip(modules, map(find_model, made), strict=True))
    return [given.get(name, name) for name in names]


def _list(*, as_json: bool) -> None:
    """The known models."""
    from precision_lab.models import known_models

    if as_json:
        emit(
            [
                {
                    "name": row.name,
                    "norm": row.norm,
                    "eps": row.eps,
                    "hidden_size": row.hidden_size,
                    "other_sizes": dict(row.other_sizes),
                    "model_type": row.model_type,
                    "class_default": row.type.eps_default,
                    "plan": row.plan,
                    "source": row.source,
                }
                for row in known_models.values()
            ]
        )
        return
    columns(
        ("model", "norm", "eps", "of its class", "hidden", "plan"),
        (
            (
                row.name,
                row.norm,
                f"{row.eps:g}",
                _default(row.type.eps_default, row.eps),
                row.hidden_size,
                row.plan,
            )
            for row in known_models.values()
        ),
    )
    click.echo("\nof its class: what transformers takes where a config names no eps; = the same.")
    click.echo("Where each number comes from: precision-lab eps --list --json.")


def _default(default: float | None, eps: float) -> str:
    if default is None:
        return "-"
    return "=" if default == eps else f"{default:g}"


def _page(advice: EpsAdvice, path: str) -> None:
    from precision_lab.files import replace_file
    from precision_lab.report import eps_html

    line = shlex.join(["precision-lab", *sys.argv[1:]])
    replace_file(path, [eps_html(advice, command=line).encode()])
    click.echo(f"precision-lab: the answer as a page: {path}", err=True)
