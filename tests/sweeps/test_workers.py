# SPDX-License-Identifier: Apache-2.0
"""Worker processes as their parent starts them."""

from __future__ import annotations

import os
import queue
import signal
import threading
import time

import pytest

from precision_lab.sweeps.grid import Sweep
from precision_lab.sweeps.workers import Worker, Workers

SMALL = Sweep(hidden=3, rows=1, seeds=range(1))
posix = pytest.mark.skipif(
    not hasattr(signal, "pthread_sigmask"), reason="signals cannot be blocked here"
)


@posix
def test_an_interrupt_while_python_starts_is_ignored(capfd):
    """Ctrl-C from the first instruction of a worker on: it gets ready as if nothing had been."""
    answers = queue.SimpleQueue()
    worker = Worker("precision_lab.sweeps.measurement:measure", answers)
    try:
        for _ in range(20):
            os.kill(worker.pid, signal.SIGINT)
            time.sleep(0.005)
        assert answers.get(timeout=60) == (worker, ({"ready": True}, {}))
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
        Worker("precision_lab.sweeps.measurement:measure", queue.SimpleQueue())
    assert held == [True]
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def test_a_worker_that_cannot_begin(capfd):
    """It ends, and says what Python says."""
    case = SMALL.cases()[0]
    with (
        Workers("no_such_module:f", 1, [[(0, case)]]) as workers,
        pytest.raises(RuntimeError, match="exit code 1 before it measured anything"),
    ):
        list(workers.answers(idle=60))
    assert "No module named 'no_such_module'" in capfd.readouterr().err


@posix
@pytest.mark.parametrize("deaths", [1, 2])
def test_a_worker_killed_before_it_is_ready(monkeypatch, deaths):
    """It is started once more; the second time the run stops."""
    started = []

    def feed(worker, real=Worker.feed):
        if worker not in started:
            started.append(worker)
            if len(started) <= deaths:
                worker.kill()
        real(worker)

    monkeypatch.setattr(Worker, "feed", feed)
    case = SMALL.cases()[0]
    with Workers("standins:numbers", 1, [[(0, case)]]) as workers:
        if deaths == 1:
            assert [0] == [reply["position"] for reply in workers.answers(idle=60)]
        else:
            with pytest.raises(RuntimeError, match="signal 9 before it measured anything"):
                list(workers.answers(idle=60))
    assert len(started) == 2
