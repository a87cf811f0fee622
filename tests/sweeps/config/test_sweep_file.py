# SPDX-License-Identifier: Apache-2.0
"""Sweep files: what they may say, and how what they may not is told."""

from __future__ import annotations

import math
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from precision_lab.exceptions import InputError
from precision_lab.inputs.packaged import captures
from precision_lab.plan.table import plans
from precision_lab.sweeps.config.sweep_file import MANY, config_of, read_config
from precision_lab.sweeps.execution import cases_of
from precision_lab.sweeps.grid import Sweep
from precision_lab.sweeps.sources import captured, family

if TYPE_CHECKING:
    from pathlib import Path

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


def written(folder: Path, text: str) -> Path:
    """A sweep file."""
    path = folder / "my sweep.toml"
    path.write_text(text, "utf-8")
    return path


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


class TestRefusals:
    """One sentence with the file, the key and what would be right."""

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            # The file as a whole.
            ("version = ", "no TOML: Invalid value"),
            ("version = 1\nhidden == 3", r"no TOML: Invalid value \(at line 2, column 9\)"),
            ("hidden = 3", "version is missing: write version = 1"),
            ("version = 2", "version is 2: this precision-lab reads sweep files of version 1"),
            ("version = true", "version is True"),
            ('version = "1"', "version is '1'"),
            ("version = 1.0", "version is a decimal number: give an integer"),
            ("version = 1\nversion = 1", "no TOML"),
            # Keys.
            ("version = 1\nfromats = 'bf16'", "unknown key 'fromats': the nearest are formats"),
            ("version = 1\nplan = 'late'", "unknown key 'plan': the nearest are plans"),
            ("version = 1\nseed = 1", "unknown key 'seed': the nearest are seeds"),
            ("version = 1\n'a\\nb' = 1", r"unknown key 'a\\nb'"),
            ("version = 1\n[plans]\nordr = 'x'", "plans: unknown key 'ordr': .*order"),
            (
                "version = 1\n[[plans]]\nplan = 'late'\n[[plans]]\ncats = 'late'",
                r"plans\[1\]: unknown key 'cats': the nearest are cast",
            ),
            (
                "version = 1\ninputs = [{family = 'normal', scael = 2}]",
                r"inputs\[0\]: unknown key 'scael': the nearest are scale",
            ),
            (
                "version = 1\ninputs = {family = 'uniform', scale = 2}",
                "inputs: unknown key 'scale'.*seed",
            ),
            ("version = 1\ninputs = {famly = 'normal'}", "inputs: unknown key 'famly'.*family"),
            ("version = 1\ninputs = {seed = 1}", "inputs names no source: give a family or"),
            (
                "version = 1\ninputs = {family = 'normal', capture = 'smollm2'}",
                "inputs has both a family and a capture",
            ),
            (
                "version = 1\ninputs = {capture = 'smollm2', scale = 1}",
                "inputs: unknown key 'scale'.*layers|capture",
            ),
            # Kinds.
            ("version = 1\nhidden = 'big'", "hidden is text: give an integer or a list"),
            ("version = 1\nhidden = 64.0", "hidden is a decimal number: give an integer or a list"),
            ("version = 1\nhidden = true", "hidden is true or false: give an integer or a list"),
            ("version = 1\nhidden = [1, 'a']", r"hidden\[1\] is text: give an integer"),
            ("version = 1\nhidden = [[1]]", r"hidden\[0\] is a list: give an integer"),
            ("version = 1\nnorm = 1", "norm is an integer: give text or a list"),
            ("version = 1\neps = {}", "eps is a table: give a number, text or a list"),
            ("version = 1\neps = 1979-05-27", "eps is date"),
            ("version = 1\nplans = [1]", r"plans\[0\] is an integer: give text or a table"),
            ("version = 1\ninputs = 3", "inputs is an integer: give text, a table or a list"),
            (
                "version = 1\nplans = [{order = 3}]",
                r"plans\[0\].order is an integer: give text or a list",
            ),
            (
                "version = 1\ninputs = [{family = 'normal', scale = []}]",
                r"inputs\[0\].scale is empty: give one or more",
            ),
            ("version = 1\ninputs = {family = 'normal', seed = 0.5}", "inputs.seed is a decimal"),
            # Values.
            ("version = 1\nformats = ['fp16', 'bf61']", r"formats\[1\]: unknown .*'bf61'.*bf16"),
            ("version = 1\nformats = []", "formats is empty: give one or more"),
            ("version = 1\ninputs = []", "inputs is empty"),
            ("version = 1\nplans = []", "plans is empty"),
            ("version = 1\nnorm = 'rsm'", "norm: unknown norm 'rsm': the nearest is rms"),
            ("version = 1\nplans = 'erly'", "plans: unknown plan 'erly': the nearest are early"),
            (
                "version = 1\nplans = [{plan = 'lat'}]",
                r"plans\[0\].plan: unknown plan 'lat': the nearest is late",
            ),
            (
                "version = 1\nplans = [{cast = ['late', 'erly']}]",
                r"plans\[0\].cast\[1\]: unknown value of cast 'erly': the nearest is early",
            ),
            ("version = 1\nplans = {order = []}", "plans.order is empty"),
            ("version = 1\nplans = {order = 'lanes'}", "plans.order: .*lanes"),
            ("version = 1\nplans = {name = 'late', order = 'kahan'}", "name of another plan"),
            ("version = 1\nplans = {name = 'a\\tb'}", "plans.name: .* is no name"),
            (
                "version = 1\nplans = [{name = 'a'}, {name = 'a', cast = 'early'}]",
                r"plans\[1\]: two different plans are named 'a'",
            ),
            ("version = 1\neps = nan", "eps: eps is nan: give a finite number"),
            ("version = 1\neps = [1e-6, inf]", r"eps\[1\]: eps is inf: give a finite number"),
            ("version = 1\neps = -1e-6", "eps: eps is -1e-06: give a finite number"),
            ("version = 1\neps = 'nan'", "eps: 'nan' is no number: write a decimal"),
            ("version = 1\neps = '1e999'", "eps: eps is inf"),
            ("version = 1\neps = '-0x1p9999'", "eps: eps is -inf"),
            ("version = 1\neps = 'tiny'", "eps: 'tiny' is no number"),
            (f"version = 1\neps = {10**400}", "eps: number out of range"),
            ("version = 1\nhidden = -3", "hidden: hidden is -3: give an integer from 1 up"),
            ("version = 1\nhidden = 0", "hidden: hidden is 0"),
            ("version = 1\nhidden = 3000000000", "hidden is 3000000000: give an integer up"),
            ("version = 1\nrows = -1", "rows: rows is -1"),
            ("version = 1\nrows = 65536\nhidden = 65536", "65536 rows of 65536 are 4294967296"),
            ("version = 1\nseeds = -1", "seeds: seed is -1"),
            ("version = 1\nseeds = 18446744073709551616", "seeds: seed is 18446744073709551616"),
            (f"version = 1\nseeds = {'9' * 4000}", r"seeds: seed is 9+ …$"),
            (f"version = 1\nseeds = {'9' * 5000}", "no TOML that can be read: "),
            (f"version = 1\nseeds = {'[' * 5000}", "no TOML"),
            ("version = 1\ngains = 'randm'", "gains: unknown gain 'randm': the nearest is random"),
            ("version = 1\nexact = 'sqare'", "exact: unknown step 'sqare': the nearest are square"),
            ("version = 1\nexact = ['none', 'fold']", "exact: none .* step fold: they have upcast"),
            ("version = 1\nagainst = 'erly'", "against: unknown plan 'erly'"),
            ("version = 1\nexakt = 'sum'", "unknown key 'exakt': the nearest is exact"),
            ("version = 1\nscales = 'tensor'", "scales: unknown scale 'tensor'.*per_tensor"),
            ("version = 1\ninputs = 'norml'", "inputs: unknown input 'norml'.*normal"),
            ("version = 1\ninputs = {family = 'norml'}", "inputs.family: .*'norml'.*normal"),
            ("version = 1\ninputs = {family = 3}", "inputs.family: unknown input family '3'"),
            (
                "version = 1\ninputs = {family = 'normal', scale = nan}",
                "inputs: parameter 'scale' is nan",
            ),
            (
                "version = 1\ninputs = {family = 'heavy-tailed', freedom = 0}",
                "inputs: parameter 'freedom' is 0.0: give a number from 0.5",
            ),
            ("version = 1\ninputs = {capture = 'smol'}", "inputs.capture: unknown capture 'smol'"),
            (
                "version = 1\ninputs = {capture = ['smollm2', 'no/such.safetensors']}",
                r"inputs.capture\[1\]: .*no/such.safetensors cannot be read",
            ),
            (
                "version = 1\ninputs = {capture = 'smollm2', layers = 'model.nrm'}",
                "inputs.capture: unknown layer of smollm2 'model.nrm': the nearest are model.norm",
            ),
            (
                "version = 1\ninputs = {capture = 'smollm2', gain = 'wn'}",
                "inputs.gain: unknown gain 'wn'",
            ),
            ("version = 1\ninputs = {family = 'normal', gain = 'own'}", "unknown gain 'own'"),
            # What no case would use.
            (
                "version = 1\nnorm = 'layer'\nplans = ['late', 'hf-llama']",
                r"plans\[1\]: hf-llama computes the norm rms, and the sweep's norm is layer",
            ),
            (
                "version = 1\ninputs = ['normal', 'minilm']",
                r"inputs\[1\]: minilm was captured from the norm layer, .* norm is rms",
            ),
            (
                "version = 1\nformats = ['bf16', 'float4_e2m1fn']\nplans = 'all-low'",
                "formats: every plan computes in float4_e2m1fn, which has no NaN",
            ),
            # Names of files.
            ("version = 1\nname = '../over'", "name is '../over': give a plain file name"),
            ("version = 1\nname = 'a/b'", "name is 'a/b': give a plain file name"),
            ("version = 1\nname = 'a\\\\b'", "name is .*: give a plain file name"),
            ("version = 1\nname = '..'", "name is '..': give a plain file name"),
            ("version = 1\nname = '.hidden'", "name is '.hidden': give a plain file name"),
            ("version = 1\nname = 'a\\u0000b'", "name is .*: give a plain file name"),
        ],
    )  # fmt: skip
    def test_a_sentence(self, text, words, tmp_path):
        """The file first, then the key."""
        text = text.replace("'", '"') if "\\" in text else text
        path = written(tmp_path, text)
        with pytest.raises(InputError, match=words) as caught:
            read_config(path)
        assert str(caught.value).startswith(f"{path}: ")
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 600

    def test_no_file(self, tmp_path):
        """What is no text file is told as that, and a pipe is not waited for."""
        with pytest.raises(InputError, match=r"no.toml cannot be read: No such file"):
            read_config(tmp_path / "no.toml")
        with pytest.raises(InputError, match="no regular file"):
            read_config(tmp_path)
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(InputError, match="no regular file"):
            read_config(tmp_path / "pipe")
        (tmp_path / "binary").write_bytes(b"\xff\xfe" * 9)
        with pytest.raises(InputError, match="no text in UTF-8"):
            read_config(tmp_path / "binary")
        (tmp_path / "large").write_bytes(b"#" * (1 << 20) + b"\n")
        with pytest.raises(InputError, match="larger than 1 MiB"):
            read_config(tmp_path / "large")
        with pytest.raises(InputError, match="null byte"):
            read_config("a\0b")

    def test_python_values_are_checked_too(self):
        """What is given as a mapping need not have come from a file."""
        with pytest.raises(InputError, match="hidden is nothing: give an integer or a list"):
            config_of({"version": 1, "hidden": None})
        with pytest.raises(InputError, match="unknown key '3'"):
            config_of({"version": 1, 3: 4})
        with pytest.raises(InputError, match="version is None"):
            config_of({"version": None})
        with pytest.raises(InputError, match="eps is nan"):
            config_of({"version": 1, "eps": math.nan})
