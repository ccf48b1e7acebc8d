"""The processes of this computer, as tests look for them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path


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


def session_processes(session: int, *parts: str) -> list[RunningProcess]:
    """The processes of a session whose command holds all these parts."""
    return [
        process
        for process in all_processes()
        if process.session == session and all(part in process.command for part in parts)
    ]
