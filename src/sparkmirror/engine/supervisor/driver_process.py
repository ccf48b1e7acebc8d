"""The driver process as its parent sees it: start it, write to it, read from it, end it.

The process leads a process group of its own, which also holds Spark's JVM. Spark's Python workers
end when the JVM does. The driver ends when its standard input does, so it cannot outlive its
parent. If nothing else helps, the parent kills the whole group.
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
"""How long the rest of the group may take to end after the driver has ended."""


class DriverProcess:
    """One driver process."""

    def __init__(self, module: str, temporary: Path, log: Path | None) -> None:
        """Start it. Its temporary files go to `temporary`, its standard error to `log`.

        Without `log`, errors before the spec are lost: the next driver has them, too.
        """
        self.has_ended = False
        """Whether no process of the group is left; the system may use its id again."""
        self._environ = dict(os.environ)
        root = str(Path(sparkmirror.__file__).parents[1])
        path = os.pathsep.join(filter(None, [root, self._environ.get("PYTHONPATH", "")]))
        with (log or Path(os.devnull)).open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=temporary,
                env={
                    # Slots are forked from the driver: see `spark_conf`.
                    "MALLOC_ARENA_MAX": "2",
                    **self._environ,
                    "PYTHONPATH": path,
                    "TMPDIR": str(temporary),
                },
                start_new_session=True,
                bufsize=0,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout

    @property
    def pid(self) -> int:
        """Its process id, which is also the id of its group and session."""
        return self._process.pid

    def new_variables(self) -> dict[str, str]:
        """Return the environment variables of this process that were set since the start."""
        return {
            name: value for name, value in os.environ.items() if self._environ.get(name) != value
        }

    def write_line(self, line: bytes) -> None:
        """Write to its standard input. No-op if it has ended; `read_lines` notices that."""
        rest = memoryview(line)
        with contextlib.suppress(BrokenPipeError, ValueError):
            while rest:  # a signal ends a write to a full pipe early
                rest = rest[self._input.write(rest) :]

    def read_lines(self, remaining_s: Callable[[float], float]) -> Iterator[bytes]:
        """The lines of its standard output, until it ends or the time is up.

        Calls `remaining_s` again and again with the seconds since the last output. It returns how
        long to wait from now on; 0 or less ends the iteration.
        """
        rest = b""
        last_output_at = time.monotonic()
        while (left_s := remaining_s(time.monotonic() - last_output_at)) > 0:
            if not select.select([self._output], [], [], min(left_s, _SELECT_TIMEOUT_S))[0]:
                continue
            chunk = os.read(self._output.fileno(), _READ_BYTES)
            if not chunk:
                return
            last_output_at = time.monotonic()
            *whole, rest = (rest + chunk).split(b"\n")
            yield from whole

    def shut_down(self, within_s: float) -> int:
        """Close its input, wait for the group to end, then kill what is left.

        Returns the exit code of the driver.
        """
        with contextlib.suppress(BrokenPipeError):
            self._input.close()
        deadline = time.monotonic() + within_s
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=within_s)
            # A driver that ends in order has waited for its JVM.
            deadline = min(deadline, time.monotonic() + GROUP_EXIT_GRACE_S)
        while self._group_is_alive() and time.monotonic() < deadline:
            time.sleep(_EXIT_POLL_S)
        self.kill()
        self._output.close()
        code = self._process.wait(timeout=REAP_TIMEOUT_S)
        self.has_ended = True
        return code

    def kill(self) -> None:
        """Kill the group. The system does not reuse the group id while a member is alive."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _group_is_alive(self) -> bool:
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            return False
        return True
