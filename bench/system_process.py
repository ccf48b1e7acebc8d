"""One contestant that runs: started, watched, ended."""

from __future__ import annotations

import time
from pathlib import Path

from bench.flow import Flow
from bench.process_tree import ProcessTree
from bench.systems import ROOT, System, start_command
from sparkmirror.errors import LabError
from sparkmirror.lab.processes.process import Process
from sparkmirror.lab.processes.process_reaper import ProcessReaper

STOP_TIMEOUT_S = 30.0


class SystemProcess:
    """A contestant under a guard. `tree` is the program and everything that it starts."""

    def __init__(self, who: System, flow: Flow, directory: Path, guard: ProcessReaper) -> None:
        self.system = who
        self.flow = flow
        directory.mkdir(parents=True)
        self._log = directory / "log"
        self._command = start_command(who, flow, directory)
        self._process: Process = guard.launch(
            self._command.argv, log=self._log, cwd=ROOT, environ=self._command.environ
        )
        self.tree = ProcessTree(self._process.pid)

    def ensure_running(self) -> None:
        """Complain if it has ended by itself."""
        if not self._process.is_running():
            raise LabError(f"{self.system} has ended by itself. {self._log_tail()}")

    def stop(self) -> float:
        """Ask it to end, kill it if it does not; tell how many seconds it took."""
        begun = time.monotonic()
        self._process.send_signal(self._command.stop_signal)
        if not self._process.wait_for_exit(STOP_TIMEOUT_S):
            self.kill()
        return time.monotonic() - begun

    def kill(self) -> None:
        """End it at once, with all that it started."""
        self.tree.kill()
        self._process.wait_for_exit(STOP_TIMEOUT_S)

    def _log_tail(self) -> str:
        lines = self._log.read_text("utf-8", errors="replace").splitlines()
        return "Its last words: " + " / ".join(lines[-5:])
