# SPDX-License-Identifier: Apache-2.0
"""Kernels in sweeps: beside plans, against the same truth, and whatever they do."""

from __future__ import annotations

import dataclasses
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import matplotlib as mpl
import ml_dtypes
import numpy as np
import pytest
from conftest import optional
from kernel_file import TEXT

from precision_lab import canonical_json as canonical
from precision_lab.exceptions import InputError
from precision_lab.kernels.finding import find_kernel
from precision_lab.plan.emulation import emulate
from precision_lab.report import charts
from precision_lab.sweeps import workers
from precision_lab.sweeps.execution import read_results, run, sweep
from precision_lab.sweeps.grid import Sweep
from precision_lab.sweeps.measurement import measure
from precision_lab.sweeps.results.exporting import export
from precision_lab.sweeps.results.merging import merge
from precision_lab.sweeps.run_summary import CaseError
from precision_lab.sweeps.sources import captured

SMALL = {"hidden": 9, "rows": 2, "eps": 1e-5}


@pytest.fixture
def file(tmp_path) -> Path:
    """A file of kernels."""
    path = tmp_path / "norms.py"
    path.write_text(TEXT)
    return path


def of_kind(table, kind):
    """The rows of plans or of kernels."""
    return table[table["kind"] == kind].reset_index(drop=True)


def results(table) -> list[str]:
    """The errors of each row as text, so that NaN equals NaN."""
    names = [name for name in table if name.startswith(("arithmetic", "total", "worst", "output"))]
    return [canonical.encode(row) for row in table[names].to_dict("records")]


def late(x, weight, bias, eps):
    """The plan late as a kernel."""
    return emulate(x, weight, bias, eps=eps, plan="late")


class TestRows:
    """What a kernel's rows say."""

    FORMATS = ("bf16", "fp16", "fp32", "float8_e4m3fn", "float8_e5m2")

    def test_the_same_numbers_as_the_plan(self):
        """A kernel that computes as a plan has its columns, and no bounds or steps."""
        grid = Sweep(
            plans="late", kernels=find_kernel(late, name="mine"), formats=self.FORMATS[:3],
            gains=["none", "random"], scales=["none", "per_tensor"], inputs=["normal", "zero"],
            **SMALL,
        )  # fmt: skip
        table = sweep(grid)
        plans, kernels = of_kind(table, "plan"), of_kind(table, "kernel")
        assert len(plans) == len(kernels) == 12
        assert results(plans) == results(kernels)
        assert {"mine"} == set(kernels["plan"])
        assert {""} == set(kernels["plan_cast"]) == set(kernels["plan_norm"])
        assert {""} == set(plans["kernel"]) == set(plans["framework"]) == set(plans["device"])
        assert kernels[["bound_ulp", "bound_exceeded", "overflow_square"]].isna().all().all()
        assert {("numpy", "cpu", "")} == set(
            zip(kernels["framework"], kernels["device"], kernels["first_overflow"], strict=True)
        )

    def test_the_comparison_can_fail(self):
        """Another eps or another rounding is seen."""
        one, two = (sweep(Sweep(kernels=late, **{**SMALL, "eps": eps})) for eps in (1e-5, 1e-1))
        assert results(one) != results(two)

    def test_bit_by_bit_against_a_plan(self, file):
        """A kernel can be held against a plan: the share of equal outputs is counted."""
        table = sweep(Sweep(kernels=f"{file}:late", against=["late", "early"], hidden=99, rows=4))
        same, other = table["against_differs"]
        assert 0 == same < other

    def test_its_own_output_format(self, file):
        """The ulp is that of what the kernel gives."""
        table = sweep(Sweep(kernels=f"{file}:wide", formats="bf16", **SMALL))
        assert ["float32"] == list(table["output_format"])
        assert 0 < table["arithmetic_ulp_max"][0] < 4

    def test_offset_gains(self):
        """A kernel that multiplies by 1 + g is held to the truth that does."""

        def gemma(x, weight, bias, eps):
            return emulate(x, weight, bias, eps=eps, plan="hf-gemma")

        def largest(**told):
            kernel = find_kernel(gemma, **told)
            return sweep(Sweep(kernels=kernel, **SMALL))["arithmetic_ulp_max"][0]

        assert largest(weight_offset=1) < 1 < largest()

    def test_eps(self):
        """The sweep's, or the capture's, or 1e-6, as a Python float."""
        seen = []

        def mine(x, weight, bias, eps):
            seen.append((type(eps), eps, weight is None, bias is None))
            return x

        (layer, *_) = captured("smollm2").capture().layers
        sweep(Sweep(kernels=mine, gains="none", hidden=4, rows=1))
        sweep(Sweep(kernels=mine, inputs=captured("smollm2", layer.name)))
        sweep(Sweep(kernels=mine, norm="layer", biases="random", **SMALL))
        own = captured("smollm2").capture().eps
        assert [
            (float, 1e-6, True, True), (float, own, False, True), (float, 1e-5, False, False)
        ] == seen  # fmt: skip

    def test_what_a_kernel_writes_to_is_its_own(self):
        """Inputs that it spoils are not those of the cases after it."""

        def spoils(x, weight, bias, eps):
            y = late(x, weight, bias, eps)
            x[:] = 0
            weight[:] = 0
            return y

        first = Sweep(kernels=spoils, **SMALL).cases()
        sweep(Sweep(kernels=spoils, **SMALL))
        table = sweep(Sweep(plans="late", kernels=spoils, **SMALL))
        assert results(of_kind(table, "plan")) == results(of_kind(table, "kernel"))
        assert first

    def test_charted_beside_plans(self, file):
        """The charts that plans have take kernels as they are."""
        mpl.use("Agg")
        grid = Sweep(plans=["late", "all-low"], kernels=[f"{file}:plain"], formats=["bf16", "fp16"],
                     **SMALL)  # fmt: skip

        def figure(rows):
            return charts.svg(
                charts.dots(
                    rows, name="error", title="Error", caption="The largest error.",
                    xlabel="error in ulp", value="arithmetic_ulp_max", bound="bound_ulp",
                    by="format", series="plan",
                )
            )  # fmt: skip

        table = sweep(grid)
        drawn = figure(table)
        assert drawn != figure(of_kind(table, "plan"))
        text = drawn.decode() if isinstance(drawn, bytes) else drawn
        assert "plain" in text
        assert "nan" not in text.lower().replace("nano", "")

    def test_torch_bit_for_bit(self, tmp_path):
        """torch's rms_norm has the columns of its plan, in every format that it takes."""
        optional("torch")
        path = tmp_path / "wrapped.py"
        path.write_text(
            "import torch.nn.functional as F\n"
            "def torch_rms(x, weight, bias, eps):\n"
            "    if x.itemsize > 1:\n"
            "        return F.rms_norm(x, x.shape[-1:], weight, eps)\n"
            "    weight = None if weight is None else weight.float()\n"
            "    return F.rms_norm(x.float(), x.shape[-1:], weight, eps).to(x.dtype)\n"
        )
        kernel = find_kernel(f"{path}:torch_rms", framework="torch")
        grid = Sweep(
            plans="torch-rms-norm", kernels=kernel, formats=[*self.FORMATS, "tf32"],
            gains=["none", "random"], hidden=[7, 576], rows=3, eps=1e-5, against="torch-rms-norm",
        )  # fmt: skip
        table = sweep(grid)
        held, own = table[table["format"] == "tf32"], table[table["format"] != "tf32"]
        # It is held in float32, which is what torch sees and gives.
        assert {"float32"} == set(of_kind(held, "kernel")["output_format"])
        plans, kernels = of_kind(own, "plan"), of_kind(own, "kernel")
        assert 20 == len(plans)
        assert results(plans) == results(kernels)
        assert {0.0} == set(own["against_differs"])
        assert {f"torch {kernel.version}"} == set(kernels["framework"])


class TestGrid:
    """Which cases there are."""

    def test_an_edited_kernel_is_another_case(self, file):
        """Name, framework, device and code are in the key; where the file lies is not."""
        before = Sweep(kernels=f"{file}:plain").cases()[0]
        moved = file.with_name("elsewhere") / "norms.py"
        moved.parent.mkdir()
        moved.write_text(TEXT)
        assert before.key == Sweep(kernels=f"{moved}:plain").cases()[0].key
        file.write_text(TEXT + "\n")
        keys = {before.key, Sweep(kernels=f"{file}:plain").cases()[0].key}
        for name, value in (("framework", "torch"), ("device", "cuda"), ("name", "p")):
            keys.add(dataclasses.replace(before, kernel={**before.kernel, name: value}).key)
        assert 5 == len(keys)
        assert "plain in bfloat16 on family:normal" in before.text

    def test_kernels_need_no_plan(self, file):
        """Without plans there are kernels alone; without either, late as before."""
        assert [""] == [case.plan.get("name", "") for case in Sweep(kernels=late).cases()]
        both = Sweep(plans="early", kernels=[f"{file}:plain", late]).cases()
        assert ["early", "plain", "late"] == [case.name for case in both]
        assert ["late"] == [case.name for case in Sweep().cases()]
        assert "kernels" not in Sweep().record
        assert "norms.py:plain" in canonical.encode(Sweep(kernels=f"{file}:plain").record)

    def test_norms_and_formats(self):
        """A kernel of one norm has cases of it; a torch kernel in formats that torch has."""
        kernel = find_kernel(late, norm="rms")
        assert ["rms"] == [c.norm for c in Sweep(norm=["rms", "layer"], kernels=kernel).cases()]
        torch = dataclasses.replace(kernel, framework="torch")
        grid = Sweep(kernels=torch, formats=["float8_e4m3fn", "float8_e4m3"])
        assert ["float8_e4m3fn"] == [case.format for case in grid.cases()]
        exact = Sweep(plans="early", kernels=kernel, exact=["none", "sum"]).cases()
        told = [("early", ""), ("early", "sum"), ("late", "")]
        assert told == [(case.name, case.exact) for case in exact]

    @pytest.mark.parametrize(
        ("axes", "words"),
        [
            ({"kernels": "late"}, "late is a plan: list it among the plans"),
            ({"kernels": ["no.py:f"]}, "no.py cannot be imported"),
            ({"kernels": 3}, "the kernel is 3: give file.py:function"),
            ({"kernels": [late, late]}, "has the name 'late', which another"),
            ({"kernels": late, "plans": "late"}, "has the name 'late', which another"),
            ({"kernels": [], "plans": []}, "plans is empty"),
        ],
    )
    def test_refusals(self, axes, words):
        """One sentence each."""
        with pytest.raises(InputError, match=words):
            Sweep(**axes)

    def test_no_case(self):
        """Kernels of another norm alone are told as plans are."""
        with pytest.raises(InputError, match=r"none of its kernels \(late\) computes the norm lay"):
            Sweep(norm="layer", kernels=find_kernel(late, norm="rms")).cases()


class TestFaults:
    """Kernels that raise, hang or kill their process cost their own cases."""

    def failing(self, file, name, path, jobs=1):
        """What is told where two cases fail, all others being saved."""
        grid = Sweep(plans="late", kernels=f"{file}:{name}", formats=["fp16", "bf16"], seeds=[0, 1],
                     **SMALL)  # fmt: skip
        with pytest.raises((InputError, CaseError)) as told:
            run(grid, path, jobs=jobs)
        assert "\n" not in str(told.value)
        assert 6 == len(read_results(path))
        assert f"2 of 8 cases could not be measured, the others are saved; the first is {name} in" \
            in str(told.value)  # fmt: skip
        return told.value

    def test_one_that_raises(self, file, tmp_path):
        """The sentence names it and what it said; all other rows are saved."""
        error = self.failing(file, "picky", tmp_path / "rows.sqlite")
        assert isinstance(error, InputError)
        assert "the kernel picky (norms.py:picky) raised ValueError: no half" in str(error)

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_one_that_kills_its_process(self, file, tmp_path, jobs):
        """Also with one job this process lives, and the rest is measured."""
        error = self.failing(file, "deadly", tmp_path / "rows.sqlite", jobs)
        assert isinstance(error, CaseError)
        assert "ended with signal 9, twice" in str(error)

    def test_one_that_hangs(self, file, tmp_path, monkeypatch):
        """After a while it is ended, and the rest is measured."""
        monkeypatch.setattr(workers, "PATIENCE", 0.7)
        error = self.failing(file, "hangs", tmp_path / "rows.sqlite")
        assert "the kernel gave no answer for 0.7 seconds" in str(error)

    def test_an_edited_file_under_a_sweep(self, file):
        """A case is measured by the code that its key tells of, or not at all."""
        (case,) = Sweep(kernels=f"{file}:plain", **SMALL).cases()
        file.write_text(TEXT + "\n")
        with pytest.raises(InputError, match=r"plain \(norms.py:plain\) is not what it was"):
            measure(case)

    @pytest.mark.parametrize(
        ("options", "words"),
        [({"path": "rows.sqlite"}, "a results file could not"), ({"jobs": 2}, "other processes")],
    )
    def test_callables_stay_in_their_process(self, options, words, tmp_path, monkeypatch):
        """They fill no file and no other process, and say what does."""
        monkeypatch.chdir(tmp_path)
        with pytest.raises(InputError, match=f"callable of this process, which {words}.*file.py:f"):
            sweep(Sweep(kernels=late, **SMALL), **options)
        assert not Path("rows.sqlite").exists()


def saved(path) -> int:
    """How many rows a file has, which may not be there yet."""
    try:
        return len(read_results(path))
    except InputError:
        return 0


class TestFiles:
    """Results files with kernels in them."""

    def grid(self, file):
        """A plan and two kernels."""
        return Sweep(plans="late", kernels=[f"{file}:plain", f"{file}:wide"], seeds=range(6),
                     **SMALL)  # fmt: skip

    def bytes_of(self, path, format="csv"):
        """What is exported of a file."""
        return b"".join(export(path, format=format))

    def test_jobs_shards_and_resuming_leave_no_trace(self, file, tmp_path):
        """The exported bytes are the same, and a sweep of an edited kernel is refused."""
        grid = self.grid(file)
        whole = run(grid, tmp_path / "whole.sqlite")
        assert (18, 18) == (whole.cases, whole.measured)
        assert 0 == run(grid, tmp_path / "whole.sqlite", jobs=2).measured
        parts = [tmp_path / f"{number}.sqlite" for number in (1, 2, 3)]
        for number, part in enumerate(parts, 1):
            run(grid, part, jobs=2, shard=(number, 3))
        merge(tmp_path / "merged.sqlite", parts)
        for format in ("csv", "jsonl"):
            assert self.bytes_of(tmp_path / "whole.sqlite", format) == self.bytes_of(
                tmp_path / "merged.sqlite", format
            )
        file.write_text(TEXT + "\n")
        with pytest.raises(InputError, match="another sweep"):
            run(self.grid(file), tmp_path / "whole.sqlite")

    @pytest.mark.slow
    @pytest.mark.wide
    def test_killed_and_resumed(self, file, tmp_path):
        """Killed at some moment, the sweep goes on and gives the same bytes."""
        (tmp_path / "s.toml").write_text(
            "version = 1\nplans = 'late'\nkernels = ['norms.py:plain', 'norms.py:wide']\n"
            "seeds = [0, 1, 2, 3, 4, 5]\nhidden = 1024\nrows = 40\neps = 1e-5\n"
        )
        command = [sys.executable, "-m", "precision_lab", "sweep", "s.toml", "--jobs", "1", "--out"]
        root = Path(__file__).parents[2]
        quiet = {
            "cwd": tmp_path,
            "env": {**os.environ, "PYTHONPATH": str(root)},
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL,
        }
        for wanted in (1, 4):
            with subprocess.Popen([*command, "killed.sqlite"], **quiet) as process:
                while process.poll() is None and saved(tmp_path / "killed.sqlite") < wanted:
                    time.sleep(0.02)
                process.send_signal(signal.SIGKILL)
        for name in ("killed.sqlite", "whole.sqlite"):
            assert 0 == subprocess.run([*command, name], **quiet, check=False).returncode
        assert 18 == len(read_results(tmp_path / "whole.sqlite"))
        assert self.bytes_of(tmp_path / "whole.sqlite") == self.bytes_of(tmp_path / "killed.sqlite")

    def test_parquet(self, file, tmp_path):
        """What a kernel does not have is NaN beside a plan's counts."""
        optional("pyarrow")
        run(Sweep(plans="late", kernels=f"{file}:plain", **SMALL), tmp_path / "rows.sqlite")
        assert b"PAR1" == self.bytes_of(tmp_path / "rows.sqlite", "parquet")[:4]


def test_bits_reach_kernels():
    """x arrives in the format's own type, fp8 and NaN included."""
    seen = []

    def mine(x, weight, bias, eps):
        seen.append(x.dtype)
        return x

    sweep(Sweep(kernels=mine, formats=["bf16", "float8_e5m2"], **SMALL))
    assert [np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.float8_e5m2)] == seen
    assert math.isnan(sweep(Sweep(kernels=mine, **SMALL))["bound_ulp"][0])
