# SPDX-License-Identifier: Apache-2.0
"""Decision points: all of them there, where they say, with the right answers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from integer_rounding import rounded

from precision_lab.exceptions import InputError
from precision_lab.numbers.conformance.decision_points import (
    KINDS,
    SOURCES,
    expected,
    points,
    same_values,
)
from precision_lab.numbers.conformance.judge import in_format
from precision_lab.numbers.format import MODES, OVERFLOW_POLICIES
from precision_lab.numbers.table import formats

LISTED = [row for row in formats.values() if row.bits <= 16]

each_format = pytest.mark.parametrize("row", formats.values(), ids=lambda row: row.name)
each_source = pytest.mark.parametrize("source", SOURCES)


@pytest.mark.parametrize("row", LISTED, ids=lambda row: row.name)
@each_source
def test_every_value_midpoint_and_neighbour_is_a_point(row, source):
    """All values, midpoints, the overflow edge, half the smallest and what is next to them."""
    found = points(row.name, source).values.astype(np.float64)
    values = row.values()
    values = np.append(values[values >= 0], 2 * row.overflow_edge - row.largest)
    values = values if row.zero else np.concatenate([[0.0], values])
    middles = [low + (high - low) / 2 for low, high in pairwise(values)]
    assert row.overflow_edge == middles[-1]
    assert row.smallest / 2 == middles[0]
    near = np.array(values[:-1].tolist() + middles, source)
    wanted = np.concatenate([near, np.nextafter(near, np.inf), np.nextafter(near, -np.inf)])
    wanted = np.concatenate([wanted, [np.inf, np.finfo(source).max]]).astype(np.float64)
    for sign in (1, -1):
        assert np.isin(sign * wanted, found).all()
    assert np.isnan(found).any()
    assert {0.0, -0.0} == set(found[found == 0])
    assert {False, True} == set(np.signbit(found[found == 0]).tolist())


@each_format
@each_source
def test_points_lie_where_they_say(row, source):
    """Each point is at its stated place between two values of the format that are neighbours."""
    where = points(row.name, source)
    magnitude = abs(where.values.astype(np.float64))
    finite = np.isfinite(magnitude)
    past = where.kind == KINDS.index("past the largest")
    inside = finite & ~past
    assert (where.lower <= magnitude)[inside].all()
    assert (magnitude < where.upper)[inside].all()
    assert (magnitude >= where.upper)[past].all()
    assert in_format(row, where.lower)[inside & (row.zero | (where.lower > 0))].all()
    place = {
        "value": where.rest == 0,
        "below a midpoint": where.rest < 0.5,
        "midpoint": where.rest == 0.5,
        "above a midpoint": where.rest > 0.5,
        "past the largest": where.rest >= 1,
    }
    for kind, holds in place.items():
        assert holds[where.kind == KINDS.index(kind)].all(), kind
    # Between neighbours there is no third value of the format.
    if row.precision > formats[source].precision:
        return
    some = np.flatnonzero(inside & (where.upper <= row.largest))[:: max(1, len(where) // 500)]
    middle = where.lower[some] + (where.upper - where.lower)[some] / 2
    fits = (where.lower[some] < middle) & (middle < where.upper[some])
    assert not in_format(row, middle)[fits].any()


@each_format
@each_source
def test_what_points_expect_is_what_integers_say(row, source):
    """In every mode and policy the expected answers are those of rounding by integers."""
    where = points(row.name, source)
    rng = np.random.default_rng(7)
    few = rng.integers(0, len(where), 50)
    few = np.concatenate([few, np.flatnonzero(where.kind >= KINDS.index("infinity"))])
    bits = rng.integers(0, 256, len(where)) / 256
    for mode in MODES:
        for overflow in OVERFLOW_POLICIES:
            found = expected(where, mode=mode, overflow=overflow, fraction=bits)[few]
            wanted = [
                rounded(float(x), row, mode=mode, overflow=overflow, fraction=fraction)
                for x, fraction in zip(where.values[few], bits[few], strict=True)
            ]
            assert same_values(np.array(wanted), found).all(), (mode, overflow)


def test_narrow_sources_give_wide_formats_their_own_values():
    """From float32, float32 and float64 have nothing to decide: every point is a value."""
    for name in ("float32", "float64"):
        assert {"value", "infinity", "NaN"} == {
            KINDS[kind] for kind in points(name, "float32").kind
        }


def test_points_check_their_arguments():
    """Unknown formats and sources name the nearest."""
    with pytest.raises(InputError, match="unknown format"):
        points("float7", "float32")
    with pytest.raises(InputError, match="unknown source 'float31': the nearest are float32"):
        points("float16", "float31")


def test_sameness_can_fail():
    """Other values, other signs of zero, and NaN against numbers are not the same."""
    left = np.array([1.0, 0.0, np.nan, np.nan, np.inf])
    other = np.array([np.nextafter(1, 2), -0.0, 1.0, -np.nan, -np.inf])
    assert [False, False, False, True, False] == same_values(left, other).tolist()
