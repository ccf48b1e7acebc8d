"""The Spark that evaluates the queries of this Python process, on an executor of a cluster.

A slot of a cluster cannot reach the driver's JVM, and Python workers cannot load classes into the
executor's. So the first task with a query starts a process that has a local Spark with a JVM of its
own. All tasks of this process share it:

    slot ──stdin──▶ executor_query_main ──stdin──▶ JVM
     ▲  ◀──stdout──                                 │
     └────────────── py4j, files in memory ─────────┘

Each of them ends when its standard input does, so neither outlives the slot, however that ends.

No pyspark: the process loads it. A task waits for a shorter time than the driver waits for a word
of it. If Spark needs longer to start, the task fails with that reason, and its next attempts find
Spark started.
"""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sparkmirror.engine.gateway_process import GatewayAddress
from sparkmirror.engine.spark.query.view_request import ViewAnswer, ViewRequest
from sparkmirror.errors import DriverLost

log = logging.getLogger(__name__)

MODULE: Final = "sparkmirror.engine.driver.queries.executor_query_main"
WAIT_S: Final = 8.0
"""How long a task waits for an answer. The driver gives up a task that is silent for 10 seconds."""
TIMEOUT_S: Final = 120.0
"""A Spark that has not answered for so long is killed, and the next task starts another one."""
CLUSTER_VARIABLES: Final = ("SPARK_", "PYSPARK_", "HADOOP_", "YARN_", "PYTHON_WORKER_")
"""The beginnings of variables that say how Spark runs on the cluster."""


@dataclass(frozen=True, slots=True)
class Question:
    """A request that was sent, and its answer."""

    asked_at: float = field(default_factory=time.monotonic)
    answer: Future[ViewAnswer] = field(default_factory=Future)


class SparkProcess:
    """One process, and what was asked of it. Any thread may call it."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        """Start it; returns at once. It writes its log where this process does."""
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ
        )
        self._lock = threading.Lock()
        self._questions: dict[bytes, Question] = {}
        """Those that were not refused, by their line."""
        self._unanswered: deque[Question] = deque()
        self._is_over = False
        threading.Thread(target=self._read, name="query-process", daemon=True).start()

    @property
    def is_running(self) -> bool:
        """Whether it can be asked."""
        return not self._is_over

    def ask(self, request: ViewRequest) -> Question:
        """Send a request, unless it was sent before and not refused. Returns at once."""
        line = request.to_line()
        with self._lock:
            question = self._questions.get(line)
            if question is None:
                question = self._questions[line] = Question()
                if self._is_over:
                    question.answer.set_result(ViewAnswer(error="it has ended"))
                else:
                    self._unanswered.append(question)
                    self._send(line)
            return question

    def forget(self, request: ViewRequest) -> None:
        """Send the request again the next time."""
        with self._lock:
            self._questions.pop(request.to_line(), None)

    def kill(self) -> None:
        """End it, and its JVM."""
        self._process.kill()

    def _send(self, line: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except OSError:
            self._process.kill()  # it has ended; `_read` answers

    def _close(self) -> None:
        for file in (self._process.stdin, self._process.stdout):
            assert file is not None
            with suppress(OSError):
                file.close()

    def _read(self) -> None:
        """Take the answers until the process has ended."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._lock:
                question = self._unanswered.popleft()
            question.answer.set_result(ViewAnswer.from_line(line))
        code = self._process.wait()
        log.warning("The Spark for queries (process %d) has ended: %d", self._process.pid, code)
        with self._lock:
            self._is_over = True
            left = list(self._unanswered)
            self._close()
        for question in left:
            question.answer.set_result(ViewAnswer(error=f"it ended with code {code}"))


class ExecutorSpark:
    """Spark for the queries of this Python process. Any thread may call it."""

    def __init__(
        self,
        start: Callable[[], SparkProcess],
        *,
        wait_s: float = WAIT_S,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """`start` may raise DriverLost."""
        self._start = start
        self._wait_s = wait_s
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._process: SparkProcess | None = None

    def prepare(self, request: ViewRequest) -> None:
        """Have Spark start, and make the view; returns at once. Raises DriverLost."""
        self._running_process().ask(request)

    def await_view(self, request: ViewRequest) -> GatewayAddress:
        """Return the gateway to the JVM that has the view. Blocks.

        Raises DriverLost if there is no answer yet, or if it is an error.
        """
        process = self._running_process()
        question = process.ask(request)
        try:
            answer = question.answer.result(self._wait_s)
        except TimeoutError:
            raise self._late(process, question) from None
        if answer.error:
            process.forget(request)
            raise DriverLost(_sentence(f"failed: {answer.error}"))
        return answer.address

    def _running_process(self) -> SparkProcess:
        with self._lock:
            if self._process is None or not self._process.is_running:
                self._process = self._start()
            return self._process

    def _late(self, process: SparkProcess, question: Question) -> DriverLost:
        """What to say of a question without an answer. Kills Spark if it is asked for too long."""
        waited_s = time.monotonic() - question.asked_at
        if waited_s < self._timeout_s:
            what = f"has not answered for {waited_s:.0f} s; the next attempt waits for it again"
            return DriverLost(_sentence(what))
        process.kill()
        what = f"gave no answer within {waited_s:.0f} s; it is started again"
        log.warning("%s", _sentence(what))
        return DriverLost(_sentence(what))


def start_spark_process() -> SparkProcess:
    """Start the process of `executor_query_main`. Raises DriverLost if there is no pyspark."""
    if not has_installed_spark():
        raise DriverLost(
            _sentence(
                "cannot start: the Python environment of the executors has no pyspark with its"
                " jars; install sparkmirror[spark] there"
            )
        )
    return SparkProcess([sys.executable, "-P", "-m", MODULE], local_environ(os.environ))


def has_installed_spark() -> bool:
    """Whether the package pyspark is installed. Spark's own archive of it has no jars."""
    return any(Path(entry, "pyspark", "jars").is_dir() for entry in sys.path)


def local_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a local Spark of the installed pyspark, without the cluster's."""
    home = environ.get("SPARK_HOME", "")
    path = [
        entry
        for entry in environ.get("PYTHONPATH", "").split(os.pathsep)
        if entry and not _is_spark_path(entry, home)
    ]
    kept = {
        name: value
        for name, value in environ.items()
        if not name.startswith(CLUSTER_VARIABLES) and name != "PYTHONPATH"
    }
    return {**kept, **({"PYTHONPATH": os.pathsep.join(path)} if path else {})}


def _is_spark_path(entry: str, home: str) -> bool:
    """Whether an entry of PYTHONPATH is the cluster's own pyspark, or a jar."""
    path = Path(entry)
    is_archive = path.suffix == ".zip" and path.name.startswith(("pyspark", "py4j"))
    is_below_home = bool(home) and path.is_relative_to(home)
    return is_archive or is_below_home or path.suffix == ".jar"


def _sentence(what: str) -> str:
    return f"the Spark for queries on {socket.gethostname()} {what}"
