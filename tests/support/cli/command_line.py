"""Runs the `sparkmirror` command in another process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

_MAIN = "from sparkmirror.cli.main import main; main()"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """Outputs and exit code of a command."""

    exit_code: int
    stdout: str
    stderr: str


class CommandLine:
    """Runs `sparkmirror` with some environment variables changed."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = {**os.environ, **environ}

    def run(self, *arguments: str, text: str = "") -> CommandResult:
        """Run a command with `text` as its input and wait for its end."""
        done = subprocess.run(
            [sys.executable, "-c", _MAIN, *arguments],
            input=text,
            capture_output=True,
            text=True,
            env=self._environ,
        )
        return CommandResult(exit_code=done.returncode, stdout=done.stdout, stderr=done.stderr)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command; its stdout contains its stderr."""
        return subprocess.Popen(
            [sys.executable, "-c", _MAIN, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self._environ,
        )
