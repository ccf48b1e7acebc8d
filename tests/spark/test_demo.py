"""The demo mirrors both ways, checks every record, and leaves no files or processes."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import wait_until

COMMAND = [sys.executable, "-m", "sparkmirror", "demo"]
FILE = re.compile(r"Now: sparkmirror run (\S+sparkmirror-demo-\S+)")


def wait_until_removed(output: str) -> None:
    """Wait until the directory in the demo's output is removed."""
    file = FILE.search(output)
    assert file
    home = Path(file[1]).parent
    wait_until(lambda: not home.exists(), f"{home} to be gone")


def test_the_demo_mirrors_checks_and_removes_its_files() -> None:
    done = subprocess.run(
        [*COMMAND, "--for", "1"], capture_output=True, text=True, timeout=700, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 of 6 connectors running" in done.stdout
    for line in ("orders = primary.orders", "returns = backup.returns", "group shop"):
        assert line in done.stdout
    assert "Everything holds." in done.stdout
    wait_until_removed(done.stdout)


@pytest.mark.soak
def test_ctrl_c_twice_ends_the_demo_at_once() -> None:
    output = ""
    running = subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert running.stdout
    for line in running.stdout:
        output += line
        if "Spark is starting" in line:
            break
    running.send_signal(signal.SIGINT)
    for line in running.stdout:
        if "Reading everything back" in line:
            break
    running.send_signal(signal.SIGINT)
    rest = running.stdout.read()
    running.stdout.close()
    assert running.wait(timeout=180) == 130, rest
    wait_until_removed(output)
