# SPDX-License-Identifier: Apache-2.0
"""`precision-lab vectors`: inputs as files, for hardware with no Python, and what comes back."""

from __future__ import annotations

from typing import Any

import click

from precision_lab.cli.kernel_options import CALLS, CLAIMS, OVERFLOW, add_options, read_options
from precision_lab.cli.output import as_json, print_answer
from precision_lab.exceptions import InputError, the_nearest


class Pair(click.Group):
    """The two commands, with the nearest name for a wrong one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, with an error that names the nearest command."""
        if args[0] not in self.commands and not args[0].startswith("-"):
            near = the_nearest(args[0], self.commands)
            raise click.UsageError(f"vectors has no command {args[0]!r}: {near}", ctx)
        return super().resolve_command(ctx, args)


@click.group("vectors", cls=Pair)
def command() -> None:
    """Golden vectors: have a kernel judged where no Python runs.

    `write` puts inputs into safetensors files, `check` judges the outputs that were put beside
    them.
    """


@command.command("write")
@click.argument("folder", metavar="DIR")
@add_options(*CLAIMS, *CALLS)
@OVERFLOW
@click.option(
    "--limit", default=256, show_default=True, type=click.IntRange(min=1), metavar="MIB",
    help="Of inputs at most.",
)  # fmt: skip
def write(folder: str, *, limit: int, **options: Any) -> None:
    """Write the probes into DIR: a file for each hidden size, and manifest.json.

    A call cNNN is the tensors cNNN.x, cNNN.eps, and cNNN.weight and cNNN.bias where it has them.
    Its output goes into hSIZE.y.safetensors, beside hSIZE.safetensors, as cNNN.y.
    """
    from precision_lab.validation.vectors import write_vectors

    arguments = read_options(options)
    # Where an option is absent the function's default serves; a seed may be 0.
    chosen = {name: value for name, value in arguments.items() if value or name == "seed"}
    written = write_vectors(folder, limit=limit * 2**20, **chosen)
    first = written.files[0]
    click.echo(
        f"{written.calls} calls, {written.size / 2**20:.1f} MiB, in {len(written.files)} files of"
        f" {written.folder}"
    )
    click.echo(
        f"put each output beside its inputs: c000.y and so on of {first}.safetensors into"
        f" {first}.y.safetensors; then: precision-lab vectors check {written.folder}"
    )


@command.command("check")
@click.argument("folder", metavar="DIR")
@click.option("--plan", metavar="NAME", help="Hold them to this plan, not to all sound ones.")
@click.option("--name", metavar="NAME", help="Of the kernel; that of DIR if absent.")
@click.option("--partial", is_flag=True, help="Judge the outputs that are there, if not all are.")
@as_json
@click.pass_context
def check(
    ctx: click.Context,
    folder: str,
    *,
    plan: str | None,
    name: str | None,
    partial: bool,
    as_json: bool,
) -> None:
    """Judge the outputs in DIR. Exit code 1 if anything is wrong, 2 if outputs are missing."""
    from precision_lab.validation.vectors import check_vectors

    if name is not None and not (name.strip() and name.isprintable()):
        raise InputError(f"{name!r} is no name: give printable characters")
    verdict = check_vectors(folder, plan=plan, name=name, partial=partial)
    print_answer(verdict, as_json=as_json)
    ctx.exit(0 if verdict.passed else 1)
