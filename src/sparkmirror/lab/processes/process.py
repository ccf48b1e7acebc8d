"""Processes of ours, told apart from strangers that inherited their number.

A process is named by its number *and* the moment it began, so a stale record never leads to the
death of somebody else's process. Knows the system's process table (`/proc`, or `ps` where there
is none), sessions and signals. Knows nothing about Kafka. The guard's own process imports this
module, so it needs the standard library only.
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
    """One process of this computer, now and for ever."""

    pid: int
    start_time: str

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """Name a process that runs now; None if there is none (a zombie does not run)."""
        began = _start_time(pid)
        return None if began is None else cls(pid, began)

    def is_running(self) -> bool:
        """Tell whether this very process still runs."""
        return _start_time(self.pid) == self.start_time

    def send_signal(self, number: signal.Signals) -> None:
        """Signal the process and, if it leads one, its group. One that has ended is left alone.

        A group may outlive its leader; its number is not given away before the last member
        has ended, so an unused number still names our group.
        """
        if _start_time(self.pid) not in (self.start_time, None):
            return
        try:
            if _leads_group(self.pid):
                os.killpg(self.pid, number)
            else:
                os.kill(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return  # nobody has the number any more, or a stranger has


class Process:
    """A process we may signal and wait for: our own child, or one that an earlier run left."""

    def __init__(
        self, identity: ProcessIdentity, child: subprocess.Popen[bytes] | None = None
    ) -> None:
        self.identity = identity
        self._child = child

    @property
    def pid(self) -> int:
        """Its number."""
        return self.identity.pid

    def is_running(self) -> bool:
        """Tell whether it still runs; a child that has ended is reaped."""
        if self._child is not None:
            return self._child.poll() is None
        return self.identity.is_running()

    def send_signal(self, number: signal.Signals) -> None:
        """Signal it and its group."""
        if self.is_running():
            self.identity.send_signal(number)

    def wait_for_exit(self, seconds: float) -> bool:
        """Wait for its end; tell whether it came in time."""
        deadline = time.monotonic() + seconds
        while self.is_running():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_S)
        return True

    def disown(self) -> None:
        """Stop being its parent in Python's eyes: it is meant to outlive us."""
        if self._child is not None and self._child.poll() is None:
            # Popen complains about children that nobody waited for; this one is left on purpose.
            self._child.returncode = 0
        self._child = None


def _leads_group(pid: int) -> bool:
    try:
        return os.getpgid(pid) == pid
    except ProcessLookupError:
        return True


def _start_time(pid: int) -> str | None:
    """Say when a process began, in a form that is only good for comparison."""
    if _BOOT_ID.exists():
        return _start_time_from_proc(pid)
    return _start_time_from_ps(pid)


def _start_time_from_proc(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in brackets and may hold anything; count behind it.
    state, *rest = stat.rpartition(")")[2].split()
    if state in "ZX":
        return None
    ticks_since_boot = rest[18]
    return f"{ticks_since_boot}@{_BOOT_ID.read_text(encoding='ascii').strip()}"


def _start_time_from_ps(pid: int) -> str | None:
    answer = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    state, _, began = answer.stdout.strip().partition(" ")
    return None if state[:1] in ("", "Z") else " ".join(began.split())
