"""One Spark for many questions about queries (`engine.driver.queries.query_main`, `query_slot`)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from sparkmirror.engine.supervisor.query_process import MODULE
from sparkmirror.engine.supervisor.query_request import QueryAnswer, QueryRequest


class SparkAnswers:
    """Asks a process. One thread uses it."""

    def __init__(self, requests: IO[bytes], answers: IO[bytes], log: Path) -> None:
        self._requests, self._answers, self._log = requests, answers, log

    def __call__(self, request: QueryRequest) -> QueryAnswer:
        self._requests.write(request.to_line())
        self._requests.flush()
        line = self._answers.readline()
        assert line, self._log.read_text("utf-8", "replace")[-3000:]
        return QueryAnswer.from_line(line)

    def sql(self, query: str) -> QueryAnswer:
        """Ask whether a query can be used."""
        return self(QueryRequest(transforms={"sparkmirror.transform.sql": query}))


@contextmanager
def running_spark_answers(
    directory: Path, environ: Mapping[str, str], module: str = MODULE
) -> Iterator[SparkAnswers]:
    """Start the process of a module for the block."""
    log = directory / "spark.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=directory,
            env={**os.environ, **environ, "TMPDIR": str(directory)},
            start_new_session=True,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield SparkAnswers(process.stdin, process.stdout, log)
    finally:
        process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=60)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
