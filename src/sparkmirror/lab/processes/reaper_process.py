"""The reaper process: waits until its parent has ended, then cleans up after it.

    python -m sparkmirror.lab.processes.reaper_process <parent's pid>

Standard input is a pipe from the parent with one JSON command per line: `register` a process,
`unregister` one, `remove` a directory at the end, `release` everything (clean up nothing). The end
of the pipe, or a changed parent process, means that the parent has ended. Then the reaper kills
every registered process that still runs, and after that removes every directory. It imports the
standard library only, and writes one line when it is ready.
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

from sparkmirror.lab.processes.process_identity import ProcessIdentity

READY = b"ready\n"
_PARENT_CHECK_S = 1.0
_KILL_TIMEOUT_S = 10.0
_REMOVE_TIMEOUT_S = 10.0


class CleanupRegistry:
    """The processes to kill and the directories to remove at the end."""

    def __init__(self) -> None:
        self.processes: dict[int, ProcessIdentity] = {}
        self.directories: list[Path] = []

    def apply(self, command: dict[str, str]) -> None:
        """Apply one command."""
        match command:
            case {"register": pid, "start_time": start_time}:
                self.processes[int(pid)] = ProcessIdentity(int(pid), start_time)
            case {"unregister": pid}:
                self.processes.pop(int(pid), None)
            case {"remove": path}:
                self.directories.append(Path(path))
            case {"release": _}:
                self.processes.clear()
                self.directories.clear()

    def clean_up(self) -> bool:
        """Kill and remove everything; return whether nothing is left."""
        identities = self.processes.values()
        for identity in identities:
            identity.send_signal(signal.SIGKILL)
        deadline = time.monotonic() + _KILL_TIMEOUT_S
        while any(identity.is_running() for identity in identities) and time.monotonic() < deadline:
            time.sleep(0.02)
        removed = [_remove(directory) for directory in self.directories]
        return all(removed) and not any(identity.is_running() for identity in identities)


def _remove(directory: Path) -> bool:
    """Remove a directory; retry while a process still writes into it."""
    deadline = time.monotonic() + _REMOVE_TIMEOUT_S
    while directory.exists():
        shutil.rmtree(directory, ignore_errors=True)
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.05)
    return True


def read_commands(
    pipe: int, parent: int, parent_check_s: float = _PARENT_CHECK_S
) -> Iterator[dict[str, str]]:
    """Yield the parent's commands until it ends. Drops an incomplete command."""
    rest = b""
    while True:
        readable, _, _ = select.select([pipe], [], [], parent_check_s)
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
    """Wait until the parent ends, then clean up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # These signals are meant for the parent; the reaper must outlive it.
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(BrokenPipeError):
        os.write(sys.stdout.fileno(), READY)
    registry = CleanupRegistry()
    for command in read_commands(sys.stdin.fileno(), int(sys.argv[1])):
        registry.apply(command)
    return 0 if registry.clean_up() else 1


if __name__ == "__main__":
    sys.exit(main())
