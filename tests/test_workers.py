# SPDX-License-Identifier: Apache-2.0
"""Worker processes as their parent starts them."""

from __future__ import annotations

import os
import queue
import signal
import threading
import time

import pytest

from precision_lab import canonical
from precision_lab.workers import Worker

posix = pytest.mark.skipif(
    not hasattr(signal, "pthread_sigmask"), reason="signals cannot be blocked here"
)


@posix
def test_an_interrupt_while_python_starts_is_ignored(capfd):
    """Ctrl-C from the first instruction of a worker on: it gets ready as if nothing had been."""
    answers = queue.SimpleQueue()
    worker = Worker("precision_lab.measure:measure", answers)
    try:
        for _ in range(20):
            os.kill(worker.process.pid, signal.SIGINT)
            time.sleep(0.005)
        _, line = answers.get(timeout=60)
        assert canonical.decode(line) == {"ready": True}
    finally:
        worker.end()
    assert capfd.readouterr().err == ""


@posix
def test_the_parent_hears_of_its_interrupts(monkeypatch):
    """One that comes while a process is being started is not lost, and the mask is as before."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())

    def started(*_, **__):
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        time.sleep(0)
        held.append(signal.SIGINT in signal.sigpending())
        raise OSError

    held = []
    monkeypatch.setattr("subprocess.Popen", started)
    with pytest.raises(KeyboardInterrupt):
        Worker("precision_lab.measure:measure", queue.SimpleQueue())
    assert held == [True]
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
