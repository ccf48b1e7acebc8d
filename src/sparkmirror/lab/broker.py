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
import shutil
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

from sparkmirror.errors import BrokerFailed
from sparkmirror.lab.guard import Guard
from sparkmirror.lab.jvm import log_options
from sparkmirror.lab.process import Identity, Process
from sparkmirror.lab.propertyfile import write_properties
from sparkmirror.lab.spec import ClusterSpec

_MAIN = "kafka.Kafka"
_LAST_LINES = 20
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
        command: list[str],
        guard: Guard,
        format_data: Callable[[Path], None],
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
        process = self._guard.launch(self._command, log=self.log, cwd=self._directory)
        self._process = process
        record = {"pid": process.pid, "began": process.identity.began}
        self._process_file.write_text(json.dumps(record), encoding="utf-8")

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
        shutil.rmtree(self.data)
        self._format_data(self.data)

    def lost_its_port(self) -> bool:
        """Tell whether it ended because somebody else had taken one of its ports."""
        return not self.runs() and any(
            "Address already in use" in line for line in self.last_lines()
        )

    def failure(self, what: str) -> BrokerFailed:
        """Make an error that says what happened, with the broker's last words."""
        words = "\n".join(self.last_lines()) or "(nothing)"
        return BrokerFailed(f"{self.name} {what}. The last lines of {self.log}:\n{words}")

    def last_lines(self) -> list[str]:
        """Return the end of its log."""
        try:
            text = self.log.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return []
        return text.splitlines()[-_LAST_LINES:]

    @property
    def _process_file(self) -> Path:
        return self._directory / "process.json"

    def _find_process(self) -> Process | None:
        """Return the process of this run, or of the run of another program before us."""
        if self._process is None and self._process_file.exists():
            record = json.loads(self._process_file.read_text(encoding="utf-8"))
            self._process = Process(Identity(record["pid"], record["began"]))
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
