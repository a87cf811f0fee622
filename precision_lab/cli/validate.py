# SPDX-License-Identifier: Apache-2.0
"""`precision-lab validate KERNEL`: is this kernel right, and why not."""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING

import click

from precision_lab.cli.judging import (
    CALLS,
    CLAIMS,
    KERNEL,
    TIME_LIMIT,
    a_capture,
    options,
    real,
    reals,
    wholes,
    words,
)
from precision_lab.cli.output import as_json, columns, emit
from precision_lab.exceptions import InputError

if TYPE_CHECKING:
    from precision_lab.validation import Verdict

HELP = f"""\
Judge KERNEL with no tolerance guessed: could a sound computation have given these outputs?

{KERNEL}

It runs in a process of its own, where it may hang and crash. Exit code 1 if anything is wrong."""


@click.command("validate", help=HELP)
@click.argument("kernel", metavar="KERNEL", required=False)
@options(CLAIMS, CALLS)
@click.option("--overflow", default="ieee", show_default=True, help="ieee or saturate.")
@click.option("--plan", metavar="NAME", help="Hold it to this plan, not to all sound ones.")
@click.option("--inputs", metavar="CAPTURE", help="A capture, whose rows are tried too.")
@click.option("--require", multiple=True, metavar="NAMES", help="Properties that it must have.")
@click.option("--framework", default="numpy", show_default=True, help="numpy or torch.")
@click.option("--device", default="cpu", show_default=True, help="cpu or cuda, of torch.")
@options((TIME_LIMIT,))
@click.option(
    "--diagnosis/--no-diagnosis", "diagnose", default=True, help="Look for the plan behind it."
)
@as_json
@click.option("--html", metavar="FILE", help="Write the verdict as a page too.")
@click.option("--reproducer", metavar="DIR", help="Write the first fault's inputs and a script.")
@click.option("--list-probes", is_flag=True, help="Say what is tried, and no more.")
@click.pass_context
def command(
    ctx: click.Context,
    kernel: str | None,
    *,
    norm: str | None,
    own: str | None,
    weight_format: str | None,
    output_format: str | None,
    weight_offset: str | None,
    eps: tuple[str, ...],
    hidden: tuple[str, ...],
    rows: tuple[str, ...],
    probes: tuple[str, ...],
    seed: int,
    overflow: str,
    plan: str | None,
    inputs: str | None,
    require: tuple[str, ...],
    framework: str,
    device: str,
    time_limit: str,
    diagnose: bool,
    as_json: bool,
    html: str | None,
    reproducer: str | None,
    list_probes: bool,
) -> None:
    """See HELP, which click shows."""
    if list_probes:
        _list(as_json=as_json)
        return
    if kernel is None:
        raise InputError("name a kernel, as in precision-lab validate path/to/file.py:function")
    from precision_lab.files import check_file, check_folder

    if html is not None:
        check_file(html)
    if reproducer is not None:
        check_folder(reproducer)
    from precision_lab.validation import validate

    verdict = validate(
        kernel,
        norm=norm,
        format=own,
        weight_format=weight_format,
        output_format=output_format,
        eps=reals(eps),
        weight_offset=real(weight_offset),
        overflow=overflow,
        plan=plan,
        hidden=wholes("hidden", hidden),
        rows=wholes("rows", rows),
        probes=words(probes),
        inputs=a_capture(inputs),
        require=words(require) or (),
        seed=seed,
        framework=framework,
        device=device,
        isolate=True,
        time_limit=real(time_limit) or 0.0,
        diagnose=diagnose,
    )
    if as_json:
        emit(json.loads(verdict.to_json()))
    else:
        click.echo(str(verdict))
    if html is not None:
        _page(verdict, html)
    if reproducer is not None:
        _reproduce(verdict, reproducer, kernel, framework=framework, device=device)
    ctx.exit(0 if verdict.passed else 1)


def _list(*, as_json: bool) -> None:
    from precision_lab.validation import probes

    if as_json:
        emit(
            [
                {
                    "name": row.name,
                    "exposes": row.exposes,
                    "hidden": list(row.hidden),
                    "rows": row.rows,
                    "gains": list(row.gains),
                }
                for row in probes.values()
            ]
        )
        return
    columns(("probe", "what it exposes"), ((row.name, row.exposes) for row in probes.values()))


def _page(verdict: Verdict, path: str) -> None:
    from precision_lab.files import replace_file
    from precision_lab.report import verdict_html

    line = shlex.join(["precision-lab", *sys.argv[1:]])
    replace_file(path, [verdict_html(verdict, command=line).encode()])
    click.echo(f"precision-lab: the verdict as a page: {path}", err=True)


def _reproduce(verdict: Verdict, folder: str, kernel: str, *, framework: str, device: str) -> None:
    from precision_lab.validation import write_reproducer

    script = write_reproducer(verdict, folder, kernel=kernel, framework=framework, device=device)
    if script is None:
        click.echo("precision-lab: no fault has inputs to be written down", err=True)
    else:
        click.echo(f"precision-lab: python {shlex.quote(str(script))} shows it", err=True)
