# SPDX-License-Identifier: Apache-2.0
"""Kernels in sweep files: what is found, and how what is not is told."""

from __future__ import annotations

import pytest
from conftest import optional
from kernel_file import TEXT

from precision_lab.exceptions import InputError
from precision_lab.sweeps.config.sweep_file import config_of


@pytest.fixture
def file(tmp_path):
    """A file of kernels."""
    path = tmp_path / "norms.py"
    path.write_text(TEXT)
    return path


class TestSweepFiles:
    """Kernels in TOML."""

    def config(self, folder, **told):
        """What a sweep file of these keys says."""
        return config_of({"version": 1, **told}, folder=folder)

    def test_names_and_tables(self, file):
        """Files start in the folder of the sweep file; a table says more."""
        table = {"kernel": ["norms.py:plain", "norms.py:wide"], "weight_offset": "0x1p0"}
        found = self.config(file.parent, kernels=["norms.py:late", table], formats=["bf16", "fp16"])
        assert ["late", "plain", "wide"] == [kernel.name for kernel in found.sweep.kernels]
        assert [0.0, 1.0, 1.0] == [kernel.weight_offset for kernel in found.sweep.kernels]
        assert () == found.sweep.plans
        assert 6 == found.most == len(found.sweep.cases())
        alone = {"kernel": "norms.py:plain", "name": "my own", "norm": "rms"}
        (kernel,) = self.config(file.parent, kernels=alone, plans="late").sweep.kernels
        assert ("my own", "rms") == (kernel.name, kernel.norm)

    @pytest.mark.parametrize(
        ("kernels", "words"),
        [
            ([], "kernels is empty"),
            (3, "kernels is an integer: give text, a table or a list"),
            ("norms.py", r"kernels: 'norms.py' names no function"),
            ("nroms.py:plain", r"kernels: .*nroms.py cannot be imported: no such file"),
            (["norms.py:plane"], r"kernels\[0\]: .* no function 'plane': the nearest are plain"),
            ("late", "kernels: late is a plan"),
            ({"kernal": "norms.py:plain"}, "kernels: unknown key 'kernal': the nearest are kernel"),
            ({"framework": "torch"}, "kernels: object missing required field `kernel`"),
            ({"kernel": "norms.py:plain", "framework": "pytorch"}, "unknown framework 'pytorch'"),
            (
                {"kernel": "norms.py:plain", "device": "cuda"},
                "arrays, which lie on the cpu",
            ),
            ({"kernel": "norms.py:plain", "weight_offset": "one"}, r"weight_offset: 'one'"),
            ({"kernel": "norms.py:plain", "norm": "layer"}, "plain computes the norm layer, and"),
            ([{"kernel": "norms.py:wide", "name": "plain"}, "norms.py:plain"], "has the name"),
        ],
    )
    def test_a_sentence(self, kernels, words, file):
        """What is wrong, and where it stands."""
        with pytest.raises(InputError, match=words) as told:
            self.config(file.parent, kernels=kernels)
        assert "\n" not in str(told.value)

    def test_no_cuda(self, file, monkeypatch):
        """A device that is not there is told when the file is read."""
        torch = optional("torch")
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
        table = {"kernel": "norms.py:plain", "framework": "torch", "device": "cuda"}
        with pytest.raises(
            InputError, match=r"kernels.kernel: the device is cuda, but torch finds"
        ):
            self.config(file.parent, kernels=table)

    def test_no_format_that_torch_has(self, file):
        """Formats that nothing takes are told."""
        optional("torch")
        table = {"kernel": "norms.py:plain", "framework": "torch"}
        with pytest.raises(InputError, match=r"no kernel's .* has a type for float8_e4m3$"):
            self.config(file.parent, kernels=table, formats=["bf16", "float8_e4m3"])
