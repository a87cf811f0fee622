# SPDX-License-Identifier: Apache-2.0
"""The command `precision-lab`.

Data goes to standard output, progress and warnings to standard error. Exit codes: 0 done, 1 a
check failed, 2 bad input or usage, 3 stopped by a limit or a full disk and resumable, 130
interrupted.

It must not know how an answer is computed: commands parse, call and print.
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys
from typing import TYPE_CHECKING, NoReturn

import click

from precision_lab.exceptions import InputError, StoppedError, the_nearest
from precision_lab.versions import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

DONE, CHECK_FAILED, BAD_INPUT, STOPPED, INTERRUPTED = 0, 1, 2, 3, 130
DISK_FULL = {errno.ENOSPC, errno.EDQUOT}
SET = (
    " It belongs to precision-lab steps PLAN --set SWITCH=VALUE; plans diff takes 'PLAN "
    "SWITCH=VALUE', and a sweep's file tables of switches."
)
"""The hint where a command has no --set."""
RESUMABLE = {"report", "sweep"}
"""Commands that go on where they were interrupted."""

# One module a command, imported when it is asked for: `--help` and a typo wait for none of them.
COMMANDS = {
    "report": "the analyses as pages with charts: the main job",
    "validate": "is this kernel right? no tolerance is guessed",
    "identify": "which plan a kernel follows, bit for bit",
    "compare": "two kernels on the same probes, bit by bit",
    "vectors": "inputs as files for hardware with no Python, and its outputs judged",
    "eps": "which eps is right for a model, and whether a port kept it",
    "sweep": "a grid of cases from a TOML file, measured into one file",
    "merge": "the results of shards put into one file",
    "export": "results as CSV, JSON lines or Parquet",
    "steps": "one row through a plan, step by step, exact beside emulated",
    "truth": "the exact norm of a row, correctly rounded to each format",
    "explain": "one value in one format: code, neighbours, every rounding",
    "formats": "the number formats and what follows from them",
    "plans": "the plans and their switches",
    "inputs": "the families of inputs and the captured activations",
    "capture": "what enters every norm of your own torch model, as a file",
    "conformance": "hold a rounding function to every decision point",
    "doctor": "versions, subnormals, known answers",
}

START = """\
precision-lab report              every analysis, as pages to read: reports/latest/index.html
precision-lab validate hf-llama   is this kernel right? Of your own, path/to/file.py:function
precision-lab steps hf-llama      one row through Llama's RMSNorm, step by step, exact beside it
precision-lab truth rms 3 4       the exact norm of a row, correctly rounded to each format
precision-lab plans               the implementations that can be emulated, and their switches
precision-lab --help              all commands"""


class Commands(click.Group):
    """The commands by name, loaded on demand, with the nearest names for a wrong one."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """All names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of this name, from the module of this name."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"precision_lab.cli.{cmd_name}").command
        assert isinstance(command, click.Command)  # noqa: S101
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, with an error that names the nearest commands."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            near = the_nearest(args[0], COMMANDS)
            raise click.UsageError(f"unknown command {args[0]!r}: {near}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """As click does it; a reader that closed the pipe has what it wanted, which is no error."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            discard_output()
            return DONE
        return result

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """One line a command, without loading any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="precision-lab")
@click.pass_context
def group(ctx: click.Context) -> None:
    """How RMSNorm and LayerNorm behave in low precision, with evidence."""
    if ctx.invoked_subcommand is None:
        click.echo(START)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; give its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if sys.stdout is None:
        # The next file opened would take its place, and be written into.
        return report_error("standard output is closed: send it to a file or to /dev/null", STOPPED)
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a character gets its code instead.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = group.main(arguments, prog_name="precision-lab", standalone_mode=False)
    except InputError as error:
        return report_error(str(error), BAD_INPUT)
    except click.ClickException as error:
        return report_error(error.format_message() + hint(error), BAD_INPUT)
    except StoppedError as error:
        return report_error(str(error), STOPPED)
    except (KeyboardInterrupt, click.Abort):
        on = "; the same command goes on from here" if RESUMABLE & set(arguments[:1]) else ""
        return report_error(f"interrupted{on}", INTERRUPTED)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        message = f"{where}{error.strerror or error}"
        if error.errno in DISK_FULL:
            return report_error(f"{message}; make room, and the same command goes on", STOPPED)
        return report_error(message, BAD_INPUT)
    return code if isinstance(code, int) else DONE


def hint(error: click.ClickException) -> str:
    """What to add to an error of click's own."""
    is_set = isinstance(error, click.NoSuchOption) and error.option_name == "--set"
    return SET if is_set else ""


def discard_output() -> None:
    """Send the rest of standard output nowhere: Python flushes once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def report_error(message: str, code: int) -> int:
    """One sentence on standard error; the exit code back."""
    click.echo(f"precision-lab: {message}", err=True)
    return code
