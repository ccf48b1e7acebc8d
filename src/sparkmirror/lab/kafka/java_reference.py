"""Runs Java MirrorMaker 2 and Java Connect workers as child processes.

Tests and benchmarks compare sparkmirror with them.

    with JavaReference.start_mirror_maker({"clusters": "A, B", ...}) as java:
        java.wait_for_line(r"replicating \\d+ topic-partitions", 60)

Each process has its own directory with its properties file and its log. A ProcessReaper ends the
process and removes the directory, also if this process is killed.
"""

from __future__ import annotations

import http.client
import re
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from sparkmirror.errors import LabError
from sparkmirror.lab.kafka.jar_cache import DEFAULT_VERSION, JarCache
from sparkmirror.lab.kafka.jvm_options import JvmOptions
from sparkmirror.lab.kafka.tool_runner import KafkaToolRunner
from sparkmirror.lab.processes.process_identity import Process
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from sparkmirror.lab.properties_file import write_properties

START_TIMEOUT_S = 120.0
_POLL_INTERVAL_S = 0.1
_REQUEST_TIMEOUT_S = 5.0
_STOP_TIMEOUT_S = 30.0
_STARTED_LINE = r"Kafka MirrorMaker started"
_LISTENING_LINE = r"REST server listening at (http://\S+?)/?,"


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaReferenceOptions:
    """Options of a Java process. By default only the heap and the log level are set."""

    version: str = DEFAULT_VERSION
    jvm: JvmOptions = field(
        default_factory=lambda: JvmOptions(heap_mb=512, log_level="INFO", fast_start=False)
    )
    jars: JarCache = field(default_factory=JarCache)
    start_timeout_s: float = START_TIMEOUT_S


class JavaReference:
    """One Java process that runs until `stop`."""

    def __init__(self, name: str, directory: Path, reaper: ProcessReaper, process: Process) -> None:
        self.name = name
        self.directory = directory
        self._reaper = reaper
        self._process = process

    @classmethod
    def start_mirror_maker(
        cls,
        properties: Mapping[str, str],
        clusters: Sequence[str] = (),
        setup: JavaReferenceOptions | None = None,
    ) -> Self:
        """Start MirrorMaker 2 in dedicated mode; return after it has logged its start.

        `clusters` are the target clusters of this node; without them it works for all clusters.
        """
        setup = setup or JavaReferenceOptions()
        arguments = ["--clusters", *clusters] if clusters else []
        java = cls._launch("connect-mirror-maker", properties, arguments, setup)
        with java._kill_on_failure():
            java.wait_for_line(_STARTED_LINE, setup.start_timeout_s)
        return java

    @classmethod
    def start_connect_worker(
        cls, properties: Mapping[str, str], setup: JavaReferenceOptions | None = None
    ) -> Self:
        """Start a distributed Connect worker; return when its REST API answers at `rest_url`.

        Without `listeners` in the properties it binds a free port of the loopback address.
        """
        setup = setup or JavaReferenceOptions()
        worker_properties = {"listeners": "http://127.0.0.1:0", **properties}
        java = cls._launch("connect-distributed", worker_properties, [], setup)
        with java._kill_on_failure():
            deadline = time.monotonic() + setup.start_timeout_s
            java.wait_for_line(_LISTENING_LINE, setup.start_timeout_s)
            java._wait_for_response("/connectors", deadline)
        return java

    @classmethod
    def _launch(
        cls,
        name: str,
        properties: Mapping[str, str],
        arguments: Sequence[str],
        setup: JavaReferenceOptions,
    ) -> Self:
        tools = KafkaToolRunner(setup.version, setup.jars, jvm=setup.jvm)
        reaper = ProcessReaper.start()
        try:
            directory = Path(tempfile.mkdtemp(prefix="sparkmirror-java-"))
            reaper.remove_on_exit(directory)
            file = write_properties(directory / f"{name}.properties", properties)
            command = tools.command(name, [str(file), *arguments])
            process = reaper.launch(command, log=directory / "log", cwd=directory)
        except BaseException:
            reaper.close()
            raise
        return cls(name, directory, reaper, process)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def log_file(self) -> Path:
        """The file with its output."""
        return self.directory / "log"

    @property
    def rest_url(self) -> str:
        """The URL of its REST API. Raises LabError for a dedicated MirrorMaker without one."""
        return self.wait_for_line(_LISTENING_LINE, 0)[1]

    def is_running(self) -> bool:
        """Return whether the process runs."""
        return self._process.is_running()

    def wait_for_line(self, pattern: str, timeout_s: float) -> re.Match[str]:
        """Wait until the log matches `pattern`; return the first match.

        Blocks. Raises LabError if the process exits or the time is over.
        """
        wanted = re.compile(pattern)
        deadline = time.monotonic() + timeout_s
        while True:
            running = self.is_running()  # before the read, so that the last lines are read
            found = wanted.search(self.log_file.read_text(encoding="utf-8", errors="replace"))
            if found:
                return found
            if not running:
                raise LabError(f"{self.name} has ended. {self._log_excerpt()}")
            if time.monotonic() >= deadline:
                raise LabError(
                    f"{self.name} did not log {pattern!r} within {timeout_s:g} s."
                    f" {self._log_excerpt()}"
                )
            time.sleep(_POLL_INTERVAL_S)

    def stop(self, timeout_s: float = _STOP_TIMEOUT_S) -> bool:
        """Send SIGTERM, and kill the process after the timeout; return whether it exited before."""
        self._process.send_signal(signal.SIGTERM)
        ended = self._process.wait_for_exit(timeout_s)
        if not ended:
            self.kill()
        return ended

    def kill(self) -> None:
        """Kill the process, as a crash would."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait_for_exit(_STOP_TIMEOUT_S)

    def close(self) -> None:
        """Stop the process and remove its directory."""
        self.stop()
        self._reaper.close()

    def _wait_for_response(self, path: str, deadline: float) -> None:
        """Wait until a GET succeeds: a worker listens before it has joined its group."""
        address = urlsplit(self.rest_url).netloc
        while not _responds(address, path):
            if not self.is_running() or time.monotonic() >= deadline:
                raise LabError(f"{self.name} does not answer GET {path}. {self._log_excerpt()}")
            time.sleep(_POLL_INTERVAL_S)

    def _log_excerpt(self) -> str:
        lines = self.log_file.read_text(encoding="utf-8", errors="replace").splitlines()
        errors = [
            line for line in lines if re.search(r"^(?!\s+at ).*(ERROR|FATAL|Exception)", line)
        ]
        return "Its last words: " + "\n".join((errors or lines or ["none"])[-5:])

    @contextmanager
    def _kill_on_failure(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.kill()
            self._reaper.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _responds(address: str, path: str) -> bool:
    connection = http.client.HTTPConnection(address, timeout=_REQUEST_TIMEOUT_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
