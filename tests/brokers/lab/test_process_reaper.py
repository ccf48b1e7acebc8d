"""The reaper ends processes and removes directories after the parent has ended."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.errors import LabError
from sparkmirror.lab.processes.process_identity import ProcessIdentity
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from tests.support.waiting import wait_until

# A program that starts processes under a reaper, prints their pids and waits.
SLEEP_CODE = """
import json, pathlib, sys, time
from sparkmirror.lab.processes.process_reaper import ProcessReaper

directory = pathlib.Path(sys.argv[1])
directory.mkdir()
with ProcessReaper.start() as reaper:
    reaper.remove_on_exit(directory)
    shell = "sleep 600 & sleep 600"
    process = reaper.launch(["/bin/sh", "-c", shell], log=directory / "log")
    print(json.dumps({"pids": [process.pid]}), flush=True)
    time.sleep(600)
"""
# The same with a real broker; STARTING prints the pid as soon as the process exists.
CLUSTER_CODE = """
import json, pathlib, sys, time
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec

directory, early = pathlib.Path(sys.argv[1]), STARTING

def print_pids():
    process = json.loads((directory / "broker-1" / "process.json").read_text())
    print(json.dumps({"pids": [process["pid"]]}), flush=True)

def progress(line):
    if early and "waiting for" in line:
        print_pids()

with ProcessReaper.start() as reaper:
    Cluster.start(ClusterSpec(name="west", fast_start=True), directory, reaper, progress)
    if not early:
        print_pids()
    time.sleep(600)
"""


class ChildProcess:
    """A program that starts processes; the test ends it."""

    def __init__(self, code: str, directory: Path) -> None:
        self.directory = directory
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, str(directory)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._process.stdout is not None
        readable, _, _ = select.select([self._process.stdout], [], [], 120)
        assert readable, "the program did not print pids within 120 s"
        printed = json.loads(self._process.stdout.readline())
        found = [ProcessIdentity.of(pid) for pid in printed["pids"]]
        self.identities = [identity for identity in found if identity is not None]
        assert len(self.identities) == len(printed["pids"])

    def end_with_signal(self, number: signal.Signals) -> None:
        """Send a signal and wait until the program ends; its processes may still run."""
        self._process.send_signal(number)
        self._process.wait(timeout=60)

    def close(self) -> None:
        """Kill the program if it still runs."""
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def has_leftovers(self) -> bool:
        """Whether one of its processes runs or its directory exists."""
        return self.directory.exists() or any(one.is_running() for one in self.identities)


@pytest.fixture
def sleep_parent(tmp_path: Path) -> Iterator[ChildProcess]:
    program = ChildProcess(SLEEP_CODE, tmp_path / "lab")
    yield program
    program.close()


@pytest.fixture(params=["starting", "started"])
def cluster_parent(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ChildProcess]:
    code = CLUSTER_CODE.replace("STARTING", str(request.param == "starting"))
    program = ChildProcess(code, tmp_path / "west")
    yield program
    program.close()


@pytest.mark.parametrize(
    "number",
    [signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP],
    ids=["kill", "interrupt", "terminate", "hang-up"],
)
def test_no_process_and_no_directory_is_left_after_a_signal_ends_the_parent(
    sleep_parent: ChildProcess, number: signal.Signals
) -> None:
    assert sleep_parent.has_leftovers()
    sleep_parent.end_with_signal(number)
    wait_until(
        lambda: not sleep_parent.has_leftovers(), f"the processes to end after {number.name}"
    )


def test_reaper_ends_children_of_its_processes(sleep_parent: ChildProcess) -> None:
    group = sleep_parent.identities[0].pid
    sleep_parent.end_with_signal(signal.SIGKILL)

    def group_is_empty() -> bool:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        return _all_zombies(group)

    wait_until(group_is_empty, "all processes of the group to end")


def test_cluster_ends_when_its_parent_is_killed(cluster_parent: ChildProcess) -> None:
    cluster_parent.end_with_signal(signal.SIGKILL)
    wait_until(lambda: not cluster_parent.has_leftovers(), "the processes to end after SIGKILL")


def test_ctrl_c_ends_a_cluster_that_starts(tmp_path: Path) -> None:
    program = ChildProcess(CLUSTER_CODE.replace("STARTING", "True"), tmp_path / "west")
    try:
        program.end_with_signal(signal.SIGINT)
        wait_until(lambda: not program.has_leftovers(), "the processes to end after SIGINT")
    finally:
        program.close()


def test_close_ends_processes_and_removes_directories(tmp_path: Path) -> None:
    directory = tmp_path / "lab"
    directory.mkdir()
    with ProcessReaper.start() as reaper:
        reaper.remove_on_exit(directory)
        process = reaper.launch(["sleep", "600"], log=directory / "log")
        assert process.is_running()
    assert not process.is_running()
    assert not directory.exists()


def test_release_keeps_processes_and_directories(tmp_path: Path) -> None:
    directory = tmp_path / "lab"
    directory.mkdir()
    with ProcessReaper.start() as reaper:
        reaper.remove_on_exit(directory)
        process = reaper.launch(["sleep", "600"], log=directory / "log")
        reaper.release()
        later = reaper.launch(["sleep", "600"], log=directory / "log")
    try:
        assert directory.exists()
        assert process.is_running()
        assert later.is_running()
    finally:
        for left in (process, later):
            left.send_signal(signal.SIGKILL)
            assert left.wait_for_exit(60)


def test_registered_process_is_killed_and_ended_process_can_be_unregistered(
    tmp_path: Path,
) -> None:
    with subprocess.Popen(["sleep", "600"]) as registered, ProcessReaper.start() as reaper:
        reaper.register(registered.pid)
        ended = reaper.launch(["true"], log=tmp_path / "log")
        assert ended.wait_for_exit(60)
        reaper.unregister(ended)
        assert reaper.close()
        assert registered.wait(timeout=60) == -signal.SIGKILL


def test_launch_fails_after_the_reaper_process_died(tmp_path: Path) -> None:
    with ProcessReaper.start() as reaper:
        assert reaper.pid is not None
        os.kill(reaper.pid, signal.SIGKILL)
        wait_until(lambda: ProcessIdentity.of(reaper.pid or 0) is None, "the reaper process to end")
        with pytest.raises(LabError, match="reaper process has died"):
            reaper.launch(["touch", str(tmp_path / "trace")], log=tmp_path / "log")
    assert not (tmp_path / "trace").exists()


def test_system_home_and_relative_directories_cannot_be_registered_for_removal() -> None:
    reaper = ProcessReaper.detached()
    for path in (Path("/"), Path("/tmp"), Path("relative/lab"), Path.home()):  # noqa: S108
        with pytest.raises(LabError):
            reaper.remove_on_exit(path)


def _all_zombies(group: int) -> bool:
    """Whether all processes of a group are zombies."""
    listing = subprocess.run(
        ["ps", "-eo", "pgid=,stat="], capture_output=True, text=True, check=True
    )
    states = [
        line.split()[1] for line in listing.stdout.splitlines() if line.split()[0] == str(group)
    ]
    return all(state.startswith("Z") for state in states)
