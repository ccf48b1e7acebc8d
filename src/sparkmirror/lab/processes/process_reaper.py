"""Nothing is left behind: a small process that outlives us just long enough to clear up.

    with Guard.watch() as guard:
        guard.remove_at_end(directory)
        process = guard.launch(["java", ...], log=directory / "log")
        ...                               exit, Ctrl-C, kill -9 or a crash: all gone in seconds

The guard is a child in a session of its own that holds the reading end of a pipe; when the pipe
breaks, it kills what was adopted and removes what was registered
(`sparkmirror.lab.processes.reaper_process`). Invariant: no launched program runs unadopted, not
even for a moment. Each begins as a shell that waits for our word, is adopted, and only then becomes
the program; if we die in between, the shell reads the end of its input and ends. Knows processes
and directories, nothing about Kafka.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import sparkmirror
from sparkmirror.errors import LabError
from sparkmirror.lab.processes import reaper_process
from sparkmirror.lab.processes.process import Process, ProcessIdentity

log = logging.getLogger(__name__)

_START_TIMEOUT_S = 30.0
_CLOSE_TIMEOUT_S = 30.0
_WAIT_FOR_GO_SCRIPT = 'read -r go && exec "$@" < /dev/null'


class ProcessReaper:
    """The parent's end. Make one with `watch` (dies with us) or `detached` (outlives us)."""

    def __init__(self, watcher: subprocess.Popen[bytes] | None = None, orders: int = -1) -> None:
        self._reaper_process = watcher
        self._command_pipe = orders
        self._launched: list[Process] = []

    @classmethod
    def start(cls) -> Self:
        """Start the guard's process and wait until it is on duty."""
        root = Path(sparkmirror.__file__).parents[1]
        reading, orders = os.pipe()
        answers, answering = os.pipe()
        watcher = subprocess.Popen(
            [sys.executable, "-P", "-m", reaper_process.__name__, str(os.getpid())],
            stdin=reading,
            stdout=answering,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={**os.environ, "PYTHONPATH": str(root)},
            start_new_session=True,
        )
        os.close(reading)
        os.close(answering)
        guard = cls(watcher, orders)
        readable, _, _ = select.select([answers], [], [], _START_TIMEOUT_S)
        said = os.read(answers, len(reaper_process.READY)) if readable else b""
        os.close(answers)
        if said != reaper_process.READY:
            watcher.kill()
            guard.close()
            raise LabError(
                f"The lab's guard did not start within {_START_TIMEOUT_S:.0f} s, so nothing was"
                f" started:"
                " try again when the computer is less busy."
            )
        return guard

    @property
    def pid(self) -> int | None:
        """The guard's own process; None for one that is detached or closed."""
        return self._reaper_process.pid if self._reaper_process else None

    @classmethod
    def detached(cls) -> Self:
        """Launch without a guard: what is started outlives this process."""
        return cls()

    def launch(
        self,
        command: Sequence[str],
        *,
        log: Path,
        cwd: Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> Process:
        """Start a program in a session of its own, its output appended to `log`."""
        reading, word = os.pipe()
        with log.open("ab") as output:
            child = subprocess.Popen(
                ["/bin/sh", "-c", _WAIT_FOR_GO_SCRIPT, "sh", *command],
                stdin=reading,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env=environ,
                start_new_session=True,
            )
        os.close(reading)
        try:
            process = Process(self.register(child.pid), child)
            os.write(word, b"go\n")
        except BaseException:
            child.kill()
            child.wait()
            raise
        finally:
            os.close(word)
        self._launched.append(process)
        return process

    def register(self, pid: int) -> ProcessIdentity:
        """Have a running process (and the group it leads) killed when we are gone."""
        identity = ProcessIdentity.of(pid)
        if identity is None:
            raise LabError(f"There is no process {pid} to guard: start it first.")
        self._send_command({"adopt": str(pid), "began": identity.start_time})
        return identity

    def unregister(self, process: Process) -> None:
        """Drop a process that has ended."""
        self._launched = [other for other in self._launched if other is not process]
        with contextlib.suppress(LabError):  # a dead guard has nothing to forget
            self._send_command({"forget": str(process.pid)})

    def remove_on_exit(self, directory: Path) -> None:
        """Have a directory removed when we are gone."""
        if not directory.is_absolute() or len(directory.parts) < 3 or directory == Path.home():
            raise LabError(f"{directory} is not a directory to remove: give one of the lab's own.")
        self._send_command({"remove": str(directory)})

    def release(self) -> None:
        """Let everything live on: from now on this guard is a detached one."""
        self._send_command({"release": ""})
        for process in self._launched:
            process.disown()
        self._launched.clear()
        self.close()

    def close(self) -> bool:
        """Kill and remove what is still registered; tell whether nothing was left."""
        watcher, self._reaper_process = self._reaper_process, None
        if watcher is None:
            return True
        os.close(self._command_pipe)
        try:
            code = watcher.wait(timeout=_CLOSE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            log.warning("The lab's guard (process %d) is still clearing up", watcher.pid)
            return False
        for process in self._launched:
            process.is_running()  # reaps it
        self._launched.clear()
        return code == 0

    def _send_command(self, order: dict[str, str]) -> None:
        if self._reaper_process is None:
            return
        try:
            # One write of less than a pipe's atomic size: safe from several threads.
            os.write(self._command_pipe, json.dumps(order).encode() + b"\n")
        except BrokenPipeError:
            raise LabError(
                "The lab's guard has died, so nothing more is started: end this lab and"
                " start a new one."
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
