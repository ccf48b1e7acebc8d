"""The demo, as a user runs it: a live mirror both ways, everything checked, nothing left."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.waiting import wait_until

COMMAND = [sys.executable, "-m", "sparkmirror", "demo"]


def leftovers() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("sparkmirror-demo-*"))


def test_the_demo_mirrors_checks_and_leaves_nothing() -> None:
    before = leftovers()
    done = subprocess.run(
        [*COMMAND, "--for", "1"], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 of 6 connectors running" in done.stdout
    for line in ("orders = primary.orders", "returns = backup.returns", "group shop"):
        assert line in done.stdout
    assert "Everything holds." in done.stdout
    wait_until(lambda: leftovers() <= before, "the demo's files to be gone")


def test_ctrl_c_twice_ends_the_demo_at_once() -> None:
    before = leftovers()
    running = subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert running.stdout
    for line in running.stdout:
        if "Spark is starting" in line:
            break
    running.send_signal(signal.SIGINT)
    for line in running.stdout:
        if "Reading everything back" in line:
            break
    running.send_signal(signal.SIGINT)
    rest = running.stdout.read()
    running.stdout.close()
    assert running.wait(timeout=60) == 130, rest
    wait_until(lambda: leftovers() <= before, "the demo's files to be gone")
