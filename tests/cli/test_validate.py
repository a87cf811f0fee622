# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
import importlib
import json
import re
import subprocess
import sys

import pytest
from misbehaving import TEXT

from precision_lab.cli.identify import sentence
from precision_lab.files.safetensors import read_safetensors
from precision_lab.identification.closest_plan import Identified, rivals
from precision_lab.inputs.packaged import captures
from precision_lab.norm.norm import norms
from precision_lab.plan.table import plans
from precision_lab.validation.probe_table import probes

FEW = ("--hidden", "3,8", "--rows", "2", "--probes", "normal,constant")


@pytest.fixture
def file(tmp_path):
    """A file of kernels."""
    path = tmp_path / "kernels.py"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_a_sound_kernel_passes_in_one_command(lab, file):
    """One sentence first; exit code 0; nothing on standard error."""
    ran = lab("validate", f"{file}:sound", *FEW)
    assert (0, "") == (ran.code, ran.err)
    lines = ran.out.splitlines()
    assert lines[0].startswith("sound is a sound RMSNorm in bfloat16, late/direct: all ")
    assert any(line.startswith("  diagnosis: its outputs are those of late") for line in lines)
    assert any(line.startswith("  smallest detectable error in 1/rms: ") for line in lines)


def test_a_faulty_kernel_is_shown(lab, file):
    """The probe, the shrunk input in hex, what is right and what it gave; exit code 1."""
    ran = lab("validate", f"{file}:wrong", *FEW, "--plan", "late")
    assert ran.code == 1
    assert ran.out.startswith("wrong does not follow plan 'late' in bfloat16: at ")
    assert "made small: 1x8" in ran.out
    assert re.search(r"element 7 is 0x0p\+0 \(0\), right is 0x1", ran.out)


def test_json_tells_the_same(lab, file):
    """The verdict as data."""
    ran = lab("validate", f"{file}:wrong", *FEW, "--plan", "late", "--json")
    assert ran.code == 1
    assert ran.data["passed"] is False
    assert ran.data["failures"][0]["small"]["element"] == 7
    assert ran.data["failures"][0]["inputs"]["x"]["shape"] == [1, 8]


def test_the_page_stands_alone(lab, file, tmp_path):
    """One file, its figure inside it, with nothing from elsewhere; what is shown is escaped."""
    path = tmp_path / "page.html"
    ran = lab("validate", f"{file}:wrong", *FEW, "--plan", "late", "--html", path)
    assert ran.code == 1
    assert str(path) in ran.err
    text = path.read_text(encoding="utf-8")
    assert "Is wrong right?" in text
    assert "data:image/svg+xml;base64," in text
    assert "A small input that shows it" in text
    assert re.findall(r'(?:src|href)="(?!data:)', text) == []
    assert "http" not in re.sub(r"base64,[^\"]+", "", text)
    lost = lab("validate", "late", *FEW, "--html", tmp_path / "no" / "page.html")
    assert lost.code == 2


def test_what_cannot_be_written_is_refused_before_the_run(lab, file, tmp_path, monkeypatch):
    """In one sentence, and nothing is left or made; no kernel is called for it."""
    importlib.import_module("precision_lab.validation")
    monkeypatch.setattr(sys.modules["precision_lab.validation"], "validate", None)
    (tmp_path / "taken").touch()
    before = sorted(tmp_path.iterdir())
    for option, path, words in (
        ("--html", tmp_path / "no" / "page.html", "No such file or directory"),
        ("--html", tmp_path, "a folder stands in its place"),
        ("--reproducer", tmp_path / "taken", "is no folder"),
        ("--reproducer", tmp_path / "taken" / "below", "is no folder"),
    ):
        ran = lab("validate", f"{file}:sound", *FEW, option, path)
        assert (2, "") == (ran.code, ran.out)
        assert words in ran.err
        assert ran.err.count("\n") == 1
    assert before == sorted(tmp_path.iterdir())


def test_lists_that_hold_nothing_are_refused(lab):
    """Commas alone name no size and no property."""
    for option in ("--hidden", "--rows", "--probes", "--require", "--eps"):
        ran = lab("validate", "late", option, " , ")
        assert ran.code == 2
        assert "' , ' names nothing" in ran.err


def test_a_limit_of_time_is_a_day_at_most(lab):
    """Whatever cannot be waited for is refused in one sentence."""
    for limit in ("1e300", "inf", "90000", "0"):
        ran = lab("validate", "late", "--time-limit", limit)
        assert (2, 1) == (ran.code, ran.err.count("\n"))


def test_a_reproducer_shows_the_fault(lab, file, tmp_path):
    """Its five lines run by themselves, on inputs that are the shrunk ones."""
    folder = tmp_path / "fault"
    assert lab("validate", f"{file}:wrong", *FEW, "--reproducer", folder).code == 1
    given, told = read_safetensors(folder / "inputs.safetensors")
    assert given["x"].shape == (1, 8)
    assert told["norm"] == "rms"
    script = folder / "reproduce.py"
    lines = script.read_text(encoding="utf-8").splitlines()
    assert len([line for line in lines if not line.startswith("#")]) == 5
    code = f"import sys, runpy; sys.path[:] = {sys.path!r}; runpy.run_path({str(script)!r})"
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert (1, "") == (done.returncode, done.stdout)
    assert re.fullmatch(r"got 0x0\.0p\+0, right is 0x1\.\S+p\S+( to \S+)?\n", done.stderr)
    script.write_text(script.read_text("utf-8").replace(":wrong", ":sound"), "utf-8")
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)
    # A kernel that is right has none, and a crash has its inputs.
    none = lab("validate", "late", *FEW, "--plan", "late", "--reproducer", tmp_path / "none")
    assert none.code == 0
    assert "no fault has inputs" in none.err
    assert not (tmp_path / "none").exists()
    crash = lab(
        "validate", f"{file}:exits", *FEW, "--plan", "late", "--reproducer", tmp_path / "crash"
    )
    assert crash.code == 1
    assert read_safetensors(tmp_path / "crash" / "inputs.safetensors")[0]["x"].shape[1] == 8


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.py:f"], "nowhere.py cannot be imported: no such file"),
        (["nowhere.py"], "there is no such file"),
        (["FILE:signature"], "is called with (x, weight, bias, eps)"),
        (["FILE:sounds"], "the nearest are sound"),
        (["no-such-plan"], "names no function"),
        ([], "name a kernel"),
        (["late", "--norm", "rmss"], "the nearest is rms"),
        (["late", "--format", "float12"], "unknown format 'float12'"),
        (["late", "--format", "float64"], "judged in float32"),
        (["late", "--probes", "norml"], "unknown probe 'norml': the nearest are normal"),
        (["late", "--require", "determinstic"], "deterministic"),
        (["late", "--hidden", "big"], "hidden is 'big'"),
        (["late", "--hidden", "0"], "hidden holds 0"),
        (["late", "--rows", "-1"], "rows is '-1'"),
        (["late", "--eps", "-1"], "eps is -1"),
        (["late", "--eps", "small"], "small"),
        (["late", "--plan", "lat"], "unknown plan 'lat'"),
        (["late", "--overflow", "wrap"], "unknown overflow policy 'wrap'"),
        (["late", "--inputs", "gpt3"], "unknown capture 'gpt3'"),
        (["late", "--time-limit", "0"], "time_limit is 0"),
        (["late", "--framework", "jxa"], "unknown framework 'jxa'"),
        (["late", "--device", "cuda"], "runs on the cpu"),
        (["late", "--jsn"], "--json"),
    ],
)
def test_bad_input_is_one_sentence(lab, file, arguments, words):
    """Exit code 2, nothing on standard output."""
    ran = lab("validate", *(text.replace("FILE", str(file)) for text in arguments))
    assert (2, "") == (ran.code, ran.out)
    assert words in ran.err
    assert ran.err.count("\n") == 1


def test_probes_are_listed(lab):
    """Each with what it exposes, without a kernel."""
    assert list(probes) == [row["name"] for row in lab("validate", "--list-probes", "--json").data]
    out = lab("validate", "--list-probes").out
    assert all(row.exposes in out for row in probes.values())


def test_options_reach_the_run(lab):
    """Formats, offsets, captures and properties are those that were given."""
    settings = lab(
        "validate", "late", *FEW, "--plan", "late", "--norm", "layer", "--format", "float16",
        "--weight-format", "float32", "--eps", "1e-5", "--seed", "7", "--overflow", "saturate",
        "--json",
    ).data["settings"]  # fmt: skip
    assert settings == {
        "norm": "layer", "format": "float16", "weight_format": "float32",
        "output_format": "float16", "eps": [1e-5], "weight_offset": 0.0, "overflow": "saturate",
        "seed": 7,
    }  # fmt: skip
    name = next(name for name, row in captures.items() if row.load().norm == "rms")
    ran = lab(
        "validate", "late", *FEW, "--plan", "late", "--inputs", name, "--require",
        "deterministic,permutation", "--json",
    )  # fmt: skip
    assert ran.data["calls"] > len(captures[name].load().layers)
    assert ran.data["properties"]["deterministic"]["holds"] is True


def test_identify_names_the_plan(lab, file):
    """All of the outputs, the implementations known to give them, and each switch."""
    ran = lab("identify", f"{file}:sound")
    assert ran.code == 0
    assert ran.out.startswith("sound follows the plan late: all ")
    assert "known implementations: late, " in ran.out
    assert re.search(r"^cast +late", ran.out, re.MULTILINE)
    data = lab("identify", "hf-llama", "--json").data
    best = data["plans"][0]
    assert best["exact"]
    assert best["switches"]["cast"] == "early"
    assert "hf-llama" in best["known"]


@pytest.mark.slow
@pytest.mark.wide
def test_identify_says_that_no_plan_fits(lab, tmp_path):
    """With the best share, which never reads as all."""
    path = tmp_path / "noisy.py"
    path.write_text(
        "def f(x, weight, bias, eps):\n    return (x * 3).astype(x.dtype)\n", encoding="utf-8"
    )
    ran = lab("identify", f"{path}:f")
    assert ran.code == 0
    assert re.fullmatch(
        r"f fits no plan: none gives more than \d?\d\.\d\d % of 6,080 outputs\.\n", ran.out
    )
    assert all(not one["faults"] for one in lab("identify", f"{path}:f", "--json").data["plans"])


def test_two_plans_that_are_as_near_are_both_told():
    """One with a fault and one without, within a margin: neither is claimed, alone it is."""
    sound = Identified(plans["late"], norms["rms"], 0.9023, compared=6080)
    faulty = Identified(
        plans["late"].replace(eps_place="missing"), norms["rms"], 0.9044,
        faults=("eps is missing",), compared=6080,
    )  # fmt: skip
    told = sentence("f", [faulty, sound])
    assert (
        "f fits no plan: it is something like late eps_place=missing (90.44 %) or late (90.23 %),"
        " of 6,080 outputs." == told
    )
    assert [faulty, sound] == rivals([faulty, sound])
    assert [] == rivals([faulty, dataclasses.replace(sound, share=0.8)])
    assert [] == rivals([faulty, faulty])
    assert [] == rivals([dataclasses.replace(faulty, share=1.0), sound])
    assert "the nearest, late eps_place=missing, gives 90.44 %" in sentence("f", [faulty])


def test_identify_of_what_answers_nothing(lab, file, tmp_path):
    """One sentence with the kernel's own words, exit code 2."""
    path = tmp_path / "never.py"
    path.write_text(
        "import os\n"
        "def refuses(x, weight, bias, eps):\n    raise ValueError('not today')\n"
        "def dies(x, weight, bias, eps):\n    os._exit(5)\n",
        encoding="utf-8",
    )
    for name, words in (("refuses", "ValueError: not today"), ("dies", "exit code 5")):
        ran = lab("identify", f"{path}:{name}", "--hidden", "3", "--eps", "1e-6")
        assert ran.code == 2
        assert "answered no call" in ran.err
        assert words in ran.err
    assert lab("identify", f"{file}:signature").code == 2


def test_compare_sets_two_side_by_side(lab, file):
    """By probe: how many bits are equal, and the largest difference in ulp."""
    same = lab("compare", f"{file}:sound", "late", *FEW)
    assert same.code == 0
    assert same.out.startswith("sound and late give the same bits: all ")
    ran = lab("compare", f"{file}:sound", "early", *FEW)
    assert ran.code == 0
    assert "the largest difference is 1 ulp, at " in ran.out
    data = lab("compare", f"{file}:sound", f"{file}:exits", *FEW, "--json").data
    assert data["total"]["unanswered"] > 0
    assert data["total"]["share"] == 1.0
    assert json.dumps(data).count("exit code 3")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["late"], "name a kernel beside late"),
        (["late", "lat:x"], "cannot be imported"),
        (["late", "hf-gemma"], "give the weight's offset"),
        (["late", "torch-layer-norm"], "compare kernels of one norm"),
        (["late", "late", "--device", "cpu", "--device", "cpu", "--device", "cpu"], "3 times"),
    ],
)
def test_what_cannot_be_compared_is_told(lab, arguments, words):
    """One sentence, exit code 2."""
    ran = lab("compare", *arguments)
    assert (2, "") == (ran.code, ran.out)
    assert words in ran.err
