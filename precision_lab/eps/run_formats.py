# SPDX-License-Identifier: Apache-2.0
"""The formats that a model runs in: one for all, or those of rows, outputs and gains apart."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from precision_lab.exceptions import InputError, the_nearest
from precision_lab.numbers import Format, formats

if TYPE_CHECKING:
    from precision_lab.plan import Plan

SIDES = ("x", "output", "gain")


@dataclass(frozen=True, kw_only=True)
class RunFormats:
    """The formats of rows, outputs and gains.

    Parameters
    ----------
    x
        Of the rows; of all where nothing else is said.
    output, gain
        Of what comes out, and of the weights; None as the plan has it for rows of this format.
    """

    x: Format
    output: Format | None = None
    gain: Format | None = None

    def apply(self, plan: Plan) -> Plan:
        """The plan with these formats in place of its own."""
        changed: dict[str, str] = {}
        if self.output is not None:
            changed["output_format"] = self.output.name
        if self.gain is not None and plan.gain_format == "input":
            changed["gain_format"] = self.gain.name
        return dataclasses.replace(plan, **changed) if changed else plan  # type: ignore[arg-type]


def run_formats(text: Format | str | None, own: str) -> RunFormats:
    """The formats of a name such as ``bfloat16``, or of ``x=bfloat16,output=float8_e4m3fn``.

    `own` is the model's, for what is not named; float32 where it is "".

    Raises
    ------
    InputError
        For a side or a format that there is not, or one that is named twice.
    """
    usual = formats.find(own or "float32")
    if not isinstance(text, str) or "=" not in text:
        return RunFormats(x=usual if text is None else formats.find(text))
    named: dict[str, Format] = {}
    for pair in text.split(","):
        side, _, name = (each.strip() for each in pair.partition("="))
        if side not in SIDES:
            raise InputError(
                f"{side[:40]!r} in format {text[:80]!r} is no side of a norm: "
                f"{the_nearest(side, SIDES)}"
            )
        if side in named:
            raise InputError(f"format {text[:80]!r} gives {side} twice")
        named[side] = formats.find(name)
    return RunFormats(x=named.get("x", usual), output=named.get("output"), gain=named.get("gain"))
