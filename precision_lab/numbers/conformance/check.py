# SPDX-License-Identifier: Apache-2.0
"""Holding a rounding function, or this package's own rounding, to the decision points."""

from __future__ import annotations

import importlib.metadata
from typing import TYPE_CHECKING, Any

import numpy as np

from precision_lab.exceptions import InputError, unknown
from precision_lab.numbers.conformance.decision_points import (
    SEED,
    SOURCES,
    expected,
    points,
    same_values,
)
from precision_lab.numbers.conformance.judge import Fault, diagnose, judge
from precision_lab.numbers.conformance.libraries import deviations
from precision_lab.numbers.conformance.report import (
    ConformanceCheck,
    ConformanceReport,
    KnownDeviation,
)
from precision_lab.numbers.format import MODES, OVERFLOW_POLICIES
from precision_lab.numbers.table import formats
from precision_lab.processes import (
    RefusedError,
    check_arithmetic,
    guard_call,
    import_folder,
    load,
    unchanged_arithmetic,
)
from precision_lab.versions import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from precision_lab.numbers.conformance.decision_points import Points
    from precision_lab.numbers.conformance.libraries import Rounding
    from precision_lab.numbers.format import Format

    Bits = tuple[NDArray[Any] | None, NDArray[np.float64]]

RANDOM_BITS = (np.uint8, np.uint16, np.uint32)
NO_BITS: Bits = (None, np.zeros(()))


def conformance(
    function: Rounding | str | None = None, *, formats: Sequence[str | Format] | None = None,
    modes: Sequence[str] | None = None, sources: Sequence[str] = SOURCES,
) -> ConformanceReport:  # fmt: skip
    """Check a rounding function at every decision point of every format.

    Parameters
    ----------
    function
        ``f(values, format_name)`` gives float64 values of the format for a one-dimensional
        float32 or float64 array; or where to find it, as for `load`. A format or source for which
        it raises at the value 1 is not taken, and listed. Without a function, this package's own
        rounding is checked, in every mode and under both overflow policies.
    formats
        Names or records; all formats where None. A function must take those that are named.
    modes
        Rounding modes; a function is held to nearest-even where None.
    sources
        Types that the values come in, of ``"float32"`` and ``"float64"``.

    Returns
    -------
    ConformanceReport
        ``passed`` where nothing is wrong. Another overflow policy, kept throughout, is no fault;
        a known deviation of a library (``deviations.txt``) is told and not counted against a
        function that gives, at the same points, what the library gives.

    Raises
    ------
    InputError
        For an unknown format, mode or source; a function that cannot be found, takes none of the
        formats, raises at some point, or gives another shape or type than it should; and where
        this process rounds otherwise than to nearest or flushes subnormal numbers.
    """
    check_arithmetic()
    _check_names("source", sources, SOURCES)
    _check_names("rounding mode", modes or (), MODES)
    pairs = [(row, source) for row in _formats(formats) for source in sources]
    if not pairs or (modes is not None and not modes):
        raise InputError("nothing to check: name a format, a source and a mode, or leave them out")
    if function is None:
        checks = tuple(
            check
            for row, source in pairs
            for check in _check_own_rounding(row, source, modes or MODES)
        )
        return ConformanceReport(function="", checks=checks, versions=_versions())
    if "stochastic" in (modes or ()):
        raise InputError(
            "a function cannot be held to mode 'stochastic': it is told no random bits"
        )
    return _check_named(function, pairs, modes or ("nearest_even",), all_named=formats is not None)


def _check_named(
    function: Rounding | str, pairs: Sequence[tuple[Format, str]], modes: Sequence[str], *,
    all_named: bool,
) -> ConformanceReport:  # fmt: skip
    """Check a function at the points of each format and source that it takes."""
    if isinstance(function, str):
        # What it imports when it is called is found where it was when it was loaded.
        with import_folder(function.rpartition(":")[0]):
            return _check_function(load(function), function, pairs, modes, all_named=all_named)
    return _check_function(function, _name(function), pairs, modes, all_named=all_named)


def _check_function(
    function: Rounding, name: str, pairs: Sequence[tuple[Format, str]], modes: Sequence[str], *,
    all_named: bool,
) -> ConformanceReport:  # fmt: skip
    if not callable(function):
        raise InputError(f"{function!r} is no function to check: give f(values, format_name)")
    checks: list[ConformanceCheck] = []
    declined = []
    for row, source in pairs:
        refusal = _refusal_of(function, row, source)
        if refusal is None:
            checks += _checks(function, row, source, modes)
        else:
            declined.append((row.name, source, refusal))
    taken = {check.format for check in checks}
    for format, source, refusal in declined:
        # One that was named must be taken, and a check of nothing is none.
        if (all_named and format not in taken) or not taken:
            raise InputError(f"{name} does not take {format} from {source}: {refusal}")
    return ConformanceReport(
        function=name, checks=tuple(checks), declined=tuple(declined),
        stale=_stale_deviations(function, checks), versions=_versions(function),
    )  # fmt: skip


def _check_names(kind: str, names: Sequence[str], choices: Sequence[str]) -> None:
    for name in names:
        if name not in choices:
            raise unknown(kind, name, choices)


def _formats(names: Sequence[str | Format] | None) -> list[Format]:
    """The formats asked for, each once."""
    names = list(formats) if names is None else names
    rows = list(dict.fromkeys(formats.find(name) for name in names))
    for row in rows:
        if row != formats[row.name]:
            raise InputError(
                f"decision points are those of {row.name} as it stands, without switches"
            )
    return rows


def _check_own_rounding(
    row: Format, source: str, modes: Sequence[str]
) -> Iterator[ConformanceCheck]:
    """This package's rounding, held to one policy at a time: there is nothing to be lenient on."""
    where = points(row.name, source)
    for mode in modes:
        for overflow in OVERFLOW_POLICIES:
            wrong, faults = 0, tuple[Fault, ...]()
            bits = _random_bits(len(where)) if mode == "stochastic" else [NO_BITS]
            for random_bits, fraction in bits:
                got = row.round(where.values, mode=mode, overflow=overflow, random_bits=random_bits)
                right = expected(where, mode=mode, overflow=overflow, fraction=fraction)
                bad = ~same_values(got, right)
                wrong += int(bad.sum())
                if bad.any() and not faults:
                    faults = diagnose(where, got, bad, right=right, mode=mode)
            yield ConformanceCheck(
                format=row.name, source=source, mode=mode, overflow=overflow,
                points=len(where) * len(bits), wrong=wrong, faults=faults,
            )  # fmt: skip


def _random_bits(size: int) -> list[Bits]:
    """Random bits of each width, among them those at which a point's decision turns."""
    generator = np.random.default_rng(SEED)
    drawn: list[Bits] = []
    for kind in RANDOM_BITS:
        width = 8 * np.dtype(kind).itemsize
        half = 1 << (width - 1)
        turning = np.array([0, 1, half - 1, half, half + 1, 2 * half - 1])
        edge = turning[generator.integers(0, len(turning), size)]
        random = generator.integers(0, 2 * half, size)
        bits = np.where(generator.integers(0, 4, size) > 0, edge, random)
        stored: NDArray[Any] = bits.astype(kind)
        drawn.append((stored, bits / (2.0 * half)))
    return drawn


def _checks(
    function: Rounding, row: Format, source: str, modes: Sequence[str]
) -> Iterator[ConformanceCheck]:
    """A function's answers in one format from one source, held to each mode."""
    where = points(row.name, source)
    got, refused = _answers(function, where)
    for mode in modes:
        judged = judge(where, got, mode=mode)
        known, excused = _known_deviations(function, where, got, judged.wrong, mode)
        wrong = judged.wrong & ~excused
        yield ConformanceCheck(
            format=row.name, source=source, mode=mode, overflow="any", points=len(where),
            wrong=int(wrong.sum()), policies=refused + judged.policies,
            faults=diagnose(where, got, wrong, right=judged.right, mode=mode), known=known,
        )  # fmt: skip


def _answers(function: Rounding, where: Points) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """What the function gives, and whether it refused the values that have no code."""
    row, values = where.format, where.values
    try:
        return _check_answer(_call(function, values, row), values, row), ()
    except RefusedError as error:
        right = expected(where)
        coded = ~np.isnan(right)
        if row.nan or coded.all():
            raise _raised_error(error, where) from error
        try:
            right[coded] = _check_answer(_call(function, values[coded], row), values[coded], row)
        except RefusedError as second:
            raise _raised_error(second, where) from second
        return right, (f"values without a code: refused ({error})",)


def _raised_error(error: RefusedError, where: Points) -> InputError:
    text = f"the function raised {error} at decision points of {where.format.name}"
    return InputError(f"{text} from {where.source}")


def _call(function: Rounding, values: NDArray[Any], row: Format) -> object:
    """Call the function on its own copy."""
    doing = f"rounding to {row.name}"
    with unchanged_arithmetic(doing), guard_call(doing), np.errstate(all="ignore"):
        return function(values.copy(), row.name)


def _check_answer(got: object, values: NDArray[Any], row: Format) -> NDArray[np.float64]:
    """The answer, held to shape and type."""
    if isinstance(got, np.ndarray) and got.dtype == np.float64 and got.shape == values.shape:
        return got
    what = f"a {type(got).__name__}"
    if isinstance(got, np.ndarray):
        what = f"{got.dtype} of shape {got.shape}"
    raise InputError(
        f"for {row.name} the function gave {what}: it must give a float64 array"
        f" of shape {values.shape}"
    )


def _refusal_of(function: Rounding, row: Format, source: str) -> str | None:
    """What the function says to a single 1, if it refuses the format or the source."""
    one = np.ones(1, source)
    try:
        _check_answer(_call(function, one, row), one, row)
    except RefusedError as error:
        return str(error)
    return None


def _known_deviations(
    function: Rounding, where: Points, got: NDArray[np.float64], wrong: NDArray[np.bool_], mode: str
) -> tuple[tuple[KnownDeviation, ...], NDArray[np.bool_]]:
    """Known deviations among the wrong points: where a library gives the same."""
    known, excused = [], np.zeros(len(where), bool)
    # A library's own lines come first: another may deviate in the same way.
    for line in sorted(deviations(), key=lambda line: line.rounding is not function):
        here = (line.format, line.source, mode) == (where.format.name, where.source, "nearest_even")
        if not here or not wrong.any() or not line.applies:
            continue
        values = where.values.astype(np.float64)
        inside = (line.low <= values) & (values <= line.high)
        met = wrong & ~excused & inside
        own = line.rounding is function
        if met.any() and not own:
            theirs = _call(line.rounding, where.values, where.format)
            met &= same_values(got, _check_answer(theirs, where.values, where.format))[inside].all()
        if met.any():
            library = f"{line.package} {importlib.metadata.version(line.package)}"
            count = int(met.sum())
            known.append(KnownDeviation(library=library, reason=line.reason, count=count, own=own))
            excused |= met
    return tuple(known), excused


def _stale_deviations(function: Rounding, checks: Sequence[ConformanceCheck]) -> tuple[str, ...]:
    """Lines of the list that this function should have borne out and has not."""
    met = {(check.format, check.source, known.reason) for check in checks for known in check.known}
    done = {(check.format, check.source) for check in checks if check.mode == "nearest_even"}
    return tuple(
        f"{line.format} from {line.source}: {line.reason}"
        for line in deviations()
        if line.rounding is function
        and line.applies
        and (line.format, line.source) in done
        and (line.format, line.source, line.reason) not in met
    )


def _name(function: object) -> str:
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    return f"{module}:{name}" if name else repr(function)


def _versions(function: Rounding | None = None) -> dict[str, str]:
    packages = ["numpy", "ml_dtypes"]
    packages += [line.package for line in deviations() if line.rounding is function]
    found = {"precision-lab": __version__}
    for package in dict.fromkeys(packages):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found
