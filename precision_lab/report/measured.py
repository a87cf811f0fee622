# SPDX-License-Identifier: Apache-2.0
"""Analyses whose rows are no sweep: measured when asked, and else those that lie beside the file.

An analysis may define ``measure(progress)`` in place of ``sweep``: it gives rows as dicts of text,
numbers and truth values. What it gave once is kept as ``NAME.json`` beside ``NAME.py``, with the
versions of what was measured, and is what its page shows by default. This command measures again
and writes that file::

    python -m precision_lab.report NAME
"""

from __future__ import annotations

import hashlib
import json
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from precision_lab.exceptions import InputError
from precision_lab.files import replace_file
from precision_lab.report import library, twin
from precision_lab.versions import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import pandas as pd

    from precision_lab.report.library import Analysis

SCHEMA = "precision_lab.measured/1"
PACKAGES = ("numpy", "ml_dtypes", "torch", "transformers", "onnxruntime", "flax")


def measure(
    analysis: Analysis, progress: Callable[[int, int], None]
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Rows measured now, and the versions of what measured them and what was measured.

    Parameters
    ----------
    analysis
        One that measures.
    progress
        Called with how many steps are done, and of how many.
    """
    import pandas as pd

    if analysis.made_by:
        raise InputError(f"the rows of {analysis.name} are made by {analysis.made_by}")
    if analysis.measure is None:
        raise InputError(f"the analysis {analysis.name} is a sweep: it has no rows of its own")
    rows = pd.DataFrame(analysis.measure(progress))
    versions = {"precision_lab": __version__}
    for package in PACKAGES:
        # What an analysis did not import it did not measure.
        if package in sys.modules:
            with suppress(PackageNotFoundError):
                versions[package] = version(package)
    return rows, versions


def read_rows(analysis: Analysis) -> tuple[pd.DataFrame, dict[str, str]] | None:
    """Rows that were measured before, and their versions; None where there are none.

    Raises
    ------
    InputError
        The file is no such file, or was changed since.
    """
    path = rows_path(analysis.name)
    if not path.is_file():
        return None
    try:
        stored = json.loads(path.read_text("utf-8"))
        same = stored["schema"] == SCHEMA and stored["digest"] == _digest(stored["rows"])
        rows, versions = twin.rows_of(stored["rows"]), dict(stored["versions"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} holds no measured rows: {error}") from error
    if not same:
        raise InputError(f"{path} was changed after it was measured: its digest is another")
    return rows, versions


def write_rows(analysis: Analysis, rows: pd.DataFrame, versions: dict[str, str]) -> Path:
    """Write rows beside the file of their analysis."""
    packed = twin.rows_json(rows)
    head = {"schema": SCHEMA, "versions": versions, "digest": _digest(json.loads(packed))}
    text = json.dumps(head, indent=1, ensure_ascii=False).removesuffix("\n}")
    path = rows_path(analysis.name)
    replace_file(path, [f'{text},\n "rows": {packed}\n}}\n'.encode()])
    return path


def rows_path(name: str) -> Path:
    """The file of an analysis's rows."""
    return library.folder() / f"{name}.json"


def _digest(rows: Any) -> str:
    """SHA-256 of rows as the file holds them, however they are spaced there."""
    text = json.dumps(rows, ensure_ascii=False, allow_nan=False, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def main(names: Sequence[str]) -> int:
    """Measure each analysis named and keep its rows; give the exit code."""
    from precision_lab.sweeps import show_progress

    if not names:
        sys.stderr.write("usage: python -m precision_lab.report NAME …\n")
        return 2
    try:
        for name in names:
            analysis = library.load(name)
            with show_progress(name) as progress:
                rows, versions = measure(analysis, progress)
            sys.stdout.write(f"{write_rows(analysis, rows, versions)}: {len(rows)} rows\n")
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0
