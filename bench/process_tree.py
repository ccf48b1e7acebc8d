"""The processor time and memory of a process and its descendants, read from /proc.

Processor time includes every running process, and every ended process for which a running one has
waited. Memory is the proportional set size: pages that processes share count once.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PSS = "Pss:"


class Stat(NamedTuple):
    """The needed fields of one line of /proc/PID/stat."""

    pid: int
    parent: int
    start_ticks: int
    """The start time, since the boot of the computer."""
    cpu_ticks: int
    """User and system time of the process and of the children for which it has waited."""


def parse_stat(line: str) -> Stat:
    """Parse a stat line. The program's name is in brackets and may hold any character."""
    before, _, after = line.rpartition(")")
    fields = after.split()
    return Stat(
        pid=int(before.split(None, 1)[0]),
        parent=int(fields[1]),
        start_ticks=int(fields[19]),
        cpu_ticks=sum(int(field) for field in fields[11:15]),
    )


def parse_pss_bytes(rollup: str) -> int:
    """Return the proportional set size from the text of /proc/PID/smaps_rollup."""
    for line in rollup.splitlines():
        if line.startswith(_PSS):
            return int(line.split()[1]) * 1024
    return 0


def descendants(roots: Iterable[int], stats: Mapping[int, Stat]) -> set[int]:
    """Return the running processes of `roots` and all their descendants."""
    children: dict[int, list[int]] = {}
    for stat in stats.values():
        children.setdefault(stat.parent, []).append(stat.pid)
    found: set[int] = set()
    waiting = [root for root in roots if root in stats]
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting += children.get(pid, ())
    return found


class ProcessTree:
    """A process and its descendants. A known descendant stays a member after its parent ended."""

    def __init__(self, root: int) -> None:
        self._known: dict[int, int] = {root: _all_stats()[root].start_ticks}
        self._start_ticks = self._known[root]

    def age_s(self) -> float:
        """Return the seconds since the start of the root."""
        return time.clock_gettime(time.CLOCK_BOOTTIME) - self._start_ticks / _TICKS_PER_S

    def cpu_s(self) -> float:
        """Return the processor time used so far."""
        return sum(member.cpu_ticks for member in self._members()) / _TICKS_PER_S

    def memory_bytes(self) -> int:
        """Return the memory in use now."""
        return sum(_pss_bytes(member.pid) for member in self._members())

    def process_count(self) -> int:
        """Return the number of running processes."""
        return len(self._members())

    def kill(self) -> None:
        """Kill every member."""
        for member in self._members():
            with contextlib.suppress(ProcessLookupError):
                os.kill(member.pid, signal.SIGKILL)

    def _members(self) -> list[Stat]:
        stats = _all_stats()
        roots = [
            pid
            for pid, start_ticks in self._known.items()
            if pid in stats and stats[pid].start_ticks == start_ticks
        ]
        members = [stats[pid] for pid in descendants(roots, stats)]
        self._known |= {member.pid: member.start_ticks for member in members}
        return members


def _all_stats() -> dict[int, Stat]:
    found = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            try:
                stat = parse_stat((entry / "stat").read_text("utf-8", errors="replace"))
            except (FileNotFoundError, ProcessLookupError):
                continue
            found[stat.pid] = stat
    return found


def _pss_bytes(pid: int) -> int:
    try:
        return parse_pss_bytes((_PROC / str(pid) / "smaps_rollup").read_text("ascii"))
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
