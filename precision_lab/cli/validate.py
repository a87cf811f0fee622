# SPDX-License-Identifier: Apache-2.0
"""`precision-lab validate KERNEL`: is this kernel right, and why not."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from precision_lab.cli.kernel_options import (
    CALLS,
    CLAIMS,
    KERNEL,
    MACHINE,
    OVERFLOW,
    add_options,
    read_options,
)
from precision_lab.cli.output import (
    as_json,
    fields,
    print_answer,
    print_json,
    print_note,
    print_table,
    write_page,
)
from precision_lab.exceptions import InputError

if TYPE_CHECKING:
    from precision_lab.validation import Verdict

HELP = f"""\
Judge KERNEL with no tolerance guessed: could a sound computation have given these outputs?

{KERNEL}

It runs in a process of its own, where it may hang and crash. Exit code 1 if anything is wrong."""


@click.command("validate", help=HELP)
@click.argument("kernel", metavar="KERNEL", required=False)
@add_options(*CLAIMS, *CALLS)
@OVERFLOW
@click.option("--plan", metavar="NAME", help="Hold it to this plan, not to all sound ones.")
@click.option("--inputs", metavar="CAPTURE", help="A capture, whose rows are tried too.")
@click.option("--require", multiple=True, metavar="NAMES", help="Properties that it must have.")
@add_options(*MACHINE)
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
    /,
    kernel: str | None,
    *,
    as_json: bool,
    html: str | None,
    reproducer: str | None,
    list_probes: bool,
    **options: Any,
) -> None:
    """See HELP, which click shows."""
    if list_probes:
        show_probes(as_json=as_json)
        return
    if kernel is None:
        raise InputError("name a kernel, as in precision-lab validate path/to/file.py:function")
    from precision_lab.files import check_file, check_folder

    if html is not None:
        check_file(html)
    if reproducer is not None:
        check_folder(reproducer)
    from precision_lab.validation import validate

    arguments = read_options(options)
    verdict = validate(kernel, isolate=True, **arguments)
    print_answer(verdict, as_json=as_json)
    if html is not None:
        from precision_lab.report import verdict_html

        write_page(html, verdict_html, verdict, title="the verdict")
    if reproducer is not None:
        machine = {name: arguments[name] for name in ("framework", "device")}
        reproduce(verdict, reproducer, kernel, **machine)
    ctx.exit(0 if verdict.passed else 1)


def show_probes(*, as_json: bool) -> None:
    """The probes and what each exposes."""
    from precision_lab.validation import probes

    if as_json:
        print_json([fields(row, "name exposes hidden rows gains") for row in probes.values()])
    else:
        print_table(
            ("probe", "what it exposes"), ((row.name, row.exposes) for row in probes.values())
        )


def reproduce(verdict: Verdict, folder: str, kernel: str, **machine: str) -> None:
    """Write the first fault's inputs and a script that shows it."""
    from precision_lab.validation import write_reproducer

    script = write_reproducer(verdict, folder, kernel=kernel, **machine)
    if script is None:
        print_note("no fault has inputs to be written down")
    else:
        print_note(f"python {shlex.quote(str(script))} shows it")
