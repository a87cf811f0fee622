# SPDX-License-Identifier: Apache-2.0
"""The helper for optional packages: it gives, skips or fails as it should."""

from __future__ import annotations

import json

import pytest
from conftest import optional


def test_a_package_that_is_there_is_given(monkeypatch):
    """What can be imported is imported, required or not; a submodule too."""
    monkeypatch.setenv("PRECISION_LAB_REQUIRE", "json")
    assert optional("json") is json
    assert optional("json.decoder") is json.decoder


@pytest.mark.parametrize("required", ["", "torch,flint"])
def test_an_absent_package_skips(monkeypatch, required):
    """What is absent and not required skips."""
    monkeypatch.setenv("PRECISION_LAB_REQUIRE", required)
    with pytest.raises(pytest.skip.Exception, match="no_such_package is not installed"):
        optional("no_such_package")


@pytest.mark.parametrize("name", ["no_such_package", "no_such_package.below"])
def test_an_absent_package_that_is_required_fails(monkeypatch, name):
    """What is absent though required fails: a run that was to test against it must not pass."""
    monkeypatch.setenv("PRECISION_LAB_REQUIRE", "torch, no_such_package")
    with pytest.raises(pytest.fail.Exception, match="required by PRECISION_LAB_REQUIRE"):
        optional(name)
