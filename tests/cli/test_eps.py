# SPDX-License-Identifier: Apache-2.0
"""The command `eps`: answers, exit codes, bad input."""

from __future__ import annotations

import json

import pytest
from conftest import optional

from precision_lab.cli import run
from precision_lab.models.released import known_models

LLAMA = {"model_type": "llama", "rms_norm_eps": 1e-05, "hidden_size": 64, "torch_dtype": "float16"}


@pytest.fixture
def config(tmp_path):
    """Write a config; give its path."""

    def write(**changed):
        path = tmp_path / "config.json"
        path.write_text(json.dumps({**LLAMA, **changed}).replace('"TINY"', "1e-400"))
        return str(path)

    return write


def asked(capsys, *arguments):
    """The answer as JSON."""
    assert 0 == run(["eps", *arguments, "--json"])
    return json.loads(capsys.readouterr().out)


def test_a_config_is_answered(config, capsys):
    """The keys of the answer, and what it says in words."""
    found = asked(capsys, config())
    first = [
        "model", "norm", "hidden_size", "format", "plan", "configured_eps", "effective_eps",
        "interval", "recommended", "verdict", "findings",
    ]  # fmt: skip
    assert first == list(found)[: len(first)]
    assert ("rms", 64, "float16", "hf-llama") == tuple(found[key] for key in first[1:5])
    assert (1e-5, "keep") == (found["configured_eps"], found["verdict"])
    assert {"code", "severity", "layer", "text"} == set(found["findings"][0])
    assert 0 == run(["eps", config()])
    assert capsys.readouterr().out.startswith("keep: eps 1e-05")


def test_the_exit_code_with_check(config, capsys):
    """1 unless the answer is to keep eps; 0 without --check."""
    low = [config(rms_norm_eps=1e-12), "--plan", "all-low"]
    assert 0 == run(["eps", *low])
    assert 1 == run(["eps", *low, "--check"])
    assert 0 == run(["eps", config(), "--check"])
    assert "impossible: no eps is safe: squares overflow" in capsys.readouterr().out


def test_two_ports(config, capsys, tmp_path):
    """Whether the second has the eps of the first; --check makes that the exit code."""
    other = tmp_path / "port.json"
    other.write_text(json.dumps({**LLAMA, "rms_norm_eps": 1e-06}))
    found = asked(capsys, config(), str(other))
    assert [1e-5, 1e-6] == found["eps"]
    assert not found["kept"]
    assert 1 == run(["eps", config(), str(other), "--check"])
    assert 0 == run(["eps", config(), config(), "--check"])
    capsys.readouterr()
    assert [1e-5, 1e-6] == asked(capsys, config(), "1e-6")["eps"]
    assert 2 == run(["eps", config(), "--port-plan", "late"])
    assert 2 == run(["eps", config(), str(other), "--new"])
    assert "--new is for one model" in capsys.readouterr().err


def test_a_new_design(config, capsys):
    """eps is free: the ends are those of vanishing, noise and shrinking."""
    found = asked(capsys, config(), "--new", "--amplification", "500")
    assert "amplifies" == found["lo_breaks"]
    # 1/√eps <= 500 from 4e-6 on.
    assert 4e-6 <= found["interval"][0] < 4.000001e-6


def test_rows_of_another_size(config, capsys):
    """Smaller rows leave less room above the configured eps."""
    usual, small = (
        asked(capsys, config(), *rms)["interval"][1] for rms in ((), ("--rms", "0.001", "1"))
    )
    assert small < usual


def test_the_known_models_are_listed(capsys):
    """One line each, and all that is known of them as JSON."""
    assert 0 == run(["eps", "--list"])
    out = capsys.readouterr().out
    assert all(name in out for name in known_models)
    listed = asked(capsys, "--list")
    assert [row["name"] for row in listed] == list(known_models)
    assert all(row["source"] for row in listed)
    lines = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    for row in listed:
        mark = "(class)" if not row["released"] else "" if row["checked"] else "?"
        assert f"{row['eps']:g} {mark}".strip() in lines[row["name"]]
        assert (" ? " in lines[row["name"]]) == (mark == "?")


def test_an_eps_that_was_not_checked_is_told(capsys):
    """Of a name alone; where the release was read nothing is said."""
    unread = next(name for name, row in known_models.items() if not row.checked)
    for name, told in ((unread, True), ("Llama-3.1-8B", False)):
        assert 0 == run(["eps", name])
        assert told == ("was not checked against the release" in capsys.readouterr().out)


def test_a_page(config, tmp_path, capsys):
    """It is written beside the answer, and says how it was made."""
    page = tmp_path / "eps.html"
    assert 0 == run(["eps", config(), "--html", str(page)])
    assert "Which eps for" in page.read_text("utf-8")
    assert str(page) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changed", "arguments", "told"),
    [
        ({"rms_norm_eps": "1e-5"}, [], "1e-5"),
        ({"rms_norm_eps": -1.0}, [], "-1"),
        ({"rms_norm_eps": 1e300}, [], "1e"),
        ({"layer_norm_eps": 1e-6}, [], "layer_norm_eps"),
        ({}, ["--format", "float8_e4m3fm"], "float8_e4m3fn"),
        ({}, ["--plan", "hf-lama"], "hf-llama"),
        ({}, ["--eps", "ten"], "ten"),
        ({}, ["--rms", "5", "1"], "rms 5 to 1 runs downwards"),
        ({}, ["--rms", "1e-400", "1"], "1e-400 is too small"),
        ({}, ["--eps", "1e-400"], "1e-400 is too small"),
        ({}, ["1e-400"], "1e-400 is too small"),
        ({"rms_norm_eps": "TINY"}, [], "1e-400 is too small"),
        ({}, ["--new", "--amplification", "-2"], "amplification"),
        ({}, ["--amplification", "500"], "give --new"),
        ({}, ["--rms", "1", "2", "--activations", "smollm2"], "--activations gives rows"),
        ({}, ["1e-6", "--amplification", "500"], "--amplification is for one model"),
        ({}, ["1000"], "from 0 to 1"),
        ({}, ["--norm", "layer"], "norm is 'layer', but"),
        ({"torch_dtype": "float12"}, [], "'float12', which is no format known here"),
        ({}, ["--eps", "2"], "from 0 to 1"),
        ({}, ["--activations", "nowhere.safetensors"], "nowhere.safetensors"),
    ],
)
def test_bad_input_is_one_sentence(changed, arguments, told, config, capsys):
    """Exit code 2, and the value or the nearest right one is named."""
    assert 2 == run(["eps", config(**changed), *arguments])
    said = capsys.readouterr()
    assert "" == said.out
    assert 1 == len(said.err.strip().splitlines())
    assert told in said.err


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ([], "name a model"),
        ([""], "name a model"),
        (["Llama-3.1-9B"], "Llama-3.1-8B"),
        (["gone.json"], "gone.json"),
        (["a" * 5000], "a" * 80 + "'"),
        ([":" * 5000], ":" * 80 + "'"),
    ],
)
def test_a_model_that_is_none(model, told, capsys):
    """The nearest known one, or the file, is named."""
    assert 2 == run(["eps", *model])
    assert told in capsys.readouterr().err


MODULES = """
from torch import nn

import sizes

print("made here")
norm = nn.RMSNorm(sizes.HIDDEN, eps=1e-6).bfloat16()
two = nn.Sequential(nn.RMSNorm(8, eps=1e-6), nn.LayerNorm(8))
number = 3

def make():
    import sizes
    return nn.Sequential(nn.RMSNorm(sizes.HIDDEN, eps=1e-5))

def fails():
    raise KeyError("no such size")
"""


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """A folder, worked in, of torch modules in a file and in a package."""
    optional("torch")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sizes.py").write_text("HIDDEN = 24\n")
    (tmp_path / "mine.py").write_text(MODULES)
    (tmp_path / "package_of_norms").mkdir()
    (tmp_path / "package_of_norms" / "inner.py").write_text(MODULES)
    return tmp_path


@pytest.mark.parametrize(
    "where",
    ["mine.py:norm", "./mine.py:norm", "{}/mine.py:norm", "package_of_norms.inner:norm"],
)
def test_a_torch_module_by_name(where, modules, capsys):
    """Found as kernels are; what it prints is no part of the answer."""
    found = asked(capsys, where.format(modules))
    told = ("RMSNorm", "rms", 24, "bfloat16", 1e-6, "keep")
    keys = ("model", "norm", "hidden_size", "format", "configured_eps", "verdict")
    assert told == tuple(found[key] for key in keys)


def test_a_function_that_makes_a_module(modules, capsys):
    """It is made, and its norms are asked; as the second of two as well."""
    assert 1e-5 == asked(capsys, "mine.py:make")["configured_eps"]
    assert [1e-6, 1e-5] == asked(capsys, "mine.py:norm", "mine.py:make")["eps"]
    assert [1e-5, 1e-6] == asked(capsys, "Llama-3.1-8B", "mine.py:norm")["eps"]
    assert [1e-6, 1e-5] == asked(capsys, "mine.py:norm", "1e-5")["eps"]


def test_a_torch_module_with_rows(modules, capsys):
    """The rows of its own capture are the evidence."""
    (modules / "rows.py").write_text("import torch\nx = torch.ones(3, 24).bfloat16()\n")
    rows = str(modules / "rows.safetensors")
    assert 0 == run(["capture", "mine.py:norm", "--input", "rows.py:x", "--out", rows])
    capsys.readouterr()
    found = asked(capsys, "mine.py:norm", "--activations", rows)
    assert found["evidence"].startswith("3 rows seen in 1 norm")


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("mine.py:", "names nothing"),
        ("mine.py:nrm", "norm"),
        ("gone.py:norm", "gone.py"),
        ("no.such:norm", "no.such"),
        ("mine.py:number", "is int: give a torch module"),
        ("mine.py:fails", "no such size"),
    ],
)
def test_what_is_no_torch_module(where, told, modules, capsys):
    """One sentence and exit code 2, whichever of two it is."""
    assert modules.is_dir()
    for models in ([where], [where, "1e-5"], ["Llama-3.1-8B", where]):
        assert 2 == run(["eps", *models])
        said = capsys.readouterr()
        assert "" == said.out
        lines = [line for line in said.err.strip().splitlines() if line != "made here"]
        assert 1 == len(lines)
        assert told in lines[0]
