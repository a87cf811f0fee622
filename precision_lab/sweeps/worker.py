# SPDX-License-Identifier: Apache-2.0
"""A process that measures cases: a line of JSON in for each, a line of JSON out.

It is started by `workers`, holds no state that matters, and ends when its input does: also when
the process that started it was killed.
"""

from __future__ import annotations

import importlib
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from precision_lab import canonical_json as canonical
from precision_lab.exceptions import InputError
from precision_lab.processes import processes
from precision_lab.sweeps.case import Case

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Measure = Callable[[Case], Mapping[str, Any]]


def measure_named(name: str) -> Measure:
    """Import the function that a `module:function` names."""
    module, _, function = name.partition(":")
    found: Measure = getattr(importlib.import_module(module), function)
    return found


def answer(position: int, case: Case, measure: Measure) -> dict[str, Any]:
    """Measure a case: its result as canonical JSON and the seconds it took, or what went wrong."""
    start = time.perf_counter()
    try:
        result = canonical.encode(measure(case))
    except InputError as error:
        return {"position": position, "error": str(error), "bad_input": True}
    except Exception as error:  # noqa: BLE001 - whatever it is, the other cases go on
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name} line {last.lineno}"
        text = f"{type(error).__name__}: {error} ({where})"
        return {"position": position, "error": text, "bad_input": False}
    return {"position": position, "result": result, "seconds": time.perf_counter() - start}


def main(name: str) -> None:
    """Answer the cases on standard input until it ends."""
    # What a measured function prints must not end up among the answers, nor may it read the cases.
    with processes.pipes() as (cases, answers):
        measure = measure_named(name)
        try:
            print(canonical.encode({"ready": True}), file=answers, flush=True)
            for line in processes.lines(cases):
                question = canonical.decode(line)
                case = Case(**question["case"])
                reply = answer(question["position"], case, measure)
                print(canonical.encode(reply), file=answers, flush=True)
        except OSError:
            # The parent is gone, or this is a fork of a kernel's. Leave without flushing into the
            # broken pipe once more.
            processes.leave()
