"""One holder at a time; a waiting process gets the name of the holder."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from sparkmirror.lab.processes.file_locks import locked


def test_free_lock_is_taken_without_a_notice(tmp_path: Path) -> None:
    holders: list[str] = []
    with locked(tmp_path / "deep" / "lock", holders.append):
        pass
    with locked(tmp_path / "deep" / "lock", holders.append):
        pass
    assert holders == []


def test_second_holder_waits_for_the_first(tmp_path: Path) -> None:
    order: list[str] = []
    notified = threading.Event()

    def on_wait(holder: str) -> None:
        order.append(holder)
        notified.set()

    def lock_second() -> None:
        with locked(tmp_path / "lock", on_wait):
            order.append("second")

    with locked(tmp_path / "lock", order.append):
        other = threading.Thread(target=lock_second)
        other.start()
        assert notified.wait(50)
        order.append("first")
    other.join(50)
    assert order == [f"process {os.getpid()}", "first", "second"]


def test_lock_is_released_after_an_exception(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="inside"), locked(tmp_path / "lock", print):
        raise ValueError("inside")
    holders: list[str] = []
    with locked(tmp_path / "lock", holders.append):
        assert holders == []
