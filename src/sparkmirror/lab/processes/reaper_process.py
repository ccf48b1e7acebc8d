"""The guard's own process: waits until its parent is gone, then clears up after it.

    python -m sparkmirror.lab.processes.reaper_process <parent's pid>

Standard input is a pipe from the parent, one JSON order a line: `adopt` a process, `forget` one,
`remove` a directory at the end, `release` (clear up nothing). The end of the pipe, or another
parent than at the beginning, means that the parent is gone, however it went. Then every adopted
process still running is killed, and after that every directory is removed.
Needs the standard library only, writes nothing but one line when it is ready.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from sparkmirror.lab.processes.process import ProcessIdentity

READY = b"ready\n"
_PARENT_CHECK_S = 1.0
_KILL_TIMEOUT_S = 10.0
_REMOVE_TIMEOUT_S = 10.0


class CleanupRegistry:
    """What is to be cleared up at the end."""

    def __init__(self) -> None:
        self.processes: dict[int, ProcessIdentity] = {}
        self.directories: list[Path] = []

    def apply(self, order: dict[str, str]) -> None:
        """Obey one order."""
        match order:
            case {"adopt": pid, "began": began}:
                self.processes[int(pid)] = ProcessIdentity(int(pid), began)
            case {"forget": pid}:
                self.processes.pop(int(pid), None)
            case {"remove": path}:
                self.directories.append(Path(path))
            case {"release": _}:
                self.processes.clear()
                self.directories.clear()

    def clean_up(self) -> bool:
        """Clear up; tell whether nothing is left."""
        identities = self.processes.values()
        for identity in identities:
            identity.send_signal(signal.SIGKILL)
        deadline = time.monotonic() + _KILL_TIMEOUT_S
        while any(identity.is_running() for identity in identities) and time.monotonic() < deadline:
            time.sleep(0.02)
        removed = [_remove(directory) for directory in self.directories]
        return all(removed) and not any(identity.is_running() for identity in identities)


def _remove(directory: Path) -> bool:
    """Remove a tree, again and again while somebody still writes into it."""
    deadline = time.monotonic() + _REMOVE_TIMEOUT_S
    while directory.exists():
        shutil.rmtree(directory, ignore_errors=True)
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.05)
    return True


def read_commands(
    pipe: int, parent: int, look_around_s: float = _PARENT_CHECK_S
) -> Iterator[dict[str, str]]:
    """Yield the parent's orders until it is gone. An order cut off in the middle is dropped."""
    rest = b""
    while True:
        readable, _, _ = select.select([pipe], [], [], look_around_s)
        if not readable:
            # A forked copy of the parent may hold the pipe open after the parent has died.
            if os.getppid() != parent:
                return
            continue
        chunk = os.read(pipe, 65536)
        if not chunk:
            return
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield json.loads(line)


def main() -> int:
    """Watch until the parent is gone, then clear up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Whoever sends these means the parent; the guard must be the last to leave.
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(BrokenPipeError):
        os.write(sys.stdout.fileno(), READY)
    charges = CleanupRegistry()
    for order in read_commands(sys.stdin.fileno(), int(sys.argv[1])):
        charges.apply(order)
    return 0 if charges.clean_up() else 1


if __name__ == "__main__":
    sys.exit(main())
