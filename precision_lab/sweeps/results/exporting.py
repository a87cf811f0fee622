# SPDX-License-Identifier: Apache-2.0
"""Results in formats that other programs read: the same bytes for the same results.

Rows stand in the order of their keys, so neither the number of processes, nor kills, nor shards,
nor the order of a merge leave a trace; how long a case took is in no row.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import itertools
import json
from typing import TYPE_CHECKING, Any

from precision_lab.canonical_json import plain
from precision_lab.exceptions import InputError, unknown
from precision_lab.sweeps.results.flattening import flat_rows
from precision_lab.sweeps.results.reader import open_results

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping

    from precision_lab.sweeps.results.reader import Reader

    # Names of columns, each with the types of its values.
    Columns = Mapping[str, set[type]]
    Rows = Iterator[dict[str, Any]]

# Rows written at a time, and of a row group of Parquet.
BATCH = 5000
INT64 = 2**63


def export(path: str | os.PathLike[str], *, format: str = "csv") -> Iterator[bytes]:
    """Write the rows of a results file, finished or not, in another format.

    Parameters
    ----------
    path
        The results file.
    format
        A name from `WRITERS`. In ``csv`` and ``jsonl`` every number reads back as it was; NaN and
        infinities are the words nan, inf and -inf (in ``jsonl`` as text), and what a row lacks,
        such as the parameters of another family, is empty or null.

    Returns
    -------
    iterator of bytes
        The file's content in pieces; the first comes when all rows were read once.

    Raises
    ------
    InputError
        There is no such format or no such file, it holds something else or is damaged, or the
        format needs a package that is not installed.
    """
    if format not in WRITERS:
        raise unknown("export format", format, WRITERS)
    if format == "parquet" and importlib.util.find_spec("pyarrow") is None:
        raise InputError(
            "the format parquet needs pyarrow: pip install 'precision-lab[parquet]', or choose csv"
        )
    return _pieces(path, WRITERS[format])


def _pieces(
    path: str | os.PathLike[str], write: Callable[[Columns, Rows], Iterator[bytes]]
) -> Iterator[bytes]:
    with open_results(path) as reader:
        columns = _columns(reader)
        yield from write(columns, flat_rows(reader, by="key"))


def _columns(reader: Reader) -> Columns:
    """All columns, those of parameters by name, with the types of what stands in them."""
    found: dict[str, set[type]] = {}
    for row in flat_rows(reader, by="key"):
        for name, value in row.items():
            found.setdefault(name, set()).add(_kind(name, value))
    parameters = sorted(name for name in found if name.startswith("parameter_"))
    others = [name for name in found if name not in parameters]
    # Behind the columns of the input.
    place = others.index("layer") + 1 if "layer" in others else len(others)
    return {name: found[name] for name in (*others[:place], *parameters, *others[place:])}


def _kind(name: str, value: Any) -> type:
    if type(value) not in (int, float, str, bool, type(None)):
        raise InputError(f"the results file is damaged: its {name} holds {type(value).__name__}")
    # An integer that Parquet's usual one cannot hold.
    return complex if type(value) is int and value >= INT64 else type(value)


def _csv(columns: Columns, rows: Rows) -> Iterator[bytes]:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    while True:
        yield text.getvalue().encode()
        text.seek(0)
        text.truncate()
        batch = list(itertools.islice(rows, BATCH))
        if not batch:
            return
        # None is written as nothing, and a float as the shortest text that reads back as it.
        writer.writerows([row.get(name) for name in columns] for row in batch)


def _jsonl(columns: Columns, rows: Rows) -> Iterator[bytes]:
    for row in rows:
        values = plain({name: row.get(name) for name in columns})
        yield json.dumps(values, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _parquet(columns: Columns, rows: Rows) -> Iterator[bytes]:
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema([(name, _arrow(kinds)) for name, kinds in columns.items()])
    sink = pa.BufferOutputStream()
    with parquet.ParquetWriter(sink, schema) as writer:
        while batch := list(itertools.islice(rows, BATCH)):
            writer.write_table(pa.Table.from_pylist(batch, schema))
    yield memoryview(sink.getvalue()).tobytes()


def _arrow(kinds: set[type]) -> Any:
    """The Arrow type that holds all values of a column."""
    import pyarrow as pa

    kinds = kinds - {type(None)}
    if not kinds or str in kinds:
        return pa.string()
    if kinds == {bool}:
        return pa.bool_()
    if float in kinds:
        return pa.float64()
    return pa.uint64() if complex in kinds else pa.int64()


WRITERS: dict[str, Callable[[Columns, Rows], Iterator[bytes]]] = {
    "csv": _csv,
    "jsonl": _jsonl,
    "parquet": _parquet,
}
"""How each format is written."""
