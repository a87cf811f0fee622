# SPDX-License-Identifier: Apache-2.0
"""Tables of named rows."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from precision_lab.exceptions import InputError, nearest, unknown
from precision_lab.table import Table


@dataclass(frozen=True)
class Fruit:
    """A row to test with."""

    name: str
    aliases: tuple[str, ...] = ()


APPLE, PEAR, PLUM = Fruit("apple", ("malus",)), Fruit("pear"), Fruit("plum", ("prune", "damson"))


@pytest.fixture
def fruits():
    """Three rows, two of them with aliases."""
    return Table("fruit", [APPLE, PEAR, PLUM])


def test_a_name_and_each_alias_find_the_row(fruits):
    """A row answers to its name and to every alias."""
    assert [APPLE, APPLE, PEAR, PLUM, PLUM] == [
        fruits[name] for name in ("apple", "malus", "pear", "prune", "damson")
    ]


def test_iteration_gives_the_names_in_order_without_aliases(fruits):
    """The table is a mapping from its rows' own names, in the order they were given."""
    assert ["apple", "pear", "plum"] == list(fruits)
    assert [APPLE, PEAR, PLUM] == list(fruits.values())
    assert len(fruits) == 3


@pytest.mark.parametrize("name", ["pare", "PLUMB", "", "malus ", 3, None, b"pear"])
def test_an_unknown_name_is_one_sentence_with_the_nearest(fruits, name):
    """Whatever is in no row is an InputError that names it, the kind and the nearest."""
    with pytest.raises(InputError, match=r"^unknown fruit .*: the nearest (is|are) \w+"):
        fruits[name]


def test_the_nearest_name_comes_first():
    """The likest choice comes first, whatever its case; without a likeness, the first few."""
    assert nearest("bf61", ["float16", "bf16", "fp16"])[0] == "bf16"
    assert nearest("PLUMB", ["apple", "fig", "plum"])[0] == "plum"
    assert nearest("zzz", ["apple", "pear", "plum", "fig"]) == ["apple", "pear", "plum"]
    assert str(unknown("fruit", "pare", ["fig", "pear"])) == (
        "unknown fruit 'pare': the nearest is pear"
    )


def test_in_and_get_do_not_raise(fruits):
    """`in` and `get` answer for names, aliases and anything else."""
    assert [True, True, False, False] == [x in fruits for x in ("pear", "malus", "fig", 3)]
    assert fruits.get("prune") is PLUM
    assert fruits.get("fig") is None
    assert fruits.get("fig", PEAR) is PEAR


def test_find_takes_a_name_an_alias_or_a_record(fruits):
    """`find` looks names up and gives records back, also ones that are in no row."""
    other = Fruit("quince")
    assert [PEAR, PLUM, PEAR, other] == [fruits.find(x) for x in ("pear", "damson", PEAR, other)]
    for wrong in (3, None, 1.5, ["pear"]):
        with pytest.raises(InputError, match="unknown fruit"):
            fruits.find(wrong)


@pytest.mark.parametrize(
    "rows",
    [
        [Fruit("apple"), Fruit("apple")],
        [Fruit("apple"), Fruit("pear", ("apple",))],
        [Fruit("apple", ("pear",)), Fruit("pear")],
        [Fruit("apple", ("pomme",)), Fruit("pear", ("pomme",))],
    ],
)
def test_no_name_stands_for_two_rows(rows):
    """A name or alias that would find two rows is refused when the table is made."""
    with pytest.raises(ValueError, match="two rows of the table 'fruit'"):
        Table("fruit", rows)


def test_an_input_error_is_a_value_error_and_no_key_error():
    """Callers may catch ValueError; the message of a KeyError would be shown in quotes."""
    assert issubclass(InputError, ValueError)
    assert not issubclass(InputError, KeyError)


def test_repr_names_the_rows(fruits):
    """A table shows its rows."""
    assert repr(fruits) == "<fruit, 3 rows: apple, pear, plum>"
