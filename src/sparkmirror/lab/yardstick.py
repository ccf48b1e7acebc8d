"""The original: Kafka's own MirrorMaker 2 and Connect worker, as children of ours.

Tests compare sparkmirror with them and benchmarks measure against them.

    with Yardstick.mirror_maker({"clusters": "A, B", ...}) as java:
        java.wait_for_line(r"replicating \\d+ topic-partitions", 60)

Each lives in a private directory with its properties file and its log, under a guard that clears
both away however this process ends. Knows programs and files, nothing about connectors.
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
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from sparkmirror.errors import LabError
from sparkmirror.lab.guard import Guard
from sparkmirror.lab.jars import DEFAULT_VERSION, Jars
from sparkmirror.lab.jvm import Jvm
from sparkmirror.lab.process import Process
from sparkmirror.lab.propertyfile import write_properties
from sparkmirror.lab.tools import Tools

START_S = 120.0
_POLL_S = 0.1
_ANSWER_S = 5.0
_STOP_S = 30.0
_STARTED = r"Kafka MirrorMaker started"
_LISTENING = r"REST server listening at (http://\S+?)/?,"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """How a yardstick is started. The default JVM is the program's own choice but for its heap."""

    version: str = DEFAULT_VERSION
    jvm: Jvm = field(default_factory=lambda: Jvm(heap_mb=512, log_level="INFO", quick=False))
    jars: Jars = field(default_factory=Jars)
    start_s: float = START_S


class Yardstick:
    """One Java program that runs until it is stopped."""

    def __init__(self, name: str, directory: Path, guard: Guard, process: Process) -> None:
        self.name = name
        self.directory = directory
        self._guard = guard
        self._process = process

    @classmethod
    def mirror_maker(
        cls,
        properties: Mapping[str, str],
        clusters: Sequence[str] = (),
        setup: Setup | None = None,
    ) -> Self:
        """Start MirrorMaker 2 in dedicated mode; returns when it says that it has started.

        `clusters` are the target clusters this node works for; all of them if none is named.
        """
        setup = setup or Setup()
        only = ["--clusters", *clusters] if clusters else []
        java = cls._launch("connect-mirror-maker", properties, only, setup)
        with java._stopped_on_failure():
            java.wait_for_line(_STARTED, setup.start_s)
        return java

    @classmethod
    def connect_worker(cls, properties: Mapping[str, str], setup: Setup | None = None) -> Self:
        """Start a distributed Connect worker; returns when its REST API answers at `url`.

        Without `listeners` among the properties it takes a free port of the loopback address.
        """
        setup = setup or Setup()
        chosen = {"listeners": "http://127.0.0.1:0", **properties}
        java = cls._launch("connect-distributed", chosen, [], setup)
        with java._stopped_on_failure():
            deadline = time.monotonic() + setup.start_s
            java.wait_for_line(_LISTENING, setup.start_s)
            java._wait_for_answer("/connectors", deadline)
        return java

    @classmethod
    def _launch(
        cls, name: str, properties: Mapping[str, str], arguments: Sequence[str], setup: Setup
    ) -> Self:
        tools = Tools(setup.version, setup.jars, jvm=setup.jvm)
        guard = Guard.watch()
        try:
            directory = Path(tempfile.mkdtemp(prefix="sparkmirror-java-"))
            guard.remove_at_end(directory)
            file = write_properties(directory / f"{name}.properties", properties)
            command = tools.command(name, [str(file), *arguments])
            process = guard.launch(command, log=directory / "log", cwd=directory)
        except BaseException:
            guard.close()
            raise
        return cls(name, directory, guard, process)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def log(self) -> Path:
        """Everything it has printed."""
        return self.directory / "log"

    @property
    def url(self) -> str:
        """Where its REST API listens; a dedicated MirrorMaker has one only if told so."""
        return self.wait_for_line(_LISTENING, 0)[1]

    def runs(self) -> bool:
        """Tell whether it still runs."""
        return self._process.runs()

    def wait_for_line(self, pattern: str, timeout_s: float) -> re.Match[str]:
        """Wait until the log holds a line with `pattern`; returns the first match."""
        wanted = re.compile(pattern)
        deadline = time.monotonic() + timeout_s
        while True:
            alive = self.runs()  # asked before reading, so that last words are read
            found = wanted.search(self.log.read_text(encoding="utf-8", errors="replace"))
            if found:
                return found
            if not alive:
                raise LabError(f"{self.name} has ended. {self._last_words()}")
            if time.monotonic() >= deadline:
                raise LabError(
                    f"{self.name} did not log {pattern!r} within {timeout_s:g} s."
                    f" {self._last_words()}"
                )
            time.sleep(_POLL_S)

    def stop(self, timeout_s: float = _STOP_S) -> bool:
        """Ask it to end, kill it if it does not; tells whether it ended by itself."""
        self._process.send(signal.SIGTERM)
        ended = self._process.ended_within(timeout_s)
        if not ended:
            self.kill()
        return ended

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._process.send(signal.SIGKILL)
        self._process.ended_within(_STOP_S)

    def close(self) -> None:
        """Stop it and remove its directory."""
        self.stop()
        self._guard.close()

    def _wait_for_answer(self, path: str, deadline: float) -> None:
        """Wait until a GET succeeds: a worker listens long before it has joined its group."""
        address = urlsplit(self.url).netloc
        while not _answers(address, path):
            if not self.runs() or time.monotonic() >= deadline:
                raise LabError(f"{self.name} does not answer GET {path}. {self._last_words()}")
            time.sleep(_POLL_S)

    def _last_words(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        complaints = [
            line for line in lines if re.search(r"^(?!\s+at ).*(ERROR|FATAL|Exception)", line)
        ]
        return "Its last words: " + "\n".join((complaints or lines or ["none"])[-5:])

    @contextmanager
    def _stopped_on_failure(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.kill()
            self._guard.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _answers(address: str, path: str) -> bool:
    connection = http.client.HTTPConnection(address, timeout=_ANSWER_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
