"""Processes, their identities, and the commands of the reaper process."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from sparkmirror.lab.processes.process_identity import Process, ProcessIdentity
from sparkmirror.lab.processes.reaper_process import CleanupRegistry, read_commands


def test_process_is_identified_by_its_start_time() -> None:
    own = ProcessIdentity.of(os.getpid())
    assert own is not None
    assert own.is_running()
    assert not ProcessIdentity(os.getpid(), "another start time").is_running()


def test_pid_of_an_ended_process_has_no_identity() -> None:
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    assert ProcessIdentity.of(ended.pid) is None


def test_zombie_does_not_run() -> None:
    child = subprocess.Popen(["true"])
    identity = None
    while ProcessIdentity.of(child.pid) is not None:
        identity = ProcessIdentity.of(child.pid)
    assert identity is None or not identity.is_running()
    assert child.wait() == 0


def test_process_with_another_start_time_gets_no_signal() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        ProcessIdentity(child.pid, "another start time").send_signal(signal.SIGKILL)
        assert child.poll() is None
        child.kill()


def test_disowned_process_still_runs_and_gets_signals() -> None:
    child = subprocess.Popen(["sleep", "60"], start_new_session=True)
    identity = ProcessIdentity.of(child.pid)
    assert identity is not None
    process = Process(identity, child)
    process.disown()
    assert process.is_running()
    process.send_signal(signal.SIGKILL)
    assert process.wait_for_exit(50)
    os.waitpid(child.pid, 0)


def test_wait_for_exit_returns_after_its_timeout() -> None:
    own = ProcessIdentity.of(os.getpid())
    assert own is not None
    assert not Process(own).wait_for_exit(0.05)


def test_registry_applies_commands() -> None:
    registry = CleanupRegistry()
    registry.apply({"register": "12", "start_time": "then"})
    registry.apply({"register": "13", "start_time": "later"})
    registry.apply({"unregister": "12"})
    registry.apply({"remove": "/labs/west"})
    assert registry.processes == {13: ProcessIdentity(13, "later")}
    assert registry.directories == [Path("/labs/west")]
    registry.apply({"release": ""})
    assert (registry.processes, registry.directories) == ({}, [])


def test_clean_up_removes_directories(tmp_path: Path) -> None:
    (tmp_path / "lab" / "deep").mkdir(parents=True)
    registry = CleanupRegistry()
    registry.apply({"remove": str(tmp_path / "lab")})
    registry.apply({"remove": str(tmp_path / "never-made")})
    assert registry.clean_up()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("rest", [b"", b'{"remove": "/half'], ids=["whole", "cut-off"])
def test_incomplete_command_is_dropped(rest: bytes) -> None:
    reading, writing = os.pipe()
    os.write(writing, b'{"unregister": "1"}\n{"release": ""}\n' + rest)
    os.close(writing)
    assert list(read_commands(reading, os.getppid())) == [{"unregister": "1"}, {"release": ""}]
    os.close(reading)


def test_reading_ends_when_the_parent_has_changed() -> None:
    reading, writing = os.pipe()
    assert list(read_commands(reading, parent=-1, parent_check_s=0.01)) == []
    os.close(writing)
    os.close(reading)
