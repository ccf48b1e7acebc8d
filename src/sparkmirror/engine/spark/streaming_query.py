"""The query: Spark's session, and the stream of epochs whose rows are added to the receipts.

The only module of the driver process that calls Spark, and the place where Spark's errors become
ours. The checkpoint is made anew for each run and thrown away with it: it holds epoch numbers, and
where the partitions stand is known elsewhere. Receipts of a run go to a directory of their own,
because neither a file sink's journal nor a committer of files bears a second writer beside or after
it; together the directories are one table.
"""

from __future__ import annotations

import json
import logging
import re
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import DataFrame, SparkSession, functions
from pyspark.sql.streaming.query import StreamingQuery

from sparkmirror.backoff import Backoff
from sparkmirror.engine.spark.data_source import MirrorDataSource
from sparkmirror.engine.spark.receipt_rows import (
    COLUMN_NAMES,
    PARTITION_COLUMN,
    RECEIPT_ARRAY_TYPE,
    TABLE_COLUMNS,
    ReceiptRow,
)
from sparkmirror.engine.spark.receipt_writer import ReceiptWriter
from sparkmirror.errors import DriverLost
from sparkmirror.java.java_runtime import MINIMUM_MAJOR

log = logging.getLogger(__name__)

SECRET_KEYS = re.compile(r"(?i)secret|password|token|access[.]?key|credential")
"""Settings that are nobody's business; Spark itself hides much the same."""
TRACEBACK_HEADER = "Traceback (most recent call last):"


class MirrorStreamingQuery:
    """One flow as a streaming query. Blocks; one thread opens, starts and waits.

    Whatever Spark raises comes out as DriverLost.
    """

    def __init__(self, settings: dict[str, str]) -> None:
        """Start Spark with these settings.

        What the JVM is started with can be read by everybody on this computer, so it gets to know
        secrets among the settings only when it runs.
        """
        shown = {key: value for key, value in settings.items() if not SECRET_KEYS.search(key)}
        with _translate_errors(f"Spark (it needs Java {MINIMUM_MAJOR} or newer) did not start"):
            gateway = _start_jvm(_to_spark_conf(shown))
            self._jvm: subprocess.Popen[bytes] = gateway.proc
            context = SparkContext(conf=_to_spark_conf(settings), gateway=gateway)
            self._session = SparkSession.builder.getOrCreate()
            self.application_id = context.applicationId
            self.web_ui = context.uiWebUrl or ""
            self._effective_conf = dict(context.getConf().getAll())
        self._streaming_query: StreamingQuery | None = None
        self._receipt_writer: ReceiptWriter | None = None
        self._backoff_skipped = threading.Event()
        self._stopping = False
        self._backoff = Backoff(initial_s=1.0, max_s=60.0)
        self._problem = ""
        """Why the last epoch did not end well, if it did not."""

    def slots(self) -> int:
        """How many tasks can run at once, as far as Spark knows now."""
        with _translate_errors("Spark does not answer"):
            return self._session.sparkContext.defaultParallelism

    def conf_value(self, key: str) -> str:
        """A setting as Spark has made it."""
        return self._effective_conf.get(key, "")

    def load_stream(self, options: dict[str, str]) -> DataFrame:
        """Make the source known and plan with it."""
        with _translate_errors("Spark does not take our data source"):
            self._session.dataSource.register(MirrorDataSource)
            return (
                self._session.readStream.format(MirrorDataSource.name()).options(**options).load()
            )

    def start(
        self,
        rows: DataFrame,
        name: str,
        receipts: str,
        checkpoint: Path,
        close_books: Callable[[bool], list[ReceiptRow]],
    ) -> None:
        """Run one epoch after the other, from now on.

        After each one `close_books` is told whether its rows have come, and says what is missing.
        """
        path = f"{receipts.rstrip('/')}/run={self.application_id}"
        with _translate_errors("the query did not start"):
            landing = self._receipt_writer = ReceiptWriter(partial(self._write_receipts, path))
            landing.start()
            self._streaming_query = (
                rows.writeStream.queryName(name)
                .option("checkpointLocation", checkpoint.as_uri())
                .foreachBatch(lambda epoch, _number: self._run_epoch(epoch, landing, close_books))
                .start()
            )

    def await_termination(self, seconds: int) -> bool:
        """Wait for the end of the stream; tell whether it came."""
        assert self._streaming_query is not None
        with _translate_errors("Spark gave up"):
            return bool(self._streaming_query.awaitTermination(seconds))

    def skip_backoff(self) -> None:
        """Wait for nothing any more: the end is near."""
        self._backoff_skipped.set()
        if self._receipt_writer is not None:
            self._receipt_writer.retry_now()

    @property
    def unwritten_receipts(self) -> int:
        """How many receipts of epochs that are over are not written yet."""
        return self._receipt_writer.pending_rows if self._receipt_writer else 0

    @property
    def problem(self) -> str:
        """What did not go well lately, if anything."""
        return self._problem or (self._receipt_writer.problem if self._receipt_writer else "")

    def stop_stream(self) -> None:
        """End the stream, with whatever is under way in it."""
        self._stopping = True
        self.skip_backoff()
        if self._streaming_query is not None:
            with _translate_errors("the query did not end"):
                self._streaming_query.stop()

    def close(self) -> None:
        """End Spark, and see the JVM off."""
        if self._receipt_writer is not None:
            self._receipt_writer.close()
        with _translate_errors("Spark did not end"):
            self._session.stop()
        self._jvm.communicate()  # the end of its input is what it waits for

    def _run_epoch(
        self,
        epoch: DataFrame,
        landing: ReceiptWriter,
        close_books: Callable[[bool], list[ReceiptRow]],
    ) -> None:
        """Run the tasks of an epoch and hand on their receipts, and what they owe.

        An epoch that fails is no reason to end: what was copied is copied, and the next one has new
        attempts. Only in a hurry it must not be.
        """
        handed_in: list[ReceiptRow] = []
        failure = _spark_error_of(lambda: handed_in.extend(tuple(row) for row in epoch.collect()))
        landing.add([*handed_in, *close_books(failure is None)])
        if failure is None:
            self._problem = ""
            self._backoff.reset()
        elif not self._stopping:
            log.error("An epoch did not end well", exc_info=failure)
            self._problem = f"the last epoch did not end well: {_error_summary(failure)}"
            self._backoff_skipped.wait(self._backoff.next_delay_s())

    def _write_receipts(self, path: str, rows: Sequence[ReceiptRow]) -> None:
        """Write receipts, by the JVM alone: rows of Python would have it start workers."""
        said = json.dumps([dict(zip(COLUMN_NAMES, row, strict=True)) for row in rows])
        with _translate_errors("Spark does not write them"):
            told = functions.from_json(functions.lit(said), RECEIPT_ARRAY_TYPE)
            receipts = self._session.range(0, 1, 1, 1).select(functions.inline(told))
            _append_parquet(receipts.selectExpr(*TABLE_COLUMNS), path)


_start_jvm: Callable[[SparkConf], Any] = launch_gateway
"""Spark gives this function no types."""


def _to_spark_conf(settings: dict[str, str]) -> SparkConf:
    return SparkConf(loadDefaults=False).setAll(list(settings.items()))


def _append_parquet(rows: DataFrame, path: str) -> None:
    rows.write.mode("append").partitionBy(PARTITION_COLUMN).parquet(path)


def _spark_error_of(work: Callable[[], None]) -> Exception | None:
    """Do something with Spark; returns what it raised, if it did."""
    try:
        work()
    except (PySparkException, Py4JError) as error:
        return error
    return None


@contextmanager
def _translate_errors(what: str) -> Iterator[None]:
    """Turn Spark's errors into ours."""
    try:
        yield
    except Py4JJavaError as error:
        raise DriverLost(f"{what}: {_error_summary(error)}") from error
    except (Py4JError, OSError) as error:
        raise DriverLost(f"{what}: its JVM has died") from error
    except PySparkException as error:
        raise DriverLost(f"{what}: {_error_summary(error)}") from error


def _error_summary(error: Exception) -> str:
    """What happened, in a line: where Python code has failed, what it said."""
    told = error.java_exception if isinstance(error, Py4JJavaError) else error
    lines = str(told).strip().splitlines() or [type(error).__name__]
    traced = [number for number, line in enumerate(lines) if TRACEBACK_HEADER in line]
    if traced:
        ends = [line for line in lines[traced[-1] + 1 :] if line.strip() and not line[0].isspace()]
        lines = ends or lines
    return lines[0].strip()
