"""A driver that starts much at once leaves the processor to others, and only then."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparkmirror.engine.driver.session_priority import (
    LOW,
    MANY_STARTS,
    STARTS_S,
    USUAL,
    SessionPriority,
    leads_session,
    wanted_priority,
)


@pytest.mark.parametrize(
    ("starts", "wanted"),
    [(0, USUAL), (1, USUAL), (MANY_STARTS - 1, USUAL), (MANY_STARTS, LOW), (200, LOW)],
)
def test_priority_is_low_for_many_starts_only(starts: int, wanted: int) -> None:
    assert wanted_priority(starts) == wanted


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def start_many(priority: SessionPriority) -> None:
    for _ in range(MANY_STARTS):
        priority.on_job_started()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "autogroup"
    path.write_text("nothing written")
    return path


def test_priority_is_the_usual_one_again_some_seconds_after_many_starts(file: Path) -> None:
    clock = Clock()
    priority = SessionPriority(clock, file, is_own_session=True)
    start_many(priority)
    priority.update()
    assert file.read_text() == f"{LOW}\n"
    clock.now = STARTS_S + 0.1
    priority.update()
    assert file.read_text() == f"{USUAL}\n"


def test_a_session_with_other_processes_keeps_its_priority(file: Path) -> None:
    priority = SessionPriority(Clock(), file, is_own_session=False)
    start_many(priority)
    priority.update()
    assert file.read_text() == "nothing written"


def test_a_process_of_the_session_of_another_one_does_not_lead_it() -> None:
    code = "from sparkmirror.engine.driver import session_priority as p; print(p.leads_session())"
    for own, expected in ((True, "True\n"), (False, "False\n")):
        found = subprocess.run(
            [sys.executable, "-c", code],
            start_new_session=own,
            capture_output=True,
            text=True,
            check=True,
        )
        assert found.stdout == expected
    assert leads_session() == (os.getsid(0) == os.getpid())


@pytest.mark.parametrize(
    ("code", "tries"), [(errno.EAGAIN, 2), (errno.EPERM, 1)], ids=["too soon", "not allowed"]
)
def test_only_a_change_that_came_too_soon_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
    file: Path,
    caplog: pytest.LogCaptureFixture,
    code: int,
    tries: int,
) -> None:
    calls = 0

    def refuse(*_: object) -> int:
        nonlocal calls
        calls += 1
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Path, "write_text", refuse)
    priority = SessionPriority(Clock(), file, is_own_session=True)
    start_many(priority)
    for _ in range(2):
        priority.update()
    assert calls == tries
    assert not [record for record in caplog.records if record.levelname != "DEBUG"]


def test_a_system_without_autogroups_says_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    priority = SessionPriority(Clock(), tmp_path / "none" / "autogroup", is_own_session=True)
    start_many(priority)
    priority.update()
    assert not [record for record in caplog.records if record.levelname != "DEBUG"]
