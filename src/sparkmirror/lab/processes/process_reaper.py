"""Leaves nothing behind: a small process that outlives this one and cleans up after it.

    with ProcessReaper.start() as reaper:
        reaper.remove_on_exit(directory)
        process = reaper.launch(["java", ...], log=directory / "log")
        ...                               exit, Ctrl-C, kill -9 or a crash: all gone in seconds

The reaper is a child process in its own session that reads a pipe. When the pipe ends, it kills the
registered processes and removes the registered directories (`reaper_process`). Invariant: no
launched program runs unregistered, not even for a moment. Each starts as a shell that waits for a
line, is registered, and only then becomes the program. If this process dies in between, the shell
reads the end of its input and ends. This module knows nothing about Kafka.
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
from typing import Self

import sparkmirror
from sparkmirror.errors import LabError
from sparkmirror.lab.processes import reaper_process
from sparkmirror.lab.processes.process_identity import Process, ProcessIdentity

log = logging.getLogger(__name__)

_START_TIMEOUT_S = 30.0
_CLOSE_TIMEOUT_S = 30.0
_WAIT_FOR_GO_SCRIPT = 'read -r go && exec "$@" < /dev/null'


class ProcessReaper:
    """The parent's side. `start`: processes end with this one; `detached`: they outlive it."""

    def __init__(
        self, process: subprocess.Popen[bytes] | None = None, command_pipe: int = -1
    ) -> None:
        self._reaper_process = process
        self._command_pipe = command_pipe
        self._launched: list[Process] = []

    @classmethod
    def start(cls) -> Self:
        """Start the reaper process and wait until it is ready. Raises LabError."""
        root = Path(sparkmirror.__file__).parents[1]
        reading, commands = os.pipe()
        answers, answering = os.pipe()
        process = subprocess.Popen(
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
        reaper = cls(process, commands)
        readable, _, _ = select.select([answers], [], [], _START_TIMEOUT_S)
        answer = os.read(answers, len(reaper_process.READY)) if readable else b""
        os.close(answers)
        if answer != reaper_process.READY:
            process.kill()
            reaper.close()
            raise LabError(
                f"The lab's reaper process did not start within {_START_TIMEOUT_S:.0f} s; nothing"
                " was started: try again when the computer is less busy."
            )
        return reaper

    @property
    def pid(self) -> int | None:
        """The reaper's process id; None if it is detached or closed."""
        return self._reaper_process.pid if self._reaper_process else None

    @classmethod
    def detached(cls) -> Self:
        """Launch without a reaper: programs outlive this process."""
        return cls()

    def launch(
        self,
        command: Sequence[str],
        *,
        log: Path,
        cwd: Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> Process:
        """Start a program in its own session; append its output to `log`."""
        reading, go = os.pipe()
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
            os.write(go, b"go\n")
        except BaseException:
            child.kill()
            child.wait()
            raise
        finally:
            os.close(go)
        self._launched.append(process)
        return process

    def register(self, pid: int) -> ProcessIdentity:
        """Kill a running process (and the group it leads) when this process ends."""
        identity = ProcessIdentity.of(pid)
        if identity is None:
            raise LabError(f"There is no process {pid} to register: start it first.")
        self._send_command({"register": str(pid), "start_time": identity.start_time})
        return identity

    def unregister(self, process: Process) -> None:
        """Drop a process that has ended."""
        self._launched = [other for other in self._launched if other is not process]
        with contextlib.suppress(LabError):  # a dead reaper has no registry
            self._send_command({"unregister": str(process.pid)})

    def remove_on_exit(self, directory: Path) -> None:
        """Remove a directory when this process ends."""
        if not directory.is_absolute() or len(directory.parts) < 3 or directory == Path.home():
            raise LabError(f"{directory} is not a directory to remove: give one of the lab's own.")
        self._send_command({"remove": str(directory)})

    def release(self) -> None:
        """Let all programs outlive this process. From now on this reaper is detached."""
        self._send_command({"release": ""})
        for process in self._launched:
            process.disown()
        self._launched.clear()
        self.close()

    def close(self) -> bool:
        """Kill and remove what is still registered; return whether nothing is left."""
        reaper, self._reaper_process = self._reaper_process, None
        if reaper is None:
            return True
        os.close(self._command_pipe)
        try:
            code = reaper.wait(timeout=_CLOSE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            log.warning("The lab's reaper (process %d) is still cleaning up", reaper.pid)
            return False
        for process in self._launched:
            process.is_running()  # reaps it
        self._launched.clear()
        return code == 0

    def _send_command(self, command: dict[str, str]) -> None:
        if self._reaper_process is None:
            return
        try:
            # One write of less than a pipe's atomic size: safe from several threads.
            os.write(self._command_pipe, json.dumps(command).encode() + b"\n")
        except BrokenPipeError:
            raise LabError(
                "The lab's reaper process has died, so nothing more is started: end this lab and"
                " start a new one."
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
