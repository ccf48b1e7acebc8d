"""A failed test leaves nothing that fails the next test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
TESTS = """
import gc, socket

def test_a_fails_with_an_open_socket():
    connection = socket.socket()
    cycle = [connection]
    cycle.append(cycle)
    assert False

def test_b_is_innocent():
    gc.collect()
"""


def _run_pytest(directory: Path, *options: str) -> str:
    (directory / "test_it.py").write_text(TESTS)
    (directory / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
    done = subprocess.run(
        [*command, *options, str(directory)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=200,
        check=False,
    )
    return done.stdout


def test_an_open_socket_of_a_failed_test_fails_no_other(tmp_path: Path) -> None:
    assert "1 failed, 1 passed" in _run_pytest(tmp_path, "-p", "tests.failure_cleanup")


def test_without_the_plugin_the_next_test_fails(tmp_path: Path) -> None:
    assert "2 failed" in _run_pytest(tmp_path)
