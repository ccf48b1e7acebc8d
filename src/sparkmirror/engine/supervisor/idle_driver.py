"""A driver process that waits for its spec, with a directory for its temporary files.

A driver imports for most of a second before it can start Spark. A command that is going to need one
starts it first and does its own imports meanwhile.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Self

from sparkmirror.engine.supervisor.driver_process import DriverProcess

DRIVER_MODULE = "sparkmirror.engine.driver.driver_main"


class IdleDriver:
    """The process waits for the first line of its input. `close` ends it, with or without one."""

    def __init__(self, module: str = DRIVER_MODULE, log: Path | None = None) -> None:
        """Start the process. `log` gets the errors that it has before its spec names a log."""
        self._temporary = tempfile.TemporaryDirectory(
            prefix="sparkmirror-", ignore_cleanup_errors=True
        )
        self.process = DriverProcess(module, Path(self._temporary.name), log)

    def close(self) -> None:
        """Kill what is left of the process, and remove its directory."""
        if not self.process.has_ended:
            self.process.kill()
            self.process.shut_down(0.0)
        self._temporary.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
