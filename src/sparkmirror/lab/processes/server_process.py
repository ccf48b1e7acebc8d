"""One server process, of a broker or of ZooKeeper: its files, its start, stop, pause and wipe.

    <directory>/server.properties   its configuration
    <directory>/broker.log          its log, of all its starts
    <directory>/data/               its data; `wipe` empties it
    <directory>/tmp/                Java's temporary files, so that none stay elsewhere
    <directory>/process.json        its process id, with which another command finds it

The subclasses name the first two files. This module does not wait until a server is ready.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from sparkmirror.errors import BrokerFailed
from sparkmirror.lab.processes.process_identity import Process, ProcessIdentity
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from sparkmirror.lab.properties_file import write_properties

_EXCERPT_LINES = 12
# Log lines of level ERROR or FATAL, and exceptions without the frames of their stack traces.
_ERROR_LINE = re.compile(r"\[[^]]*\] (ERROR|FATAL) |(?!\s+at )\S.*(Exception|Error)\b")
_STOP_TIMEOUT_S = 30.0
_KILL_TIMEOUT_S = 10.0


class ServerProcess:
    """One server, running or not."""

    PROPERTIES_NAME: ClassVar[str]
    LOG_NAME: ClassVar[str]

    def __init__(
        self,
        name: str,
        directory: Path,
        *,
        command: Callable[[], list[str]],
        format_data: Callable[[Path], None],
        reaper: ProcessReaper,
    ) -> None:
        self.name = name
        self._directory = directory
        self._command = command
        self._reaper = reaper
        self._format_data = format_data
        self._process: Process | None = None

    @property
    def data_directory(self) -> Path:
        """The directory of its data."""
        return self._directory / "data"

    @property
    def log_file(self) -> Path:
        """The file with its log output."""
        return self._directory / self.LOG_NAME

    @property
    def pid(self) -> int | None:
        """Its process id while it runs, else None."""
        process = self._find_process()
        return process.pid if process is not None and process.is_running() else None

    def is_running(self) -> bool:
        """Return whether its process exists; a paused process does."""
        return self.pid is not None

    def prepare(self, properties: Mapping[str, str]) -> None:
        """Write its files, and format its data directory if it has none."""
        (self._directory / "tmp").mkdir(parents=True, exist_ok=True)
        write_properties(self._directory / self.PROPERTIES_NAME, properties)
        if not self.data_directory.exists():
            self._format_data(self.data_directory)

    def launch(self) -> None:
        """Start the process unless it runs. Does not wait until it is ready."""
        if self.is_running():
            return
        log_from = self.log_file.stat().st_size if self.log_file.exists() else 0
        self._process = self._reaper.launch(self._command(), log=self.log_file, cwd=self._directory)
        identity = self._process.identity
        record = {"pid": identity.pid, "began": identity.start_time, "log_from": log_from}
        new_file = self._process_file.with_suffix(".new")
        new_file.write_text(json.dumps(record), encoding="utf-8")
        new_file.rename(self._process_file)

    def stop(self) -> None:
        """Send SIGTERM and wait; kill the process if it does not exit in time. Blocks."""
        self.terminate()
        if not self._wait_for_exit(_STOP_TIMEOUT_S):
            self.kill()

    def terminate(self) -> None:
        """Send SIGTERM. Does not wait. Resumes a paused process, which could not exit otherwise."""
        self._send_signal(signal.SIGTERM)
        self._send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Send SIGKILL, as a crash would, and wait. Raises BrokerFailed if the process stays."""
        self._send_signal(signal.SIGKILL)
        if not self._wait_for_exit(_KILL_TIMEOUT_S):
            raise BrokerFailed(f"{self.name} cannot be killed (process {self.pid}): look at it.")

    def pause(self) -> None:
        """Stop the process with SIGSTOP: connections stay open, requests get no answer."""
        self._send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue a paused process."""
        self._send_signal(signal.SIGCONT)

    def wipe(self) -> None:
        """Kill it and format an empty data directory, as after the replacement of a disk."""
        self.kill()
        shutil.rmtree(self.data_directory, ignore_errors=True)
        self._format_data(self.data_directory)

    def failed_to_bind(self) -> bool:
        """Return whether it exited because another process has bound one of its ports."""
        return not self.is_running() and "Address already in use" in self._current_log_text()

    def failure(self, what: str) -> BrokerFailed:
        """Return an error that says what happened, with the last error lines of the log."""
        lines = self._current_log_text().splitlines()
        errors = [line for line in lines if _ERROR_LINE.match(line)]
        excerpt = "\n".join((errors or lines)[-_EXCERPT_LINES:]) or "(nothing)"
        return BrokerFailed(f"{self.name} {what}. From {self.log_file}:\n{excerpt}")

    def _current_log_text(self) -> str:
        """Return the log output since its last start."""
        try:
            with self.log_file.open("rb") as file:
                file.seek(self._process_record().get("log_from", 0))
                return file.read().decode(errors="replace")
        except FileNotFoundError:
            return ""

    def _process_record(self) -> dict[str, Any]:
        """Return the content of process.json; empty if there is none."""
        try:
            record: dict[str, Any] = json.loads(self._process_file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        return record

    @property
    def _process_file(self) -> Path:
        return self._directory / "process.json"

    def _find_process(self) -> Process | None:
        """Return its last process, which this or another program started; None if never started."""
        record = self._process_record()
        if not record:
            return None
        identity = ProcessIdentity(record["pid"], record["began"])
        if self._process is None or self._process.identity != identity:
            self._process = Process(identity)
        return self._process

    def _send_signal(self, number: signal.Signals) -> None:
        process = self._find_process()
        if process is not None:
            process.send_signal(number)

    def _wait_for_exit(self, seconds: float) -> bool:
        process = self._find_process()
        if process is None:
            return True
        ended = process.wait_for_exit(seconds)
        if ended:
            self._reaper.unregister(process)
        return ended
