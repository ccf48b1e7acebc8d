"""One broker process: its files, its Java, and what can be done to it.

    <directory>/server.properties   what it was told
    <directory>/broker.log          what it said, over all its lives
    <directory>/data/               what it keeps; gone after `wipe`
    <directory>/tmp/                what Java unpacks, so that nothing is left elsewhere
    <directory>/process.json        which process it is, for whoever comes later

Knows one process only. Whether the cluster has noticed its death or its return is not known here.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sparkmirror.errors import BrokerFailed
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec
from sparkmirror.lab.cluster.properties_file import write_properties
from sparkmirror.lab.kafka.jvm_options import log4j_options
from sparkmirror.lab.processes.process import Process, ProcessIdentity
from sparkmirror.lab.processes.process_reaper import ProcessReaper

_MAIN = "kafka.Kafka"
_EXCERPT_LINES = 12
# Log lines of grave levels, and exceptions without the frames of their traces.
_ERROR_LINE = re.compile(r"\[[^]]*\] (ERROR|FATAL) |(?!\s+at )\S.*(Exception|Error)\b")
_STOP_TIMEOUT_S = 30.0
_KILL_TIMEOUT_S = 10.0
_FAST_START_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# What Kafka's own start script chooses.
_DEFAULT_OPTIONS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)


def broker_command(java: Path, classpath: str, spec: ClusterSpec, directory: Path) -> list[str]:
    """Return the command that runs one broker of a cluster in its directory."""
    return [
        str(java),
        f"-Xmx{spec.heap}",
        "-Xms64m",
        *(_FAST_START_OPTIONS if spec.fast_start else _DEFAULT_OPTIONS),
        "-XX:-UsePerfData",
        "-XX:+ExitOnOutOfMemoryError",
        f"-XX:ErrorFile={directory / 'crash.log'}",
        f"-Djava.io.tmpdir={directory / 'tmp'}",
        "-Djava.awt.headless=true",
        *log4j_options(spec.version, "INFO"),
        *("-cp", classpath, _MAIN, str(directory / "server.properties")),
    ]


class BrokerProcess:
    """One node of a cluster, running or not."""

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
        """Where its records are."""
        return self._directory / "data"

    @property
    def log_file(self) -> Path:
        """Where its log is."""
        return self._directory / "broker.log"

    @property
    def pid(self) -> int | None:
        """Its process number while it runs."""
        process = self._find_process()
        return process.pid if process is not None and process.is_running() else None

    def is_running(self) -> bool:
        """Tell whether its process exists; a paused one does."""
        return self.pid is not None

    def prepare(self, properties: Mapping[str, str]) -> None:
        """Write its files and format its data directory if there is none."""
        (self._directory / "tmp").mkdir(parents=True, exist_ok=True)
        write_properties(self._directory / "server.properties", properties)
        if not self.data_directory.exists():
            self._format_data(self.data_directory)

    def launch(self) -> None:
        """Start it, unless it runs, and do not wait."""
        if self.is_running():
            return
        log_from = self.log_file.stat().st_size if self.log_file.exists() else 0
        self._process = self._reaper.launch(self._command(), log=self.log_file, cwd=self._directory)
        identity = self._process.identity
        record = {"pid": identity.pid, "began": identity.start_time, "log_from": log_from}
        fresh = self._process_file.with_suffix(".new")
        fresh.write_text(json.dumps(record), encoding="utf-8")
        fresh.rename(self._process_file)

    def stop(self) -> None:
        """Ask it to end in an orderly way; kill it if it does not."""
        self.terminate()
        if not self._wait_for_exit(_STOP_TIMEOUT_S):
            self.kill()

    def terminate(self) -> None:
        """Ask it to end, and do not wait. A paused one is woken, or it could not obey."""
        self._send_signal(signal.SIGTERM)
        self._send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._send_signal(signal.SIGKILL)
        if not self._wait_for_exit(_KILL_TIMEOUT_S):
            raise BrokerFailed(f"{self.name} cannot be killed (process {self.pid}): look at it.")

    def pause(self) -> None:
        """Freeze it: connections stay open, nothing is answered."""
        self._send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Thaw it."""
        self._send_signal(signal.SIGCONT)

    def wipe(self) -> None:
        """Kill it and give it an empty data directory, as if its disk had been replaced."""
        self.kill()
        shutil.rmtree(self.data_directory, ignore_errors=True)
        self._format_data(self.data_directory)

    def failed_to_bind(self) -> bool:
        """Tell whether it ended because somebody else had taken one of its ports."""
        return not self.is_running() and "Address already in use" in self._current_log_text()

    def failure(self, what: str) -> BrokerFailed:
        """Make an error that says what happened, with what the broker complained of."""
        lines = self._current_log_text().splitlines()
        complaints = [line for line in lines if _ERROR_LINE.match(line)]
        words = "\n".join((complaints or lines)[-_EXCERPT_LINES:]) or "(nothing)"
        return BrokerFailed(f"{self.name} {what}. From {self.log_file}:\n{words}")

    def _current_log_text(self) -> str:
        """Return what it has said in its present or last life."""
        try:
            with self.log_file.open("rb") as file:
                file.seek(self._process_record().get("log_from", 0))
                return file.read().decode(errors="replace")
        except FileNotFoundError:
            return ""

    def _process_record(self) -> dict[str, Any]:
        """Return what is written down about its newest process."""
        try:
            record: dict[str, Any] = json.loads(self._process_file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        return record

    @property
    def _process_file(self) -> Path:
        return self._directory / "process.json"

    def _find_process(self) -> Process | None:
        """Return its newest process, be it our child or one that another program started."""
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
