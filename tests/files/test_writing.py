# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import errno
import os
import subprocess
import sys

import numpy as np
import pytest

from precision_lab.exceptions import InputError
from precision_lab.files.safetensors import write_safetensors
from precision_lab.files.writing import replace_file


def left(folder):
    """Names and contents of all that a folder holds."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_file_is_written_and_replaced(tmp_path):
    """The pieces follow each other, an older file gives way, and nothing else is left."""
    path = tmp_path / "some.bin"
    replace_file(path, [b"one", memoryview(b"two")])
    assert {"some.bin": b"onetwo"} == left(tmp_path)
    replace_file(path, [b"three"])
    assert {"some.bin": b"three"} == left(tmp_path)


def test_a_new_file_has_the_usual_permissions(tmp_path):
    """The file's mode is what the umask gives any new file, not that of a private one."""
    replace_file(tmp_path / "a", [b""])
    (tmp_path / "b").touch()
    assert (tmp_path / "b").stat().st_mode == (tmp_path / "a").stat().st_mode


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch, code):
    """A full disk or quota is a clear OSError; the old file stays, and no half-written one."""
    path = tmp_path / "some.bin"
    path.write_bytes(b"old")

    def full(handle):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"some\.bin was not written, for the disk is full") as caught:
        replace_file(path, [b"new"])
    assert code == caught.value.errno
    assert {"some.bin": b"old"} == left(tmp_path)


def test_a_write_that_the_system_stops_leaves_nothing(tmp_path):
    """A file that outgrows what the system allows (here, a limit on its size) is removed."""
    path = tmp_path / "some.safetensors"
    script = (
        "import sys, numpy, signal, resource\n"
        "from precision_lab.files import write_safetensors\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))\n"
        "write_safetensors(sys.argv[1], {'a': numpy.zeros(100_000)})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False
    )
    assert 1 == done.returncode
    assert "cannot be written: File too large" in done.stderr
    assert {} == left(tmp_path)


def test_an_interrupted_write_leaves_nothing(tmp_path):
    """Whatever stops the pieces from coming, the old file stays and the new one goes."""
    path = tmp_path / "some.bin"
    path.write_bytes(b"old")

    def pieces():
        yield b"new"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace_file(path, pieces())
    assert {"some.bin": b"old"} == left(tmp_path)


def test_a_path_that_cannot_be_written_is_bad_input(tmp_path):
    """No folder, a file for a folder, a folder or a device in its place: one InputError each."""
    (tmp_path / "file").touch()
    for path in (
        tmp_path / "none" / "a",
        tmp_path / "file" / "a",
        tmp_path,
        "/dev/null",
        tmp_path / ("n" * 300),
        "a\0b",
    ):
        with pytest.raises(InputError, match=r"cannot be written|null byte"):
            write_safetensors(path, {"a": np.zeros(2)})
    assert {"file": b""} == left(tmp_path)
