"""The pipes of a driver process."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from sparkmirror.engine.supervisor.driver_process import DriverProcess

SLOW_READER = """
import sys, time
time.sleep(0.5)
print(len(sys.stdin.buffer.readline()), flush=True)
"""
LINE = b"x" * 1_000_000 + b"\n"
"""More than a pipe holds."""


def test_a_signal_does_not_shorten_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_reader.py").write_text(SLOW_READER)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    process = DriverProcess("slow_reader", tmp_path, tmp_path / "log")
    previous = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    try:
        process.write_line(LINE)
        lines = list(process.read_lines(lambda silent_s: 20 - silent_s))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
        process.shut_down(5)
    assert lines == [str(len(LINE)).encode()]
