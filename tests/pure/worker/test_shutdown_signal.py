"""SIGTERM and SIGINT: the first signal asks, the second one forces."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from sparkmirror.worker.shutdown_signal import EXIT_SECOND_SIGNAL, ShutdownSignal, interrupt

SIGNALLED_TWICE = """
import os, signal, sys
from sparkmirror.worker.shutdown_signal import ShutdownSignal
shutdown = ShutdownSignal()
shutdown.install()
os.kill(os.getpid(), signal.SIGTERM)
assert shutdown.wait(30)
sys.stdout.write("asked")
sys.stdout.flush()
os.kill(os.getpid(), signal.SIGINT)
sys.stdout.write("not forced")
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_asks_and_the_second_interrupts(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    shutdown = ShutdownSignal(interrupt)
    with shutdown.installed():
        assert not shutdown.is_requested()
        os.kill(os.getpid(), number)
        assert shutdown.is_requested()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before


def test_a_worker_exits_at_once_at_the_second_signal() -> None:
    done = subprocess.run([sys.executable, "-c", SIGNALLED_TWICE], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (EXIT_SECOND_SIGNAL, "asked"), done.stderr


def test_waiting_ends_with_the_signal() -> None:
    shutdown = ShutdownSignal(interrupt)
    assert not shutdown.wait(0.01)
    with shutdown.installed():
        timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM))
        timer.start()
        assert shutdown.wait(50)
        timer.join()
    assert shutdown.wait(50), "a second wait returns at once"
