# SPDX-License-Identifier: Apache-2.0
"""`precision-lab doctor`: whether this machine computes what it should."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from precision_lab.cli.output import as_json, fields, print_json, print_pairs

if TYPE_CHECKING:
    from precision_lab.doctor import MachineCheck


@click.command("doctor")
@as_json
@click.pass_context
def command(ctx: click.Context, *, as_json: bool) -> None:
    """Show versions, whether subnormals are kept, and whether known answers come out.

    Exit code 1 if a check fails.
    """
    from precision_lab import doctor

    checks = doctor.examine()
    failed = [check for check in checks if not check.passed]
    if as_json:
        print_json(
            {
                "versions": doctor.versions(),
                "machine": doctor.machine(),
                "checks": [fields(check, "name passed found expected") for check in checks],
                "passed": not failed,
            }
        )
    else:
        for pairs in (doctor.versions(), doctor.machine()):
            print_pairs((name, value or "not installed") for name, value in pairs.items())
            click.echo()
        by_kind: dict[str, list[MachineCheck]] = {}
        for check in checks:
            by_kind.setdefault(check.name.partition(":")[0], []).append(check)
        print_pairs((kind, summary(some)) for kind, some in by_kind.items())
        for check in failed:
            click.echo(f"\n{check.name}: found {check.found}, should be {check.expected}")
    ctx.exit(1 if failed else 0)


def summary(checks: list[MachineCheck]) -> str:
    """How many checks of a kind passed."""
    passed = sum(check.passed for check in checks)
    verdict = "ok" if passed == len(checks) else "DIFFERS"
    return f"{verdict}: {passed} of {len(checks)} as they should be"
