"""A lock is held by one, and whoever waits hears who holds it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from sparkmirror.lab.processes.file_locks import locked


def test_free_lock_is_taken_without_a_word(tmp_path: Path) -> None:
    heard: list[str] = []
    with locked(tmp_path / "deep" / "lock", heard.append):
        pass
    with locked(tmp_path / "deep" / "lock", heard.append):
        pass
    assert heard == []


def test_second_waits_for_the_first(tmp_path: Path) -> None:
    order: list[str] = []
    heard = threading.Event()

    def hear(holder: str) -> None:
        order.append(holder)
        heard.set()

    def wait_outside() -> None:
        with locked(tmp_path / "lock", hear):
            order.append("second")

    with locked(tmp_path / "lock", order.append):
        other = threading.Thread(target=wait_outside)
        other.start()
        assert heard.wait(50)
        order.append("first")
    other.join(50)
    assert order == [f"process {os.getpid()}", "first", "second"]


def test_lock_is_given_back_when_the_block_fails(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="inside"), locked(tmp_path / "lock", print):
        raise ValueError("inside")
    heard: list[str] = []
    with locked(tmp_path / "lock", heard.append):
        assert heard == []
