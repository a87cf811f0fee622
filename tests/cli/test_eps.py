# SPDX-License-Identifier: Apache-2.0
"""The command `eps`: answers, exit codes, bad input."""

from __future__ import annotations

import json

import pytest

from precision_lab.cli import run
from precision_lab.known_models import known_models

LLAMA = {"model_type": "llama", "rms_norm_eps": 1e-05, "hidden_size": 64, "torch_dtype": "float16"}


@pytest.fixture
def config(tmp_path):
    """Write a config; give its path."""

    def write(**changed):
        path = tmp_path / "config.json"
        path.write_text(json.dumps({**LLAMA, **changed}))
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
        asked(capsys, config(), *rms)["interval"][1] for rms in ((), ("--rms", "0.01", "1"))
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
        ({}, ["--rms", "5", "1"], "rms"),
        ({}, ["--amplification", "-2"], "amplification"),
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
    [([], "name a model"), (["Llama-3.1-9B"], "Llama-3.1-8B"), (["gone.json"], "gone.json")],
)
def test_a_model_that_is_none(model, told, capsys):
    """The nearest known one, or the file, is named."""
    assert 2 == run(["eps", *model])
    assert told in capsys.readouterr().err
