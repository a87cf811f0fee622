# SPDX-License-Identifier: Apache-2.0
"""`precision-lab doctor`: whether this machine computes what it should."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from precision_lab.cli.output import as_json, emit, facts

if TYPE_CHECKING:
    from precision_lab.doctor import Check


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
        emit(
            {
                "versions": doctor.versions(),
                "machine": doctor.machine(),
                "checks": [
                    {"name": c.name, "passed": c.passed, "found": c.found, "expected": c.expected}
                    for c in checks
                ],
                "passed": not failed,
            }
        )
    else:
        for pairs in (doctor.versions(), doctor.machine()):
            facts((name, value or "not installed") for name, value in pairs.items())
            click.echo()
        kinds = dict.fromkeys(check.name.partition(":")[0] for check in checks)
        facts(
            (kind, summary([c for c in checks if c.name.partition(":")[0] == kind]))
            for kind in kinds
        )
        for check in failed:
            click.echo(f"\n{check.name}: found {check.found}, should be {check.expected}")
    ctx.exit(1 if failed else 0)


def summary(checks: list[Check]) -> str:
    """How many checks of a kind passed."""
    passed = sum(check.passed for check in checks)
    verdict = "ok" if passed == len(checks) else "DIFFERS"
    return f"{verdict}: {passed} of {len(checks)} as they should be"
