"""The demo, as a user runs it."""

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


def test_the_demo_shows_two_clusters_and_a_plan_and_leaves_nothing() -> None:
    before = leftovers()
    done = subprocess.run(
        [*COMMAND, "--for", "0"], capture_output=True, text=True, timeout=150, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "primary->backup, backup->primary" in done.stdout
    for word in ("orders", "primary.orders", "primary.payments", "1000"):
        assert word in done.stdout
    assert leftovers() <= before


def test_ctrl_c_ends_the_demo_cleanly() -> None:
    before = leftovers()
    running = subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert running.stdout
    for line in running.stdout:
        if "The clusters are up" in line:
            break
    running.send_signal(signal.SIGINT)
    rest = running.stdout.read()
    running.stdout.close()
    assert running.wait(timeout=60) == 0, rest
    wait_until(lambda: leftovers() <= before, "the demo's files to be gone")
