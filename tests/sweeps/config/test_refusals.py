# SPDX-License-Identifier: Apache-2.0
"""Sweep files: what is refused, and in which sentence."""

from __future__ import annotations

import math
import os

import pytest
from sweep_files import written

from precision_lab.exceptions import InputError
from precision_lab.sweeps.config.sweep_file import config_of, read_config


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
