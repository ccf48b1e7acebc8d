"""Processes and their guard's orders: the right ones, and only those."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from sparkmirror.lab.processes.process import Process, ProcessIdentity
from sparkmirror.lab.processes.reaper_process import CleanupRegistry, read_commands


def test_a_process_is_known_by_when_it_began() -> None:
    me = ProcessIdentity.of(os.getpid())
    assert me is not None
    assert me.is_running()
    assert not ProcessIdentity(os.getpid(), "at another time").is_running()


def test_a_number_nobody_has_names_nobody() -> None:
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    assert ProcessIdentity.of(ended.pid) is None


def test_a_zombie_does_not_run() -> None:
    child = subprocess.Popen(["true"])
    identity = None
    while ProcessIdentity.of(child.pid) is not None:
        identity = ProcessIdentity.of(child.pid)
    assert identity is None or not identity.is_running()
    assert child.wait() == 0


def test_a_stranger_with_the_same_number_is_not_signalled() -> None:
    with subprocess.Popen(["sleep", "60"]) as stranger:
        ProcessIdentity(stranger.pid, "before its time").send_signal(signal.SIGKILL)
        assert stranger.poll() is None
        stranger.kill()


def test_a_child_that_was_let_go_still_runs_and_is_nobodys() -> None:
    child = subprocess.Popen(["sleep", "60"], start_new_session=True)
    identity = ProcessIdentity.of(child.pid)
    assert identity is not None
    process = Process(identity, child)
    process.disown()
    assert process.is_running()
    process.send_signal(signal.SIGKILL)
    assert process.wait_for_exit(50)
    os.waitpid(child.pid, 0)


def test_waiting_for_an_end_ends() -> None:
    me = ProcessIdentity.of(os.getpid())
    assert me is not None
    assert not Process(me).wait_for_exit(0.05)


def test_registry_keep_what_was_ordered() -> None:
    registry = CleanupRegistry()
    registry.apply({"register": "12", "start_time": "then"})
    registry.apply({"register": "13", "start_time": "later"})
    registry.apply({"unregister": "12"})
    registry.apply({"remove": "/labs/west"})
    assert registry.processes == {13: ProcessIdentity(13, "later")}
    assert registry.directories == [Path("/labs/west")]
    registry.apply({"release": ""})
    assert (registry.processes, registry.directories) == ({}, [])


def test_settling_removes_directories_and_says_whether_all_is_gone(tmp_path: Path) -> None:
    (tmp_path / "lab" / "deep").mkdir(parents=True)
    registry = CleanupRegistry()
    registry.apply({"remove": str(tmp_path / "lab")})
    registry.apply({"remove": str(tmp_path / "never-made")})
    assert registry.clean_up()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("rest", [b"", b'{"remove": "/half'], ids=["whole", "cut-off"])
def test_an_order_cut_off_by_the_parents_death_is_dropped(rest: bytes) -> None:
    reading, writing = os.pipe()
    os.write(writing, b'{"unregister": "1"}\n{"release": ""}\n' + rest)
    os.close(writing)
    assert list(read_commands(reading, os.getppid())) == [{"unregister": "1"}, {"release": ""}]
    os.close(reading)


def test_another_parent_means_that_ours_is_gone() -> None:
    reading, writing = os.pipe()
    assert list(read_commands(reading, parent=-1, parent_check_s=0.01)) == []
    os.close(writing)
    os.close(reading)
