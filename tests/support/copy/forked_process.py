"""A process that starts with all modules of the copy package imported.

Python's fork server imports them once for each test process. A new Python process needs most of a
second of processor time for that.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Mapping
from multiprocessing.connection import wait
from typing import Any

PRELOADED_MODULES = ["tests.support.copy.harness_process", "tests.support.copy.task_process"]
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(PRELOADED_MODULES)
_LOCK = threading.Lock()
"""Two threads that ask at the same time whether a process runs would lose its exit code."""


class ForkedProcess:
    """Calls a function of a module in another process, with the environment of this process."""

    def __init__(self, function: Callable[..., None], *arguments: Any) -> None:
        with _LOCK:
            self._process = _CONTEXT.Process(
                target=_call, args=(dict(os.environ), function, arguments)
            )
            self._process.start()
        assert self._process.pid
        self.pid: int = self._process.pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while the process runs."""
        with _LOCK:
            if self.returncode is None:
                self.returncode = self._process.exitcode
            return self.returncode

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait for the end of the process; return its exit code, None if it still runs."""
        if self.returncode is None:
            wait([self._process.sentinel], timeout_s)
        return self.poll()

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal unless the process has ended."""
        # The fork server is the parent: it may remove an ended process before `poll` knows of it.
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL. Does not wait."""
        self.send_signal(signal.SIGKILL)


def _call(
    environment: Mapping[str, str], function: Callable[..., None], arguments: tuple[Any, ...]
) -> None:
    os.environ.clear()
    os.environ.update(environment)
    function(*arguments)
