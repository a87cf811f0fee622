# SPDX-License-Identifier: Apache-2.0
"""The axes of a sweep: what follows from their rows."""

from __future__ import annotations

import dataclasses
import inspect
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from precision_lab.cli.meanings import meanings
from precision_lab.cli.result_columns import result_columns
from precision_lab.sweeps.axes import AXES, at_level
from precision_lab.sweeps.case import PLACES, Case
from precision_lab.sweeps.config.sweep_file import SweepFile, config_of
from precision_lab.sweeps.grid import Sweep
from precision_lab.sweeps.sources import Source, family

# A row more, and a field of the case that its code would read.
ADDED = """
import dataclasses, importlib
from precision_lab.sweeps import axes, case, grid
from precision_lab.table import Table

case.OMITTED_IF_EMPTY = (*case.OMITTED_IF_EMPTY, "shift")
case.Case = dataclasses.make_dataclass(
    "Case", [("shift", float, 0.0)], bases=(case.Case,), frozen=True, kw_only=True
)
row = axes.Axis(
    name="shifts", field="shift", meaning="Numbers.", default=0.0, check=float,
    written=axes.Numbers, level=LEVEL, loop=9,
)
axes.AXES = Table("axis", [*axes.AXES.values(), row])
axes.at_level.__globals__["AXES"] = axes.AXES
importlib.reload(grid)
from precision_lab.sweeps.config.sweep_file import config_of

plain, added = grid.Sweep(plans=["late", "early"]), grid.Sweep(
    plans=["late", "early"], shifts=[0.0, 1.5]
)
cases = added.cases()
print([case.shift for case in cases], "shifts" in plain.record, added.record["shifts"])
print({case.key for case in cases if not case.shift} == {case.key for case in plain.cases()})
found = config_of({"version": 1, "shifts": [0.0, 1.5], "plans": ["late", "early"]})
print(found.most, [case.key for case in found.sweep.cases()] == [case.key for case in cases])
print(grid.Sweep.__doc__.endswith("shifts\\n    Numbers."))
"""


class TestRows:
    """Each row says what stands elsewhere too."""

    def test_parameters_of_a_sweep(self):
        """Each axis is one, with its default, and is documented."""
        parameters = inspect.signature(Sweep).parameters
        assert {axis.name: axis.default for axis in AXES.values()} == {
            name: parameter.default for name, parameter in parameters.items()
        }
        said = {name: row.meaning.replace("`", "") for name, row in AXES.items()}
        assert said == meanings(Sweep)

    def test_keys_of_a_sweep_file(self):
        """Each axis is one, in the same order."""
        keys = [field.name for field in msgspec.structs.fields(SweepFile)]
        assert keys == ["version", "name", *AXES]

    def test_fields_of_a_case(self):
        """Each axis has one; the inputs alone fill others, and places are none."""
        fields = [axis.field for axis in AXES.values()]
        assert len(fields) == len(set(fields))
        assert {*fields, "parameters", *PLACES} == {each.name for each in dataclasses.fields(Case)}

    def test_columns_of_results(self):
        """What is listed along an axis has a column that is explained."""
        shown = {"source": "input"}
        for axis in AXES.values():
            assert result_columns()[shown.get(axis.field, axis.field)]

    def test_axes_of_a_source(self):
        """An axis that inputs may have for themselves is a field of theirs."""
        fields = {field.name for field in dataclasses.fields(Source)}
        assert {axis.name for axis in AXES.values() if axis.of_source} == fields & set(AXES)

    @pytest.mark.parametrize("level", ["made", "stored", "computed"])
    def test_loops(self, level):
        """No two axes are one loop."""
        loops = [axis.loop for axis in at_level(level)]
        assert loops == sorted(set(loops))
        assert loops

    def test_levels(self):
        """Axes without a level are those in which the loops stand."""
        outer = {axis.name for axis in AXES.values() if not axis.level}
        assert outer == {"norm", "inputs", "plans", "kernels"}


@pytest.mark.parametrize(
    ("level", "order"),
    [
        ("made", [0.0, 0.0, 1.5, 1.5]),
        ("stored", [0.0, 0.0, 1.5, 1.5]),
        ("computed", [0.0, 1.5, 0.0, 1.5]),
    ],
)
def test_an_axis_more_is_one_row(level, order):
    """Sweep, record, cases, sweep files, counts and documentation know it."""
    root = Path(__file__).parents[2]
    ran = subprocess.run(
        [sys.executable, "-c", ADDED.replace("LEVEL", repr(level))],
        cwd=root, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ran.stdout == f"{order} False [0.0, 1.5]\nTrue\n4 True\nTrue\n"


def test_the_count_is_never_too_small():
    """Combinations that make no sense are counted; others exactly."""
    data = {
        "version": 1, "plans": ["late", "early"], "exact": ["none", "square", "sum"],
            "formats": ["bf16", "e4m3fn"], "scales": ["none", "per_tensor"],
            "eps": [1e-5, "0x1p-9"], "against": ["none", "late"], "seeds": [1, 2],
            "hidden": [4, 8],
            "inputs": ["normal", {"family": "uniform", "seed": [1, 2, 3], "low": [-1, -2]}],
    }  # fmt: skip
    found = config_of(data)
    # 3 formats with their scales, 2 eps, 2 plans, 3 steps, 2 others; 2 shapes, 2 and 6 sources.
    assert found.most == 3 * 2 * 2 * 3 * 2 * 2 * (2 + 6)
    assert found.most == len(found.sweep.cases())
    # That of an exact step of the multiplication by a gain is no case where there is none.
    data |= {"exact": ["none", "gain"], "gains": "none"}
    found = config_of(data)
    assert found.most == 2 * len(found.sweep.cases())


def test_a_sweep_is_a_value():
    """Equal where its axes are, and as fixed as they are."""
    first, second = Sweep(inputs=family("normal")), Sweep()
    assert first == second
    assert first != Sweep(hidden=4)
    for name in ("hidden", "hiden"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(first, name, 4)
    assert dataclasses.replace(first, hidden=4) == Sweep(hidden=4)
