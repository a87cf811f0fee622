# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for the measurement of a case: quick, with every kind of value, and with faults.

Worker processes import them by name, so they stand in a module and not in a test.
"""

from __future__ import annotations

import hashlib
import math
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from precision_lab.exceptions import InputError

if TYPE_CHECKING:
    from precision_lab.sweeps.case import Case


def numbers(case: Case) -> dict[str, Any]:
    """Numbers that follow from the case alone, special ones among them."""
    word = int(hashlib.sha256(case.key.encode()).hexdigest()[:15], 16)
    specials = (math.nan, math.inf, -0.0, 5e-324)
    return {"word": word, "value": word / 7.0, "special": specials[word % 4], "text": "é\n"}


def slow(case: Case) -> dict[str, Any]:
    """The same, in a few milliseconds, leaving the process's number in a file."""
    folder = os.environ.get("STANDINS_FOLDER")
    if folder:
        Path(folder, str(os.getpid())).touch()
    time.sleep(0.004)
    return numbers(case)


def talkative(case: Case) -> dict[str, Any]:
    """Prints, as a library might."""
    print("hello")  # noqa: T201
    os.write(1, b"world\n")
    return numbers(case)


def curious(case: Case) -> dict[str, Any]:
    """Reads standard input, as a debugger does."""
    return {**numbers(case), "read": sys.stdin.read() + os.read(0, 9).decode()}


def faulty(case: Case) -> dict[str, Any]:
    """Fails for one seed as a program does, for another as bad input does."""
    if case.seed == 3:
        raise ZeroDivisionError("no such thing")
    if case.seed == 5:
        raise InputError("seed 5 is bad")
    return numbers(case)


def bad_input(case: Case) -> dict[str, Any]:
    """Fails for one seed."""
    if case.seed == 5:
        raise InputError("seed 5 is bad")
    return numbers(case)


def deadly(case: Case) -> dict[str, Any]:
    """Kills its process for one seed."""
    if case.seed == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return numbers(case)


def deadly_once(case: Case) -> dict[str, Any]:
    """Kills its process for one seed, the first time."""
    mark = Path(os.environ["STANDINS_FOLDER"], "killed")
    if case.seed == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return numbers(case)
