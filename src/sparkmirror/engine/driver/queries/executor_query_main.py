"""A local Spark on an executor: it makes views of queries, which the slot beside it evaluates.

    python -m sparkmirror.engine.driver.queries.executor_query_main
        input    one line for each ViewRequest; the process ends with its input
        output   one line for each ViewAnswer; everything else goes to standard error

A slot of a cluster starts it (`engine.spark.query.executor_spark`). It ends at once when the slot
has ended, also while it starts Spark, and when its JVM has ended. Its JVM never outlives it.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import BinaryIO, NoReturn

from sparkmirror.engine.driver.spark_process import jvm_starter, prepare_process
from sparkmirror.engine.spark.query.view_request import ViewAnswer, ViewRequest
from sparkmirror.engine.spark.streaming_query import MirrorStreamingQuery
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.errors import MirrorError
from sparkmirror.transforms.spark_query import spark_query

MASTER = "local[1]"
END_SIGNALS = (signal.SIGHUP, signal.SIGTERM)
"""Spark's Python daemon sends the first one to the whole group of its processes when it ends."""


@dataclass(slots=True)
class ExecutorQueries:
    """Answers requests in the main thread. Other threads wait for the end of input and JVM."""

    directory: Path
    """For temporary files; removed at the end."""
    spark: MirrorStreamingQuery | None = None

    def serve(self, requests: BinaryIO, answers: BinaryIO) -> NoReturn:
        """Answer until the input or the JVM ends. Exits the process."""
        waiting: SimpleQueue[ViewRequest] = SimpleQueue()
        threading.Thread(target=self._read, args=(requests, waiting), daemon=True).start()
        while True:
            answer = self._answer(waiting.get())
            answers.write(answer.to_line())
            answers.flush()
            if self.spark is None:
                self.end(1)

    def end(self, code: int) -> NoReturn:
        """End the JVM and this process, from any thread. The JVM has nothing to save."""
        if self.spark is not None:
            with suppress(ProcessLookupError):
                os.kill(self.spark.jvm_pid, signal.SIGKILL)
        shutil.rmtree(self.directory, ignore_errors=True)
        os._exit(code)

    def _read(self, requests: BinaryIO, waiting: SimpleQueue[ViewRequest]) -> None:
        for line in requests:
            waiting.put(ViewRequest.from_line(line))
        self.end(0)

    def _answer(self, request: ViewRequest) -> ViewAnswer:
        query = spark_query(request.transforms)
        assert query is not None, "the request has a query"
        try:
            if self.spark is None:
                self.spark = self._start(request)
            self.spark.register_query(query, request.chain)
        except MirrorError as error:
            return ViewAnswer(error=str(error))
        port, secret = self.spark.gateway
        return ViewAnswer(port=port, secret=secret)

    def _start(self, request: ViewRequest) -> MirrorStreamingQuery:
        """Start Spark. Raises DriverLost, and ConfigError without Java."""
        spec = DriverSpec(
            receipts="", log="", name="sparkmirror query", master=MASTER, conf=request.settings
        )
        process = prepare_process(spec, self.directory)
        spark = MirrorStreamingQuery(process.settings, jvm_starter(process, self.directory))
        threading.Thread(target=self._await_jvm_end, args=(spark,), daemon=True).start()
        return spark

    def _await_jvm_end(self, spark: MirrorStreamingQuery) -> None:
        spark.await_jvm_end()
        self.end(1)


def main() -> NoReturn:
    """Answer the requests on standard input. Exits the process."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    queries = ExecutorQueries(Path(tempfile.mkdtemp(prefix="sparkmirror-")))
    for number in END_SIGNALS:
        signal.signal(number, lambda *_: queries.end(0))
    queries.serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
