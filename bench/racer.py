"""One contestant that runs: started, watched, ended."""

from __future__ import annotations

import time
from pathlib import Path

from bench.contestants import ROOT, Who, command_of
from bench.flow import Flow
from bench.process_tree import ProcessTree
from sparkmirror.errors import LabError
from sparkmirror.lab.guard import Guard
from sparkmirror.lab.process import Process

END_S = 30.0


class Racer:
    """A contestant under a guard. `tree` is the program and everything that it starts."""

    def __init__(self, who: Who, flow: Flow, directory: Path, guard: Guard) -> None:
        self.who = who
        self.flow = flow
        directory.mkdir(parents=True)
        self._log = directory / "log"
        self._command = command_of(who, flow, directory)
        self._process: Process = guard.launch(
            self._command.words, log=self._log, cwd=ROOT, environ=self._command.environ
        )
        self.tree = ProcessTree(self._process.pid)

    def check(self) -> None:
        """Complain if it has ended by itself."""
        if not self._process.runs():
            raise LabError(f"{self.who} has ended by itself. {self._last_words()}")

    def end(self) -> float:
        """Ask it to end, kill it if it does not; tell how many seconds it took."""
        begun = time.monotonic()
        self._process.send(self._command.end_with)
        if not self._process.ended_within(END_S):
            self.kill()
        return time.monotonic() - begun

    def kill(self) -> None:
        """End it at once, with all that it started."""
        self.tree.kill()
        self._process.ended_within(END_S)

    def _last_words(self) -> str:
        lines = self._log.read_text("utf-8", errors="replace").splitlines()
        return "Its last words: " + " / ".join(lines[-5:])
