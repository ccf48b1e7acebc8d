"""A failed test leaves nothing that fails the next test."""

from __future__ import annotations

from pathlib import Path

from tests.support.nested_pytest import run_nested_pytest

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
    return run_nested_pytest(directory, TESTS, "filterwarnings = error", *options).stdout


def test_an_open_socket_of_a_failed_test_fails_no_other(tmp_path: Path) -> None:
    assert "1 failed, 1 passed" in _run_pytest(tmp_path, "-p", "tests.failure_cleanup")


def test_without_the_plugin_the_next_test_fails(tmp_path: Path) -> None:
    assert "2 failed" in _run_pytest(tmp_path)
