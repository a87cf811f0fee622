# SPDX-License-Identifier: Apache-2.0
"""Arguments that may be negative numbers, told apart from options."""

from __future__ import annotations

import re

import click

from precision_lab.exceptions import the_nearest

NEGATIVE = re.compile(r"-(\d|\.\d|inf|nan)", re.IGNORECASE)


class NumberCommand(click.Command):
    """A command whose arguments may be negative numbers: `-3e-5` is a value, `--jsn` a typo."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does it, with what looks like a negative number taken as an argument."""
        ctx.ignore_unknown_options = True
        known = {name for one in self.get_params(ctx) for name in (*one.opts, *one.secondary_opts)}
        for text in args[: args.index("--") if "--" in args else None]:
            name = text.partition("=")[0]
            if name.startswith("-") and len(name) > 1 and name not in known:
                if not NEGATIVE.match(name):
                    near = the_nearest(name, sorted(known))
                    raise click.UsageError(f"no option {name}: {near}", ctx)
        return super().parse_args(ctx, args)
