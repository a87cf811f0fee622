# SPDX-License-Identifier: Apache-2.0
"""A command line that runs in the test's own process."""

from __future__ import annotations

import json

import pytest

from precision_lab import cli


class Ran:
    """What a command printed and how it ended."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def data(self):
        """Its standard output as JSON that no extension of JSON is needed for."""
        return json.loads(self.out, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))


@pytest.fixture
def lab(capsys):
    """Run the command line in this process."""

    def run(*arguments):
        capsys.readouterr()
        code = cli.run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run
