"""The processes of this computer, as tests look for them."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

PROC_STAT = Path("/proc/self/stat")
ENDED = ("Z", "X", "x")
"""States of a process that does not run any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningProcess:
    """One process that runs (a zombie does not)."""

    pid: int
    parent: int
    session: int
    command: str

    def environment(self) -> str:
        """Its environment variables, as far as they can be seen."""
        try:
            return Path(f"/proc/{self.pid}/environ").read_text("utf-8", errors="replace")
        except OSError:
            return ""

    def kill(self) -> None:
        """Kill it without a word, unless it has ended by itself meanwhile."""
        self.send_signal(signal.SIGKILL)

    def send_signal(self, number: signal.Signals) -> None:
        """Signal it, unless it has ended by itself meanwhile."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)


def all_processes() -> list[RunningProcess]:
    """Everything that runs now."""
    return _listed_processes(None)


def session_processes(session: int, *parts: str) -> list[RunningProcess]:
    """The processes of a session whose command holds all these parts."""
    return [
        process
        for process in _listed_processes(session)
        if all(part in process.command for part in parts)
    ]


def _listed_processes(session: int | None) -> list[RunningProcess]:
    """What runs now in a session, or everywhere (None)."""
    listed = processes_of_proc(session) if PROC_STAT.exists() else processes_of_ps()
    return [process for process in listed if session in (None, process.session)]


def processes_of_proc(session: int | None = None) -> list[RunningProcess]:
    """What `/proc` says of the processes of a session, or of all (None).

    A test that waits asks many times: this costs much less than `ps`.
    """
    pids = [int(name) for entry in os.scandir("/proc") if (name := entry.name).isdecimal()]
    return [process for pid in pids if (process := _read_process(pid, session))]


def _read_process(pid: int, session: int | None) -> RunningProcess | None:
    """Return a process if it runs, and in this session (None: in any)."""
    try:
        its_session = os.getsid(pid)
        if session not in (None, its_session):
            return None
        before, _, after = _read_file(f"/proc/{pid}/stat").rpartition(")")
        arguments = _read_file(f"/proc/{pid}/cmdline").replace("\0", " ").strip()
    except OSError:  # it has ended meanwhile
        return None
    state, parent = after.split()[:2]
    if state in ENDED:
        return None
    command = arguments or f"[{before.partition('(')[2]}]"
    return RunningProcess(pid=pid, parent=int(parent), session=its_session, command=command)


def _read_file(path: str) -> str:
    with io.FileIO(path) as file:
        return file.readall().decode("utf-8", "replace")


def processes_of_ps() -> list[RunningProcess]:
    """What `ps` says of all processes, for computers without `/proc`."""
    listing = subprocess.run(
        ["ps", "-ww", "-eo", "pid=,ppid=,sess=,stat=,args="],
        capture_output=True,
        text=True,
        check=True,
    )
    seen = []
    for line in listing.stdout.splitlines():
        pid, parent, session, state, command = line.split(None, 4)
        if not state.startswith("Z"):
            seen.append(
                RunningProcess(
                    pid=int(pid), parent=int(parent), session=int(session), command=command
                )
            )
    return seen
