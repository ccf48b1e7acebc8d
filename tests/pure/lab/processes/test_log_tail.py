"""The last lines of a log and the lines that follow."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.lab.processes.log_tail import LogTail


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log"
    path.write_text("one\ntwo\nthree\n", encoding="utf-8")
    return path


def _append(log: Path, text: str) -> None:
    with log.open("a", encoding="utf-8") as file:
        file.write(text)


@pytest.mark.parametrize(
    ("count", "lines"),
    [(0, []), (1, ["three"]), (3, ["one", "two", "three"]), (9, ["one", "two", "three"])],
    ids=["none", "one", "all", "more"],
)
def test_last_lines_are_as_many_as_requested(log: Path, count: int, lines: list[str]) -> None:
    assert LogTail(log).last_lines(count) == lines


def test_last_lines_of_a_long_log_are_whole(log: Path) -> None:
    lines = [f"{number:>200}" for number in range(2000)]
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert LogTail(log).last_lines(1500) == lines[-1500:]


def test_new_lines_follow_the_last_lines(log: Path) -> None:
    tail = LogTail(log)
    tail.last_lines(1)
    assert tail.new_lines() == []
    _append(log, "four\nfi")
    assert tail.new_lines() == ["four"]
    _append(log, "ve\n")
    assert tail.new_lines() == ["five"]


def test_incomplete_line_is_returned_when_it_is_complete(log: Path) -> None:
    _append(log, "fo")
    tail = LogTail(log)
    assert tail.last_lines(1) == ["three"]
    _append(log, "ur\n")
    assert tail.new_lines() == ["four"]


def test_truncated_log_is_read_from_its_start(log: Path) -> None:
    tail = LogTail(log)
    tail.last_lines(1)
    log.write_text("new\n", encoding="utf-8")
    assert tail.new_lines() == ["new"]


def test_missing_log_is_empty(tmp_path: Path) -> None:
    tail = LogTail(tmp_path / "log")
    assert tail.last_lines(5) == []
    assert tail.new_lines() == []
    (tmp_path / "log").write_text("one\n", encoding="utf-8")
    assert tail.new_lines() == ["one"]
