"""The running process of one system."""

from __future__ import annotations

import time
from pathlib import Path

from bench.flow import Flow
from bench.process_tree import ProcessTree
from bench.systems import ROOT, System, start_command
from sparkmirror.errors import LabError
from sparkmirror.lab.processes.process_identity import Process
from sparkmirror.lab.processes.process_reaper import ProcessReaper

STOP_TIMEOUT_S = 30.0


class SystemProcess:
    """Starts a system under a ProcessReaper. `tree` is its process with all descendants."""

    def __init__(self, system: System, flow: Flow, directory: Path, reaper: ProcessReaper) -> None:
        self.system = system
        self.flow = flow
        directory.mkdir(parents=True)
        self._log = directory / "log"
        self._reaper = reaper
        self._command = start_command(system, flow, directory)
        self.start()

    def start(self) -> None:
        """Start the process, at first or after it was killed. `tree` is the new one's."""
        self._process: Process = self._reaper.launch(
            self._command.argv, log=self._log, cwd=ROOT, environ=self._command.environ
        )
        self.tree = ProcessTree(self._process.pid)

    def ensure_running(self) -> None:
        """Raise LabError if the process has ended."""
        if not self._process.is_running():
            raise LabError(f"{self.system} has ended by itself. {self._log_tail()}")

    def stop(self) -> float:
        """Stop the process, or kill it after STOP_TIMEOUT_S; return the seconds. Blocks."""
        begun = time.monotonic()
        self._process.send_signal(self._command.stop_signal)
        if not self._process.wait_for_exit(STOP_TIMEOUT_S):
            self.kill()
        return time.monotonic() - begun

    def kill(self) -> None:
        """Kill the process with all descendants, and wait."""
        self.tree.kill()
        self._process.wait_for_exit(STOP_TIMEOUT_S)

    def _log_tail(self) -> str:
        lines = self._log.read_text("utf-8", errors="replace").splitlines()
        return "End of its log: " + " / ".join(lines[-5:])
