"""The demo, as a user runs it: a live mirror both ways, everything checked, nothing left."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.waiting import wait_until

COMMAND = [sys.executable, "-m", "sparkmirror", "demo"]


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where a demo keeps its files, with nobody else's among them."""
    with tempfile.TemporaryDirectory(prefix="demo-") as directory:
        monkeypatch.setenv("TMPDIR", directory)
        yield Path(directory)


def wait_until_nothing_is_left(home: Path) -> None:
    wait_until(lambda: not list(home.glob("sparkmirror-demo-*")), "the demo's files to be gone")


def test_the_demo_mirrors_checks_and_leaves_nothing(home: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "--for", "1"], capture_output=True, text=True, timeout=700, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "of 6 connectors running" in done.stdout
    for line in ("orders = primary.orders", "returns = backup.returns", "group shop"):
        assert line in done.stdout
    assert "Everything holds." in done.stdout
    wait_until_nothing_is_left(home)


def test_ctrl_c_twice_ends_the_demo_at_once(home: Path) -> None:
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
    assert running.wait(timeout=180) == 130, rest
    wait_until_nothing_is_left(home)
