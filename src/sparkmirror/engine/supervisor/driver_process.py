"""The driver process as its parent sees it: started, spoken to, listened to, and gone for certain.

The process leads a group of its own, to which Spark's JVM belongs too; Spark's workers notice the
end of the JVM and end with it. The process ends when its input does, so it cannot outlive us. When
all else fails the whole group is killed.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import sparkmirror

_READ_BYTES = 1 << 16
_EXIT_POLL_S = 0.05
_SELECT_TIMEOUT_S = 0.5
REAP_TIMEOUT_S = 10.0
GROUP_EXIT_GRACE_S = 1.0
"""How long what a driver leaves behind may take to end by itself."""


class DriverProcess:
    """One driver process."""

    def __init__(self, module: str, temporary: Path, log: Path) -> None:
        """Start it; it keeps its temporary files where we can clear them up."""
        log.parent.mkdir(parents=True, exist_ok=True)
        root = str(Path(sparkmirror.__file__).parents[1])
        path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=temporary,
                env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(temporary)},
                start_new_session=True,
                bufsize=0,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout

    @property
    def pid(self) -> int:
        """Its number, and that of the group and session it leads."""
        return self._process.pid

    def write_line(self, line: bytes) -> None:
        """Give it a line. To one that has ended nothing can be said; its end is noticed anyway."""
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._input.write(line)

    def read_lines(self, patience_s: Callable[[float], float]) -> Iterator[bytes]:
        """What it says, until it ends or our patience does.

        `patience_s` is asked again and again how long to wait, after so many seconds of silence.
        """
        rest = b""
        heard_at = time.monotonic()
        while (left_s := patience_s(time.monotonic() - heard_at)) > 0:
            if not select.select([self._output], [], [], min(left_s, _SELECT_TIMEOUT_S))[0]:
                continue
            chunk = os.read(self._output.fileno(), _READ_BYTES)
            if not chunk:
                return
            heard_at = time.monotonic()
            *whole, rest = (rest + chunk).split(b"\n")
            yield from whole

    def shut_down(self, within_s: float) -> int:
        """Wait for it and its group to end, or end them; returns the driver's exit code."""
        with contextlib.suppress(BrokenPipeError):
            self._input.close()
        deadline = time.monotonic() + within_s
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=within_s)
            # A driver that ends well has seen its JVM off before.
            deadline = min(deadline, time.monotonic() + GROUP_EXIT_GRACE_S)
        while self._group_is_alive() and time.monotonic() < deadline:
            time.sleep(_EXIT_POLL_S)
        self.kill()
        self._output.close()
        return self._process.wait(timeout=REAP_TIMEOUT_S)

    def kill(self) -> None:
        """Kill the group. The number stays ours as long as anybody in the group lives."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _group_is_alive(self) -> bool:
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            return False
        return True
