# SPDX-License-Identifier: Apache-2.0
"""What fields mean, read from the numpydoc text that documents them: it is written down once."""

from __future__ import annotations

import inspect
import re

PARAMETERS = re.compile(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-+\n|\Z)", re.MULTILINE | re.DOTALL)
ENTRY = re.compile(r"^(\w[\w, ]*)\n((?:[ \t]+.*\n?|\n)+)", re.MULTILINE)


def meanings(record: type) -> dict[str, str]:
    """The meaning of each parameter of a class, in one paragraph each.

    Parameters
    ----------
    record
        A class whose docstring has a section ``Parameters``. Under ``python -OO`` it has none, and
        neither are there meanings.
    """
    section = PARAMETERS.search(inspect.cleandoc(record.__doc__ or ""))
    by_name: dict[str, str] = {}
    for names, text in ENTRY.findall(section[1] if section else ""):
        meaning = " ".join(text.replace("``", "").replace("`", "").split())
        by_name |= dict.fromkeys(re.split(r",\s*", names.strip()), meaning)
    return by_name
