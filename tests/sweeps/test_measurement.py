# SPDX-License-Identifier: Apache-2.0
"""The measurement of a case, with nothing stood in: its numbers against ones computed here."""

from __future__ import annotations

import dataclasses
import importlib
import math
import random
from itertools import cycle
from typing import TYPE_CHECKING, ClassVar

import ml_dtypes
import numpy as np
import pytest

from precision_lab import canonical_json as canonical
from precision_lab.inputs.packaged import captures
from precision_lab.inputs.parameters import make_gain
from precision_lab.inputs.synthetic import families, make_inputs
from precision_lab.norm.agreement import COLUMNS
from precision_lab.norm.ground_truth import truth
from precision_lab.numbers.table import formats
from precision_lab.plan.emulation import emulate
from precision_lab.plan.program import STEPS
from precision_lab.plan.table import plans
from precision_lab.sweeps.grid import Sweep
from precision_lab.sweeps.measurement import measure, unrounded_tensors
from precision_lab.sweeps.sources import captured, family

if TYPE_CHECKING:
    from precision_lab.sweeps.case import Case

# The module: the package's name `sweep` is the function.
room = importlib.import_module("precision_lab.sweeps.execution")


def only(**axes: object) -> Case:
    """The one case of a grid."""
    (case,) = Sweep(**{"hidden": 33, "rows": 4, **axes}).cases()
    return case


def pairs(cases: tuple[Case, ...]) -> list[tuple[Case, Case]]:
    """Each two cases that follow each other."""
    return list(zip(cases[::2], cases[1::2], strict=True))


def forget() -> None:
    """Empty what is kept from case to case."""
    module = importlib.import_module("precision_lab.sweeps.measurement")
    for value in vars(module).values():
        if hasattr(value, "cache_clear"):
            value.cache_clear()


class TestNumbers:
    """Each column says what its name says."""

    def test_what_is_lost_as_it_is_stored_is_not_right(self):
        """Rows that are NaN in storage have no share of right ones, and count as lost in total."""
        inputs = family("normal", scale=1e4)
        row = measure(only(formats="float8_e4m3fn", inputs=inputs))
        assert math.isnan(row["arithmetic_ulp_max"])
        assert math.isnan(row["arithmetic_correctly_rounded"])
        assert (0, 4) == (row["arithmetic_rows_lost"], row["total_rows_lost"])
        assert 0.0 == row["total_correctly_rounded"]

    def test_correct_rounding_is_seen(self):
        """A float64 statistic with one cast rounds correctly: half an ulp, everywhere."""
        exact = dict.fromkeys(
            ("compute_format", "square_format", "sum_format", "reciprocal_format", "eps_format",
             "gain_format"), "float64",
        )  # fmt: skip
        row = measure(only(plans=plans["late"].replace(**exact)))
        assert 1.0 == row["arithmetic_correctly_rounded"]
        assert 0.4 < row["arithmetic_ulp_max"] <= 0.5
        assert row["total_ulp_max"] > 0.5

    def test_errors_against_a_plain_computation(self):
        """The largest error is that of the case's own inputs, made, rounded and normed here."""
        row = measure(only(plans="all-low", seeds=3, eps=1e-5))
        x = make_inputs("normal", rows=4, hidden=33, seed=3).astype(ml_dtypes.bfloat16)
        gain = make_gain("random", hidden=33, seed=3).astype(ml_dtypes.bfloat16)
        exact = truth("rms", x, gain, eps=1e-5).value
        y = float.fromhex(row["worst_actual_hex"])
        t = exact[row["worst_row"], row["worst_column"]]
        assert float.fromhex(row["worst_exact_hex"]) == pytest.approx(t, rel=1e-15)
        unit = formats["bfloat16"].ulp(t)
        assert (y - t) / unit == pytest.approx(row["worst_ulp"], rel=0.5)
        assert abs(row["worst_ulp"]) == row["arithmetic_ulp_max"]
        at = (row["worst_row"], row["worst_column"])
        assert float(x[at]) == float.fromhex(row["worst_x_hex"])
        assert float(gain[at[1]]) == float.fromhex(row["worst_gain_hex"])
        assert "" == row["worst_bias_hex"]
        shown = [float.fromhex(text) for text in row["worst_row_hex"].split()]
        values = x[at[0]].astype(float)
        assert [*values[:4], values[np.argmax(np.abs(values))]] == shown

    def test_total_error_is_that_of_the_unrounded_inputs(self):
        """The same for inputs that the format holds, larger for those that it rounds."""
        held = measure(only(inputs="alternating", gains="none", formats="float64"))
        for name in ("ulp_max", "ulp_mean", "bias", "relative_rms", "rows_lost"):
            assert held[f"arithmetic_{name}"] == held[f"total_{name}"]
        rounded = measure(only(gains="none", formats="float8_e4m3fn"))
        assert rounded["total_relative_rms"] > 1.1 * rounded["arithmetic_relative_rms"]

    def test_a_captured_layer_is_measured_as_it_is(self):
        """In the format that it was captured in, nothing is lost by storing it."""
        layer = captures["smollm2"].load().layers[0]
        row = measure(only(inputs=captured("smollm2", layer.name), formats=layer.x.dtype.name))
        assert row["arithmetic_ulp_max"] == row["total_ulp_max"]
        assert row["absmax"] == float(np.abs(layer.x.astype(float)).max())

    def test_size_of_the_inputs(self):
        """The largest magnitude and the row rms, before any scale."""
        case = only(inputs=family("lognormal", scale=3.0), formats="e4m3", scales="per_tensor")
        row = measure(case)
        x = make_inputs("lognormal", rows=4, hidden=33, seed=0, scale=3.0)
        rms = np.sqrt(np.mean(x * x, axis=1))
        assert row["absmax"] == np.abs(x).max()
        assert [row["rms_min"], row["rms_max"]] == pytest.approx([rms.min(), rms.max()])

    def test_huge_and_tiny_inputs_have_a_size(self):
        """Neither squares past float64 nor zeros get in the way."""
        row = measure(only(inputs=family("normal", scale=1e200), formats="float64"))
        assert 1e199 < row["rms_min"] <= row["rms_max"] < row["absmax"] < 1e202
        assert 0.0 == measure(only(inputs="zero"))["rms_max"]

    def test_scale_per_tensor(self):
        """x is brought below the top binade by a power of two; its exact norm stays the same."""
        x = make_inputs("normal", rows=4, hidden=33, seed=0, scale=1e-3)
        for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float4_e2m1fn"):
            common = {"inputs": family("normal", scale=1e-3), "formats": name, "gains": "none"}
            row = measure(only(**common, scales="per_tensor"))
            top = np.abs(x).max() * 2.0 ** row["scale_exponent"]
            assert formats[name].emax == 1 + math.floor(math.log2(top))
            assert 0 == row["total_rows_lost"]
            plain = measure(only(**common))
            assert 0 == plain["scale_exponent"]
            assert row["total_relative_rms"] < plain["total_relative_rms"]

    def test_overflow_by_step(self):
        """Squares of 256 and more leave float16, and nothing else is to blame."""
        layers = captures["smollm2"].load().layers
        sweep = Sweep(plans=["all-low", "late"], formats="float16", inputs=captured("smollm2"))
        lost = []
        for layer, (low, late) in zip(layers, pairs(sweep.cases()), strict=True):
            with np.errstate(over="ignore"):
                squares = np.square(layer.x.astype(np.float16))
            row = measure(low)
            assert int(np.isinf(squares).sum()) == row["overflow_square"]
            assert "square" == row["first_overflow"] or not row["overflow_square"]
            lost += [layer.name] if row["overflow_square"] else []
            row = measure(late)
            assert "" == row["first_overflow"]
            assert 0 == sum(row[f"overflow_{name}"] for name in STEPS)
        numbers = {int(name.split(".")[2]) for name in lost if "layers" in name}
        assert {*range(2, 10), *range(12, 30)} == numbers

    def test_rows_lost(self):
        """A row is lost to infinity, NaN or zero, and counted once."""
        common = {"plans": "all-low", "formats": "float16", "rows": 8}
        big = measure(only(**common, inputs=family("normal", scale=2.0**10)))
        assert 8 == big["arithmetic_rows_lost"] == big["arithmetic_rows_zero"]
        assert 0 == measure(only(**common))["arithmetic_rows_lost"]
        # Inputs past the largest value are lost when they are stored: no fault of the arithmetic.
        stored = measure(only(**common, inputs=family("normal", scale=2.0**20)))
        assert (0, 8) == (stored["arithmetic_rows_lost"], stored["total_rows_lost"])

    def test_gain_offset(self):
        """The truth of a plan that multiplies by 1 + g does so as well."""
        row = measure(only(plans="hf-gemma", gains="wide"))
        assert row["arithmetic_ulp_max"] < 0.6

    def test_saturating_outputs(self):
        """A format without NaN holds its largest where the output would be larger."""
        source = family("one-outlier", scale=1e-3)
        row = measure(only(inputs=source, gains="none", formats="float4_e2m1fn", hidden=99))
        assert 4 == row["arithmetic_out_of_range"]
        assert 0 == row["arithmetic_nan"] == row["arithmetic_rows_lost"]
        assert row["arithmetic_ulp_max"] <= 0.5001

    def test_outputs_against_another_plan(self):
        """What differs is counted and measured on the outputs themselves."""
        common = {"inputs": "normal", "seeds": 3, "plans": "early"}
        row = measure(only(**common, against="late"))
        x = make_inputs("normal", rows=4, hidden=33, seed=3).astype(ml_dtypes.bfloat16)
        gain = make_gain("random", hidden=33, seed=3).astype(ml_dtypes.bfloat16)
        early, late = (
            emulate(x, gain, eps=1e-6, plan=name).astype(np.float64) for name in ("early", "late")
        )
        assert 0 < np.count_nonzero(early != late) == row["against_differs"]
        expected = np.linalg.norm(early - late) / np.linalg.norm(late)
        assert expected == pytest.approx(row["against_relative_rms"], rel=1e-12)
        assert 1.0 <= row["against_ulp_max"] <= 2.0
        same = measure(only(**common, against="early"))
        assert [0, 0.0, 0.0] == [same[name] for name in COLUMNS]
        alone = measure(only(**common))
        assert all(math.isnan(alone[name]) for name in COLUMNS)

    def test_one_step_exact(self):
        """What a step costs is what its exact twin lacks: of late, the output's half ulp."""
        plain = measure(only(plans="late", hidden=200))
        rows = {step: measure(only(plans="late", hidden=200, exact=step)) for step in
                ("square", "sum", "output")}  # fmt: skip
        assert plain.keys() == rows["square"].keys()
        assert 0.49 < plain["arithmetic_ulp_max"] < 0.51
        assert 0.49 < rows["sum"]["arithmetic_ulp_max"] < 0.51
        assert rows["output"]["arithmetic_ulp_max"] < 1e-3
        # What is counted is what the rounding of the output would be.
        for name in ("correctly_rounded", "kappa_max", "rows_lost", "measured"):
            assert plain[f"arithmetic_{name}"] == rows["output"][f"arithmetic_{name}"]
        assert all(math.isnan(row["bound_ulp"]) for row in rows.values())
        assert all(math.isnan(row["bound_exceeded"]) for row in rows.values())

    def test_exact_squares_save_what_overflowed(self):
        """With the squares in float64, all-low loses no row to them."""
        common = {"plans": "all-low", "formats": "float16", "inputs": family("normal", scale=600.0)}
        plain = measure(only(**common))
        exact = measure(only(**common, exact="square"))
        assert "square" == plain["first_overflow"]
        assert (4, 0) == (plain["arithmetic_rows_lost"], exact["overflow_square"])
        assert "sum" == exact["first_overflow"]

    def test_an_exact_step_of_a_plan_in_float64(self):
        """A step that is in float64 anyway changes nothing but the bound, which is not told."""
        wide = plans["all-low"].replace(name="wide")
        plain, exact = (
            {name: value for name, value in measure(case).items() if "bound" not in name}
            for case in Sweep(plans=wide, formats="float64", exact=["none", "sum"]).cases()
        )
        assert canonical.encode(plain) == canonical.encode(exact)

    def test_an_exact_output_in_every_format(self):
        """Its distances are small beside half an ulp, also where the format has no NaN."""
        for name in ("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "tf32", "float16"):
            source = family("normal", scale=1.0)
            row = measure(only(inputs=source, formats=name, exact="output", gains="none"))
            assert name == row["output_format"]
            assert row["arithmetic_ulp_max"] < 1e-2
            assert 0 == row["arithmetic_nan"] == row["arithmetic_rows_lost"]

    def test_tf32_is_its_own_format(self):
        """It is held in float32, and its ulp is that of 11 bits."""
        row = measure(only(formats="tf32"))
        assert "tf32" == row["output_format"]
        assert 0.4 < row["arithmetic_ulp_max"] < 0.51


class TestEveryCase:
    """What holds for all plans, formats and families."""

    AXES: ClassVar = {
        "norm": ["rms", "layer"],
        "biases": ["none", "random"],
        "scales": ["none", "per_tensor"],
        "hidden": [1, 17],
        "rows": [0, 2],
    }

    def sample(self) -> list[Case]:
        """Three cases of each plan in any format and family: all cases take seconds to make."""
        chance, found = random.Random(0), []
        for plan, inputs in zip(plans, cycle(families), strict=False):
            grid = Sweep(plans=plan, formats=list(formats), inputs=inputs, **self.AXES)
            found += chance.sample(grid.cases(), 3)
        assert len(found) > 150
        assert {case.format for case in found} == set(formats)
        assert {case.source for case in found} == {f"family:{name}" for name in families}
        return found

    def test_measured_within_its_bound(self):
        """A sample of the grid is measured; no error passes its bound; rows have one shape."""
        cases = self.sample()
        columns = measure(cases[0]).keys()
        for case in cases:
            row = measure(case)
            canonical.encode(row)
            assert columns == row.keys(), case.text
            assert 0 == row["bound_exceeded"], case.text
            assert not row["arithmetic_measured"] or not math.isnan(row["bound_ulp"]), case.text

    def test_a_bound_that_is_too_small_is_seen(self, monkeypatch):
        """The count of elements past their bound can be other than 0."""
        module = importlib.import_module("precision_lab.sweeps.case_outputs")
        monkeypatch.setattr(module, "bound", lambda x, *_, **__: np.full(x.shape, 1e-4))
        assert 0 < measure(only())["bound_exceeded"]

    def test_what_is_kept_changes_nothing(self):
        """A case has the same row measured first, last, or alone."""
        three = ["bfloat16", "float16", "float8_e4m3fn"]
        grid = Sweep(plans=list(plans), formats=three, inputs=["normal", "uniform"], **self.AXES)
        cases = grid.cases()[::97][:20]
        in_order = {case.key: canonical.encode(measure(case)) for case in cases}
        for case in cases[::-1]:
            assert in_order[case.key] == canonical.encode(measure(case))
        for case in cases[::6]:
            forget()
            assert in_order[case.key] == canonical.encode(measure(case))

    def test_cases_that_share_inputs_get_the_same(self):
        """Plans and formats are held to the same numbers, not to copies."""
        first, *others = Sweep(plans=["late", "early"], formats=["bf16", "fp16"]).cases()
        assert {id(unrounded_tensors(first))} == {id(unrounded_tensors(case)) for case in others}
        other = dataclasses.replace(first, seed=1)
        assert unrounded_tensors(first) is not unrounded_tensors(other)


class TestSweep:
    """From a grid to a table."""

    SWEEP = Sweep(
        plans=["late", "all-low"], formats=["bf16", "e4m3"], hidden=17, rows=2, seeds=[1, 2]
    )

    def test_same_table_for_any_jobs(self, tmp_path):
        """In memory or in a file, alone or together, resumed or not."""
        pandas = pytest.importorskip("pandas")
        expected = room.sweep(self.SWEEP)
        assert len(self.SWEEP.cases()) == len(expected)
        together = room.sweep(self.SWEEP, path=tmp_path / "rows.sqlite", jobs=2)
        pandas.testing.assert_frame_equal(expected, together, check_exact=True)
        again = room.sweep(self.SWEEP, path=tmp_path / "rows.sqlite")
        pandas.testing.assert_frame_equal(expected, again, check_exact=True)

    def test_columns(self):
        """The columns that charts and findings are made from, in order."""
        table = room.sweep(self.SWEEP)
        case = ["plan", "norm", "format", "weight_format", "eps", "hidden", "rows", "source"]
        assert case == list(table.columns)[:8]
        wanted = {
            "arithmetic_ulp_max", "total_relative_rms", "bound_ulp", "overflow_square",
            "first_overflow", "arithmetic_rows_lost", "absmax", "worst_x_hex", "plan_cast",
            "parameter_scale", "layer", "input", "versions", "key",
        }  # fmt: skip
        assert wanted <= set(table.columns)
        assert "seconds" not in table.columns
