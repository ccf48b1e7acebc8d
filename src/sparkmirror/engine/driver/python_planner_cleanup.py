"""Ends the Python processes that Spark started only to plan the query.

Spark looks up, creates and plans the data source in processes of their own, each with a daemon. It
needs them once for a query and keeps them: about 170 MB. Spark starts another one if it ever needs
one again. Linux only; elsewhere the processes stay.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

log = logging.getLogger(__name__)

PLANNING_MODULE = "pyspark.sql.worker."
_PROC = Path("/proc")


class SystemProcess(NamedTuple):
    """A process of this computer."""

    pid: int
    parent: int
    arguments: tuple[str, ...]


def planning_daemons(processes: Iterable[SystemProcess], jvm: int) -> list[int]:
    """Return the planning daemons among the children of the JVM. Their workers end with them."""
    return [
        process.pid
        for process in processes
        if process.parent == jvm
        and any(argument.startswith(PLANNING_MODULE) for argument in process.arguments)
    ]


def end_planning_processes(jvm: int) -> None:
    """End the planning daemons below the JVM."""
    daemons = planning_daemons(system_processes(), jvm)
    for pid in daemons:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGTERM)
    if daemons:
        log.info("Ended %d planning processes of Spark", len(daemons))


def system_processes() -> list[SystemProcess]:
    """Return the processes of this computer that this user may see; none without /proc."""
    found = (_read_process(path) for path in _PROC.glob("[0-9]*"))
    return [process for process in found if process]


def _read_process(path: Path) -> SystemProcess | None:
    try:
        stat = (path / "stat").read_text("utf-8", errors="replace")
        command = (path / "cmdline").read_text("utf-8", errors="replace")
    except OSError:
        return None  # it has just ended
    parent = int(stat.rpartition(")")[2].split()[1])
    return SystemProcess(int(path.name), parent, tuple(command.split("\0")))
