"""Nothing is left behind: a small process that outlives us just long enough to clear up.

    with Guard.watch() as guard:
        guard.remove_at_end(directory)
        process = guard.launch(["java", ...], log=directory / "log")
        ...                               exit, Ctrl-C, kill -9 or a crash: all gone in seconds

The guard is a child in a session of its own that holds the reading end of a pipe; when the pipe
breaks, it kills what was adopted and removes what was registered (`sparkmirror.lab.watch`).
Invariant: no launched program runs unadopted, not even for a moment. Each begins as a shell that
waits for our word, is adopted, and only then becomes the program; if we die in between, the
shell reads the end of its input and ends.
Knows processes and directories, nothing about Kafka.
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
from sparkmirror.lab import watch
from sparkmirror.lab.process import Identity, Process

log = logging.getLogger(__name__)

_START_S = 30.0
_END_S = 30.0
_GATE = 'read -r go && exec "$@" < /dev/null'


class Guard:
    """The parent's end. Make one with `watch` (dies with us) or `detached` (outlives us)."""

    def __init__(self, watcher: subprocess.Popen[bytes] | None = None, orders: int = -1) -> None:
        self._watcher = watcher
        self._orders = orders
        self._launched: list[Process] = []

    @classmethod
    def watch(cls) -> Self:
        """Start the guard's process and wait until it is on duty."""
        root = Path(sparkmirror.__file__).parents[1]
        reading, orders = os.pipe()
        answers, answering = os.pipe()
        watcher = subprocess.Popen(
            [sys.executable, "-P", "-m", watch.__name__, str(os.getpid())],
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
        readable, _, _ = select.select([answers], [], [], _START_S)
        said = os.read(answers, len(watch.READY)) if readable else b""
        os.close(answers)
        if said != watch.READY:
            watcher.kill()
            guard.close()
            raise LabError(
                f"The lab's guard did not start within {_START_S:.0f} s, so nothing was started:"
                " try again when the computer is less busy."
            )
        return guard

    @property
    def pid(self) -> int | None:
        """The guard's own process; None for one that is detached or closed."""
        return self._watcher.pid if self._watcher else None

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
                ["/bin/sh", "-c", _GATE, "sh", *command],
                stdin=reading,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env=environ,
                start_new_session=True,
            )
        os.close(reading)
        try:
            process = Process(self.adopt(child.pid), child)
            os.write(word, b"go\n")
        except BaseException:
            child.kill()
            child.wait()
            raise
        finally:
            os.close(word)
        self._launched.append(process)
        return process

    def adopt(self, pid: int) -> Identity:
        """Have a running process (and the group it leads) killed when we are gone."""
        identity = Identity.of(pid)
        if identity is None:
            raise LabError(f"There is no process {pid} to guard: start it first.")
        self._order({"adopt": str(pid), "began": identity.began})
        return identity

    def forget(self, process: Process) -> None:
        """Drop a process that has ended."""
        self._launched = [other for other in self._launched if other is not process]
        with contextlib.suppress(LabError):  # a dead guard has nothing to forget
            self._order({"forget": str(process.pid)})

    def remove_at_end(self, directory: Path) -> None:
        """Have a directory removed when we are gone."""
        if not directory.is_absolute() or len(directory.parts) < 3 or directory == Path.home():
            raise LabError(f"{directory} is not a directory to remove: give one of the lab's own.")
        self._order({"remove": str(directory)})

    def release(self) -> None:
        """Let everything live on: from now on this guard is a detached one."""
        self._order({"release": ""})
        for process in self._launched:
            process.let_go()
        self._launched.clear()
        self.close()

    def close(self) -> bool:
        """Kill and remove what is still registered; tell whether nothing was left."""
        watcher, self._watcher = self._watcher, None
        if watcher is None:
            return True
        os.close(self._orders)
        try:
            code = watcher.wait(timeout=_END_S)
        except subprocess.TimeoutExpired:
            log.warning("The lab's guard (process %d) is still clearing up", watcher.pid)
            return False
        for process in self._launched:
            process.runs()  # reaps it
        self._launched.clear()
        return code == 0

    def _order(self, order: dict[str, str]) -> None:
        if self._watcher is None:
            return
        try:
            # One write of less than a pipe's atomic size: safe from several threads.
            os.write(self._orders, json.dumps(order).encode() + b"\n")
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
