"""Processes identified by id and start time.

The system reuses process ids. A process is identified by its id *and* its start time, so a stale
record never leads to a signal to another process. This module reads the process table (`/proc`, or
`ps` where there is none) and sends signals. It knows nothing about Kafka. The reaper process
imports it, so it imports the standard library only.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """The id and the start time of a process."""

    pid: int
    start_time: str

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """Return the identity of a running process; None if it does not run (a zombie does not)."""
        start_time = _start_time(pid)
        return None if start_time is None else cls(pid, start_time)

    def is_running(self) -> bool:
        """Whether this process still runs."""
        return _start_time(self.pid) == self.start_time

    def send_signal(self, number: signal.Signals) -> None:
        """Signal the process and, if it leads one, its group. Does nothing if it has ended.

        A group may outlive its leader. The system does not reuse the id before the last member
        has ended, so the id still names this group.
        """
        if _start_time(self.pid) not in (self.start_time, None):
            return
        try:
            if _leads_group(self.pid):
                os.killpg(self.pid, number)
            else:
                os.kill(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return  # the process has ended, or another user's process has its id


class Process:
    """A process to signal and wait for: a child, or one that an earlier run started."""

    def __init__(
        self, identity: ProcessIdentity, child: subprocess.Popen[bytes] | None = None
    ) -> None:
        self.identity = identity
        self._child = child

    @property
    def pid(self) -> int:
        """The process id."""
        return self.identity.pid

    def is_running(self) -> bool:
        """Whether it still runs. Reaps a child that has ended."""
        if self._child is not None:
            return self._child.poll() is None
        return self.identity.is_running()

    def send_signal(self, number: signal.Signals) -> None:
        """Signal it and its group."""
        if self.is_running():
            self.identity.send_signal(number)

    def wait_for_exit(self, seconds: float) -> bool:
        """Wait for its end; return whether it ended in time."""
        deadline = time.monotonic() + seconds
        while self.is_running():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_S)
        return True

    def disown(self) -> None:
        """Stop treating it as a child: it outlives this process."""
        if self._child is not None and self._child.poll() is None:
            # Popen warns about children without a wait; this one keeps running on purpose.
            self._child.returncode = 0
        self._child = None


def _leads_group(pid: int) -> bool:
    try:
        return os.getpgid(pid) == pid
    except ProcessLookupError:
        return True


def _start_time(pid: int) -> str | None:
    """Return the start time in a form that is only good for comparison."""
    if _BOOT_ID.exists():
        return _start_time_from_proc(pid)
    return _start_time_from_ps(pid)


def _start_time_from_proc(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in brackets and may hold anything; parse after it.
    state, *rest = stat.rpartition(")")[2].split()
    if state in "ZX":
        return None
    ticks_since_boot = rest[18]
    return f"{ticks_since_boot}@{_BOOT_ID.read_text(encoding='ascii').strip()}"


def _start_time_from_ps(pid: int) -> str | None:
    answer = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    state, _, start_time = answer.stdout.strip().partition(" ")
    return None if state[:1] in ("", "Z") else " ".join(start_time.split())
