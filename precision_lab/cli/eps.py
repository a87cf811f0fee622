# SPDX-License-Identifier: Apache-2.0
"""`precision-lab eps MODEL`: which eps is right for this model, and whether a port kept it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from precision_lab.cli.kernel_options import read_number
from precision_lab.cli.output import fields, print_answer, print_json, print_table, write_page
from precision_lab.exceptions import InputError

if TYPE_CHECKING:
    from precision_lab.eps import EpsComparison
    from precision_lab.models import KnownModel

NUMBER = re.compile(r"[+-]?(0x)?[0-9.][0-9a-f.]*([ep][+-]?[0-9]+)?", re.IGNORECASE)
"""An eps in the place of a second model, not a name such as 1b.json."""

HELP = """\
Say which eps is safe for MODEL in the format and the plan that it will run in, and why.

MODEL is a Hugging Face config (a .json file or its folder; gains in safetensors beside it are
used), a config of diffusers, timm, TensorRT-LLM or a PEFT adapter, Meta's params.json, a GGUF file
or an ONNX model with their gains, a capture (.safetensors, or smollm2 and minilm, which come with
the package), the name of a known model (--list), or a torch module: path/to/file.py:name,
package.module:name, which may be a function that makes it.

With a second MODEL, or an eps, say whether a port kept the eps of the first, and its gains where
both have weights, and what a wrong one costs.

Exit code 0 whatever the answer is; with --check, 1 unless it is "keep", and with a second MODEL 1
where eps or a gain was not kept."""


@click.command("eps", help=HELP)
@click.argument("model", metavar="MODEL", required=False)
@click.argument("other", metavar="[OTHER]", required=False)
@click.option(
    "--format",
    metavar="NAME",
    help="It runs in this; the model's own if absent. Apart: x=bfloat16,output=float8_e4m3fn.",
)
@click.option("--plan", metavar="NAME", help="How it computes; the model's own plan if absent.")
@click.option("--port-plan", metavar="NAME", help="How OTHER computes; as its own code if absent.")
@click.option("--norm", help="rms or layer, where the model does not say.")
@click.option("--eps", metavar="NUMBER", help="Instead of the model's own.")
@click.option("--activations", metavar="FILE", help="A capture: its rows are the evidence.")
@click.option(
    "--rms", nargs=2, metavar="LOW HIGH", help="Without rows, those of this RMS: 0.01 to 100."
)
@click.option("--new", is_flag=True, help="A new design: eps is free, not part of the function.")
@click.option(
    "--amplification", metavar="NUMBER",
    help="How far noise in a row near zero may grow, with --new; 1024 times by default.",
)  # fmt: skip
@click.option(
    "--check",
    is_flag=True,
    help='Exit code 1 unless the answer is "keep"; of two, unless eps and gains were kept.',
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON; NaN and infinity are null.")
@click.option("--html", metavar="FILE", help="Write the answer as a page too.")
@click.option("--list", "listed", is_flag=True, help="List the known models, and no more.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    model: str | None,
    other: str | None,
    *,
    check: bool,
    as_json: bool,
    listed: bool,
    **options: Any,
) -> None:
    """See HELP, which click shows."""
    if listed:
        show_models(as_json=as_json)
        return
    if not model:
        raise InputError("name a model, as in precision-lab eps Llama-3.1-8B, or a config's folder")
    refuse_contradictions(options, other=other)
    rms, amplification = options["rms"], options["amplification"]
    shared = {name: options[name] for name in ("format", "plan", "activations")}
    if rms is not None:
        shared["rms"] = (read_number(rms[0]), read_number(rms[1]))
    if other is not None:
        comparison = compare(model, other, port_plan=options["port_plan"], **shared)
        print_answer(comparison, as_json=as_json)
        ctx.exit(int(check and not (comparison.kept and comparison.gains_kept)))
    if amplification is not None:
        shared["amplification"] = read_number(amplification)
    from precision_lab.eps import recommend_eps

    (subject,) = find_models(model)
    eps = read_number(options["eps"])
    advice = recommend_eps(subject, norm=options["norm"], eps=eps, new=options["new"], **shared)
    print_answer(advice, as_json=as_json)
    if options["html"] is not None:
        from precision_lab.report import eps_html

        write_page(options["html"], eps_html, advice, title="the answer")
    ctx.exit(int(check and advice.verdict != "keep"))


def refuse_contradictions(options: dict[str, Any], *, other: str | None) -> None:
    """Refuse options that would be of no effect beside each other."""
    if options["rms"] is not None and options["activations"] is not None:
        raise InputError("--rms is of assumed rows, and --activations gives rows: give one")
    alone = [name for name in ("norm", "eps", "new", "html", "amplification") if options[name]]
    if other is not None and alone:
        raise InputError(f"--{alone[0]} is for one model: two are compared as they are")
    if other is None and options["port_plan"] is not None:
        raise InputError("--port-plan is for a second model: name one, or give --plan")
    if options["amplification"] is not None and not options["new"]:
        raise InputError("--amplification is for a new design: give --new with it")


def compare(first: str, second: str, **options: Any) -> EpsComparison:
    """Whether the second model, or an eps alone, is what the first has."""
    from precision_lab.eps import compare_eps
    from precision_lab.files import number

    if NUMBER.fullmatch(second):
        models = [*find_models(first), number(second)]
    else:
        models = find_models(first, second)
    return compare_eps(*models, **options)


def find_models(*names: str) -> list[Any]:
    """The models of these names: a torch module as what it says of itself, others as they are."""
    from precision_lab.cli.modules import named_modules, names_module
    from precision_lab.eps import find_model

    wheres = [name for name in names if names_module(name)]
    if not wheres:
        return [*names]
    with named_modules(*wheres) as modules:
        subjects = dict(zip(wheres, map(find_model, modules), strict=True))
    return [subjects.get(name, name) for name in names]


def show_models(*, as_json: bool) -> None:
    """The known models."""
    from precision_lab.models import known_models

    rows = known_models.values()
    if as_json:
        print_json(
            [
                {
                    **fields(row, "name norm eps hidden_size other_sizes model_type"),
                    "class_default": row.type.eps_default,
                    **fields(row, "plan released checked source"),
                }
                for row in rows
            ]
        )
        return
    print_table(
        ("model", "norm", "eps", "of its class", "hidden", "plan"),
        (
            (
                row.name, row.norm, _eps_text(row),
                default_text(row.type.eps_default, row.eps),
                row.hidden_size, row.plan,
            )
            for row in rows
        ),
    )  # fmt: skip
    click.echo("\nof its class: what transformers takes where a config names no eps; = the same.")
    click.echo("(class): a default of the config class, for nothing is known of a checkpoint.")
    click.echo("?: not checked against the release; its config.json tells.")
    click.echo("Where each number comes from: precision-lab eps --list --json.")


def _eps_text(row: KnownModel) -> str:
    """The eps of a known model, marked where it is a class's or its source was not read."""
    if not row.released:
        return f"{row.eps:g} (class)"
    return f"{row.eps:g}" if row.checked else f"{row.eps:g} ?"


def default_text(default: float | None, eps: float) -> str:
    """The eps of a class beside that of the model."""
    if default is None:
        return "-"
    return "=" if default == eps else f"{default:g}"
