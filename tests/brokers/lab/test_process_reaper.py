"""Nothing is left behind, however a lab's parent goes."""

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
from sparkmirror.lab.processes.process import ProcessIdentity
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from tests.support.waiting import wait_until

# A program that starts something under a reaper, prints what, and waits for its end.
SLEEPER = """
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
# The same with a real broker; "starting" says it as soon as the process exists.
CLUSTER = """
import json, pathlib, sys, time
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec

directory, early = pathlib.Path(sys.argv[1]), STARTING

def say():
    process = json.loads((directory / "broker-1" / "process.json").read_text())
    print(json.dumps({"pids": [process["pid"]]}), flush=True)

def progress(line):
    if early and "waiting for" in line:
        say()

with ProcessReaper.start() as reaper:
    Cluster.start(ClusterSpec(name="doomed", fast_start=True), directory, reaper, progress)
    if not early:
        say()
    time.sleep(600)
"""


class ChildProcess:
    """A child of the test that is about to meet its end."""

    def __init__(self, code: str, directory: Path) -> None:
        self.directory = directory
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, str(directory)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._process.stdout is not None
        readable, _, _ = select.select([self._process.stdout], [], [], 120)
        assert readable, "the program did not say what it started within 120 s"
        said = json.loads(self._process.stdout.readline())
        found = [ProcessIdentity.of(pid) for pid in said["pids"]]
        self.identities = [identity for identity in found if identity is not None]
        assert len(self.identities) == len(said["pids"])

    def end_with_signal(self, number: signal.Signals) -> None:
        """Signal it and wait for its own end, not for what it leaves."""
        self._process.send_signal(number)
        self._process.wait(timeout=60)

    def close(self) -> None:
        """End it if the test did not."""
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def has_leftovers(self) -> bool:
        """Tell whether a process or the directory is still there."""
        return self.directory.exists() or any(one.is_running() for one in self.identities)


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[ChildProcess]:
    program = ChildProcess(SLEEPER, tmp_path / "lab")
    yield program
    program.close()


@pytest.fixture(params=["starting", "started"])
def doomed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ChildProcess]:
    code = CLUSTER.replace("STARTING", str(request.param == "starting"))
    program = ChildProcess(code, tmp_path / "doomed")
    yield program
    program.close()


@pytest.mark.parametrize(
    "number",
    [signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP],
    ids=["kill", "interrupt", "terminate", "hang-up"],
)
def test_nothing_is_left_whatever_signal_ends_the_parent(
    sleeper: ChildProcess, number: signal.Signals
) -> None:
    assert sleeper.has_leftovers()
    sleeper.end_with_signal(number)
    wait_until(lambda: not sleeper.has_leftovers(), f"{number.name} ended the parent")


def test_the_children_of_a_guarded_process_go_as_well(sleeper: ChildProcess) -> None:
    group = sleeper.identities[0].pid
    sleeper.end_with_signal(signal.SIGKILL)

    def group_is_empty() -> bool:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        return _all_zombies(group)

    wait_until(group_is_empty, "the sleepers in the group should be gone")


def test_a_cluster_does_not_survive_the_death_of_its_parent(doomed: ChildProcess) -> None:
    doomed.end_with_signal(signal.SIGKILL)
    wait_until(lambda: not doomed.has_leftovers(), "the parent was killed")


def test_ctrl_c_ends_a_cluster_that_is_starting(tmp_path: Path) -> None:
    program = ChildProcess(CLUSTER.replace("STARTING", "True"), tmp_path / "doomed")
    try:
        program.end_with_signal(signal.SIGINT)
        wait_until(lambda: not program.has_leftovers(), "the parent was interrupted")
    finally:
        program.close()


def test_a_closed_guard_has_removed_everything(tmp_path: Path) -> None:
    directory = tmp_path / "lab"
    directory.mkdir()
    with ProcessReaper.start() as reaper:
        reaper.remove_on_exit(directory)
        process = reaper.launch(["sleep", "600"], log=directory / "log")
        assert process.is_running()
    assert not process.is_running()
    assert not directory.exists()


def test_a_released_guard_lets_things_live(tmp_path: Path) -> None:
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


def test_a_registered_process_is_killed_and_one_that_ended_is_unregistered(
    tmp_path: Path,
) -> None:
    with subprocess.Popen(["sleep", "600"]) as stranger, ProcessReaper.start() as reaper:
        reaper.register(stranger.pid)
        ended = reaper.launch(["true"], log=tmp_path / "log")
        assert ended.wait_for_exit(60)
        reaper.unregister(ended)
        assert reaper.close()
        assert stranger.wait(timeout=60) == -signal.SIGKILL


def test_nothing_is_started_after_the_reaper_process_died(tmp_path: Path) -> None:
    with ProcessReaper.start() as reaper:
        assert reaper.pid is not None
        os.kill(reaper.pid, signal.SIGKILL)
        wait_until(
            lambda: ProcessIdentity.of(reaper.pid or 0) is None, "the reaper process was killed"
        )
        with pytest.raises(LabError, match="reaper process has died"):
            reaper.launch(["touch", str(tmp_path / "trace")], log=tmp_path / "log")
    assert not (tmp_path / "trace").exists()


def test_only_a_directory_of_ones_own_can_be_registered_for_removal() -> None:
    reaper = ProcessReaper.detached()
    for path in (Path("/"), Path("/tmp"), Path("relative/lab"), Path.home()):  # noqa: S108
        with pytest.raises(LabError):
            reaper.remove_on_exit(path)


def _all_zombies(group: int) -> bool:
    """Tell whether only unreaped processes are left of a group."""
    listing = subprocess.run(
        ["ps", "-eo", "pgid=,stat="], capture_output=True, text=True, check=True
    )
    states = [
        line.split()[1] for line in listing.stdout.splitlines() if line.split()[0] == str(group)
    ]
    return all(state.startswith("Z") for state in states)
