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
from sparkmirror.lab.guard import Guard
from sparkmirror.lab.jvm import log_options
from sparkmirror.lab.process import Identity, Process
from sparkmirror.lab.propertyfile import write_properties
from sparkmirror.lab.spec import ClusterSpec

_MAIN = "kafka.Kafka"
_LAST_LINES = 12
# Log lines of grave levels, and exceptions without the frames of their traces.
_COMPLAINT = re.compile(r"\[[^]]*\] (ERROR|FATAL) |(?!\s+at )\S.*(Exception|Error)\b")
_STOP_S = 30.0
_DEATH_S = 10.0
_QUICK = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# What Kafka's own start script chooses.
_THOROUGH = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)


def java_command(java: Path, classpath: str, spec: ClusterSpec, directory: Path) -> list[str]:
    """Return the command that runs one broker of a cluster in its directory."""
    return [
        str(java),
        f"-Xmx{spec.heap}",
        "-Xms64m",
        *(_QUICK if spec.fast_start else _THOROUGH),
        "-XX:-UsePerfData",
        "-XX:+ExitOnOutOfMemoryError",
        f"-XX:ErrorFile={directory / 'crash.log'}",
        f"-Djava.io.tmpdir={directory / 'tmp'}",
        "-Djava.awt.headless=true",
        *log_options(spec.version, "INFO"),
        *("-cp", classpath, _MAIN, str(directory / "server.properties")),
    ]


class Broker:
    """One node of a cluster, running or not."""

    def __init__(
        self,
        name: str,
        directory: Path,
        *,
        command: Callable[[], list[str]],
        format_data: Callable[[Path], None],
        guard: Guard,
    ) -> None:
        self.name = name
        self._directory = directory
        self._command = command
        self._guard = guard
        self._format_data = format_data
        self._process: Process | None = None

    @property
    def data(self) -> Path:
        """Where its records are."""
        return self._directory / "data"

    @property
    def log(self) -> Path:
        """Where its log is."""
        return self._directory / "broker.log"

    @property
    def pid(self) -> int | None:
        """Its process number while it runs."""
        process = self._find_process()
        return process.pid if process is not None and process.runs() else None

    def runs(self) -> bool:
        """Tell whether its process exists; a paused one does."""
        return self.pid is not None

    def prepare(self, properties: Mapping[str, str]) -> None:
        """Write its files and format its data directory if there is none."""
        (self._directory / "tmp").mkdir(parents=True, exist_ok=True)
        write_properties(self._directory / "server.properties", properties)
        if not self.data.exists():
            self._format_data(self.data)

    def launch(self) -> None:
        """Start it, unless it runs, and do not wait."""
        if self.runs():
            return
        log_from = self.log.stat().st_size if self.log.exists() else 0
        self._process = self._guard.launch(self._command(), log=self.log, cwd=self._directory)
        identity = self._process.identity
        record = {"pid": identity.pid, "began": identity.began, "log_from": log_from}
        fresh = self._process_file.with_suffix(".new")
        fresh.write_text(json.dumps(record), encoding="utf-8")
        fresh.rename(self._process_file)

    def stop(self) -> None:
        """Ask it to end in an orderly way; kill it if it does not."""
        self.ask_to_end()
        if not self._ended_within(_STOP_S):
            self.kill()

    def ask_to_end(self) -> None:
        """Ask it to end, and do not wait. A paused one is woken, or it could not obey."""
        self._send(signal.SIGTERM)
        self._send(signal.SIGCONT)

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._send(signal.SIGKILL)
        if not self._ended_within(_DEATH_S):
            raise BrokerFailed(f"{self.name} cannot be killed (process {self.pid}): look at it.")

    def pause(self) -> None:
        """Freeze it: connections stay open, nothing is answered."""
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        """Thaw it."""
        self._send(signal.SIGCONT)

    def wipe(self) -> None:
        """Kill it and give it an empty data directory, as if its disk had been replaced."""
        self.kill()
        shutil.rmtree(self.data, ignore_errors=True)
        self._format_data(self.data)

    def lost_its_port(self) -> bool:
        """Tell whether it ended because somebody else had taken one of its ports."""
        return not self.runs() and "Address already in use" in self._words()

    def failure(self, what: str) -> BrokerFailed:
        """Make an error that says what happened, with what the broker complained of."""
        lines = self._words().splitlines()
        complaints = [line for line in lines if _COMPLAINT.match(line)]
        words = "\n".join((complaints or lines)[-_LAST_LINES:]) or "(nothing)"
        return BrokerFailed(f"{self.name} {what}. From {self.log}:\n{words}")

    def _words(self) -> str:
        """Return what it has said in its present or last life."""
        try:
            with self.log.open("rb") as file:
                file.seek(self._record().get("log_from", 0))
                return file.read().decode(errors="replace")
        except FileNotFoundError:
            return ""

    def _record(self) -> dict[str, Any]:
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
        record = self._record()
        if not record:
            return None
        identity = Identity(record["pid"], record["began"])
        if self._process is None or self._process.identity != identity:
            self._process = Process(identity)
        return self._process

    def _send(self, number: signal.Signals) -> None:
        process = self._find_process()
        if process is not None:
            process.send(number)

    def _ended_within(self, seconds: float) -> bool:
        process = self._find_process()
        if process is None:
            return True
        ended = process.ended_within(seconds)
        if ended:
            self._guard.forget(process)
        return ended
