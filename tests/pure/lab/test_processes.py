"""Processes and their guard's orders: the right ones, and only those."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from sparkmirror.lab.process import Identity, Process
from sparkmirror.lab.watch import Charges, orders


def test_a_process_is_known_by_when_it_began() -> None:
    me = Identity.of(os.getpid())
    assert me is not None
    assert me.runs()
    assert not Identity(os.getpid(), "at another time").runs()


def test_a_number_nobody_has_names_nobody() -> None:
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    assert Identity.of(ended.pid) is None


def test_a_zombie_does_not_run() -> None:
    child = subprocess.Popen(["true"])
    identity = None
    while Identity.of(child.pid) is not None:
        identity = Identity.of(child.pid)
    assert identity is None or not identity.runs()
    assert child.wait() == 0


def test_a_stranger_with_the_same_number_is_not_signalled() -> None:
    with subprocess.Popen(["sleep", "60"]) as stranger:
        Identity(stranger.pid, "before its time").send(signal.SIGKILL)
        assert stranger.poll() is None
        stranger.kill()


def test_a_child_that_was_let_go_still_runs_and_is_nobodys() -> None:
    child = subprocess.Popen(["sleep", "60"], start_new_session=True)
    identity = Identity.of(child.pid)
    assert identity is not None
    process = Process(identity, child)
    process.let_go()
    assert process.runs()
    process.send(signal.SIGKILL)
    assert process.ended_within(50)
    os.waitpid(child.pid, 0)


def test_waiting_for_an_end_ends() -> None:
    me = Identity.of(os.getpid())
    assert me is not None
    assert not Process(me).ended_within(0.05)


def test_charges_keep_what_was_ordered() -> None:
    charges = Charges()
    charges.take({"adopt": "12", "began": "then"})
    charges.take({"adopt": "13", "began": "later"})
    charges.take({"forget": "12"})
    charges.take({"remove": "/labs/west"})
    assert charges.processes == {13: Identity(13, "later")}
    assert charges.directories == [Path("/labs/west")]
    charges.take({"release": ""})
    assert (charges.processes, charges.directories) == ({}, [])


def test_settling_removes_directories_and_says_whether_all_is_gone(tmp_path: Path) -> None:
    (tmp_path / "lab" / "deep").mkdir(parents=True)
    charges = Charges()
    charges.take({"remove": str(tmp_path / "lab")})
    charges.take({"remove": str(tmp_path / "never-made")})
    assert charges.settle()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("rest", [b"", b'{"remove": "/half'], ids=["whole", "cut-off"])
def test_an_order_cut_off_by_the_parents_death_is_dropped(rest: bytes) -> None:
    reading, writing = os.pipe()
    os.write(writing, b'{"forget": "1"}\n{"release": ""}\n' + rest)
    os.close(writing)
    assert list(orders(reading, os.getppid())) == [{"forget": "1"}, {"release": ""}]
    os.close(reading)


def test_another_parent_means_that_ours_is_gone() -> None:
    reading, writing = os.pipe()
    assert list(orders(reading, parent=-1, look_around_s=0.01)) == []
    os.close(writing)
    os.close(reading)
