# SPDX-License-Identifier: Apache-2.0
"""Sweep files: what they mean."""

from __future__ import annotations

import shutil

import pytest
from sweep_files import written

from precision_lab.exceptions import InputError
from precision_lab.inputs.packaged import captures
from precision_lab.plan.table import plans
from precision_lab.sweeps.config.sweep_file import MANY, config_of, read_config
from precision_lab.sweeps.execution import cases_of
from precision_lab.sweeps.grid import Sweep
from precision_lab.sweeps.sources import captured, family

FULL = """
version = 1
name = "everything"
norm = ["rms", "layer"]
formats = ["bf16", "float8_e4m3fn"]
weight_formats = ["float32", "bfloat16"]
plans = ["late", { plan = "early", order = ["pairwise", "sequential"] }]
eps = ["own", 1e-5, "0x1p-20", 0]
hidden = [3, 4]
rows = 2
seeds = [0, 1]
gains = ["none", "random"]
biases = "none"
scales = ["none", "per_tensor"]
exact = ["none", "eps"]
against = ["none", "late"]

[[inputs]]
family = "normal"
scale = [1, "0x1p4"]
seed = 7

[[inputs]]
family = ["uniform", "zero"]
gain = "ones"

[[inputs]]
capture = ["smollm2", "minilm"]
"""


def keys(sweep: Sweep) -> list[str]:
    """Of the cases, in order."""
    return [case.key for case in sweep.cases()]


WIDE = {
    "eps_place": ["inside", "outside", "outside_root", "both", "max", "sum", "missing"],
    "inverse": ["rsqrt", "reciprocal_sqrt", "divide", "pow"],
    "statistic": ["mean_square", "two_pass", "one_pass", "one_pass_clamped", "welford"],
    **{
        f"{step}_format": ["fp16", "bf16", "fp32", "fp64"]
        for step in ("compute", "square", "sum", "eps", "reciprocal", "gain")
    },
}


class TestMeaning:
    """What the keys say."""

    def test_everything(self, tmp_path):
        """Each key is the axis of that name, and a lone value is a list of one."""
        found = read_config(written(tmp_path, FULL))
        early = plans["early"]
        expected = Sweep(
            norm=["rms", "layer"],
            formats=["bfloat16", "float8_e4m3fn"],
            weight_formats=["float32", "bfloat16"],
            plans=["late", early, early.replace(order="sequential")],
            eps=[None, 1e-5, 2.0**-20, 0.0],
            hidden=[3, 4],
            rows=2,
            seeds=[0, 1],
            gains=["none", "random"],
            scales=["none", "per_tensor"],
            exact=["none", "eps"],
            against=["none", "late"],
            inputs=[
                family("normal", scale=1.0).replace(seeds=(7,)),
                family("normal", scale=16.0).replace(seeds=(7,)),
                family("uniform").replace(gains=("ones",)),
                family("zero").replace(gains=("ones",)),
                captured("smollm2"),
                captured("minilm"),
            ],
        )
        assert expected.record == found.sweep.record
        assert "everything" == found.name
        assert len(expected.cases()) <= found.most

    def test_version_alone_is_a_sweep(self, tmp_path):
        """What is left out is what `Sweep` has there, and the file names the sweep."""
        found = read_config(written(tmp_path, "version = 1"))
        assert ("my sweep", 1) == (found.name, found.most)
        assert keys(Sweep()) == keys(found.sweep)

    def test_names_for_tables(self):
        """A family or a packaged capture in a word."""
        found = config_of({"version": 1, "inputs": ["normal", "smollm2"]})
        assert keys(Sweep(inputs=["normal", captured("smollm2")])) == keys(found.sweep)

    def test_a_switch_with_a_list_is_a_grid(self):
        """Every combination, named by what differs from the plan that it starts from."""
        table = {"square_format": ["fp16", "float32"], "order": ["pairwise", "sequential"]}
        found = config_of({"version": 1, "plans": table}).sweep.plans
        expected = [
            "late square_format=float16", "late square_format=float16 order=sequential",
            "late", "late order=sequential",
        ]  # fmt: skip
        assert expected == [plan.name for plan in found]
        assert plans["late"].replace(square_format="float16") == found[0]

    def test_a_plan_of_ones_own(self):
        """The name given, and in a grid what differs within it."""
        one = {"name": "mine", "plan": "early", "order": "sequential"}
        several = {"name": "ours", "order": ["pairwise", "sequential"], "prescale": "row_max"}
        found = config_of({"version": 1, "plans": [one, several]}).sweep.plans
        expected = ["mine", "ours order=pairwise", "ours order=sequential"]
        assert expected == [plan.name for plan in found]
        assert plans["early"].replace(order="sequential", name="mine") == found[0]
        assert "row_max" == found[1].prescale

    def test_switches_that_contradict_each_other_are_left_out_of_a_grid(self):
        """Unless nothing else is left."""
        table = {"apply": ["folded_gain", "centred"], "cast": ["early", "late"]}
        found = config_of({"version": 1, "plans": table}).sweep.plans
        assert 3 == len(found)
        with pytest.raises(InputError, match=r"plans: .*folded_gain.*early"):
            config_of({"version": 1, "plans": {"apply": "folded_gain", "cast": "early"}})

    def test_a_capture_beside_the_file(self, tmp_path):
        """Its path starts in the folder of the sweep file, not in the current one."""
        (tmp_path / "runs").mkdir()
        shutil.copy(captures["minilm"].path, tmp_path / "runs" / "a.safetensors")
        text = 'version = 1\nnorm = "layer"\ninputs = { capture = "runs/a.safetensors" }'
        found = read_config(written(tmp_path, text))
        path = tmp_path / "runs" / "a.safetensors"
        assert keys(Sweep(norm="layer", inputs=captured(path))) == keys(found.sweep)

    def test_own_gain_beside_others(self):
        """A captured layer with its own gain and with none."""
        table = {"capture": "smollm2", "layers": "model.norm", "gain": ["own", "none"]}
        cases = config_of({"version": 1, "inputs": table}).sweep.cases()
        assert ["own", "none"] == [case.gain for case in cases]

    def test_python_takes_files_and_what_they_hold(self, tmp_path):
        """Where a `Sweep` will do, so will the path of a file."""
        path = written(tmp_path, "version = 1\nhidden = 3")
        expected = Sweep(hidden=3).cases()
        assert expected == cases_of(path) == cases_of(str(path))
        assert expected == cases_of({"version": 1, "hidden": 3})


class TestCount:
    """A grid is counted before it is made."""

    def test_too_many(self):
        """Neither plans nor cases of half a thousand million are made before it is said."""
        with pytest.raises(InputError, match=r"up to 573,440,000 cases, more than .* --yes$"):
            config_of({"version": 1, "plans": WIDE, "seeds": list(range(1000))})

    def test_a_million_is_not_too_many(self):
        """One more is, and may be meant."""
        data = {"version": 1, "seeds": list(range(1000)), "rows": list(range(MANY // 1000))}
        assert MANY == config_of(data).most
        more = {**data, "seeds": list(range(1001))}
        with pytest.raises(InputError, match=r"1,001,000 cases, more than 1,000,000: .* --yes$"):
            config_of(more)
        assert 1_001_000 == config_of(more, many=True).most

    @pytest.mark.parametrize(
        "data",
        [
            {"norm": ["rms", "layer"], "seeds": [1, 2, 3]},
            {"formats": ["bf16", "e5m2"], "scales": ["none", "per_tensor"], "eps": [1e-5, 1e-6]},
            {"inputs": [{"family": "uniform", "low": [0, 0.5], "high": [1, 2], "seed": [1, 2]},
                        {"capture": "smollm2", "gain": ["none", "own"]}]},
            {"plans": [{"plan": ["late", "early"], "order": ["pairwise", "sequential"]}],
             "weight_formats": ["fp32", "bf16"], "hidden": [3, 4], "rows": [1, 2],
             "gains": ["none", "ones"], "biases": ["none", "random"]},
        ],
    )  # fmt: skip
    def test_the_count_is_right(self, data):
        """Where every combination makes sense and none comes twice, it is the number of cases."""
        found = config_of({"version": 1, **data})
        assert len(found.sweep.cases()) == found.most
