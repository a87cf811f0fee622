# SPDX-License-Identifier: Apache-2.0
"""A case measured, and what a worker's process runs: it measures the case of each question.

It holds no state that matters.
"""

from __future__ import annotations

import importlib
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from precision_lab import canonical_json as canonical
from precision_lab.exceptions import InputError
from precision_lab.sweeps.case import Case

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from precision_lab.processes import Frame

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


def serve(questions: Iterator[Frame]) -> Iterator[Frame]:
    """Find what the first question names, then measure the case of each other one."""
    words, _ = next(questions)
    measure = measure_named(words["measure"])
    yield {"ready": True}, {}
    for words, _ in questions:
        yield answer(words["position"], Case(**words["case"]), measure), {}
