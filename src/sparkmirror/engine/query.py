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

from sparkmirror.engine.home import MINIMUM_JAVA
from sparkmirror.engine.landing import Landing
from sparkmirror.engine.receipts import ARRAY, COLUMNS, KEPT_BY, NAMES, Row
from sparkmirror.engine.source import MirrorSource
from sparkmirror.errors import DriverLost
from sparkmirror.wire.backoff import Backoff

log = logging.getLogger(__name__)

SECRET = re.compile(r"(?i)secret|password|token|access[.]?key|credential")
"""Settings that are nobody's business; Spark itself hides much the same."""
TRACE = "Traceback (most recent call last):"


class Query:
    """One flow as a streaming query. Blocks; one thread opens, starts and waits.

    Whatever Spark raises comes out as DriverLost.
    """

    def __init__(self, settings: dict[str, str]) -> None:
        """Start Spark with these settings.

        What the JVM is started with can be read by everybody on this computer, so it gets to know
        secrets among the settings only when it runs.
        """
        shown = {key: value for key, value in settings.items() if not SECRET.search(key)}
        with _told(f"Spark (it needs Java {MINIMUM_JAVA} or newer) did not start"):
            gateway = _start_jvm(_conf(shown))
            self._jvm: subprocess.Popen[bytes] = gateway.proc
            context = SparkContext(conf=_conf(settings), gateway=gateway)
            self._session = SparkSession.builder.getOrCreate()
            self.application_id = context.applicationId
            self.web_ui = context.uiWebUrl or ""
            self._settings = dict(context.getConf().getAll())
        self._stream: StreamingQuery | None = None
        self._landing: Landing | None = None
        self._is_hurried = threading.Event()
        self._is_ending = False
        self._backoff = Backoff(first_s=1.0, longest_s=60.0)
        self._trouble = ""
        """Why the last epoch did not end well, if it did not."""

    def slots(self) -> int:
        """How many tasks can run at once, as far as Spark knows now."""
        with _told("Spark does not answer"):
            return self._session.sparkContext.defaultParallelism

    def setting(self, key: str) -> str:
        """A setting as Spark has made it."""
        return self._settings.get(key, "")

    def prepare(self, options: dict[str, str]) -> DataFrame:
        """Make the source known and plan with it."""
        with _told("Spark does not take our data source"):
            self._session.dataSource.register(MirrorSource)
            return self._session.readStream.format(MirrorSource.name()).options(**options).load()

    def start(
        self,
        rows: DataFrame,
        name: str,
        receipts: str,
        checkpoint: Path,
        close_books: Callable[[bool], list[Row]],
    ) -> None:
        """Run one epoch after the other, from now on.

        After each one `close_books` is told whether its rows have come, and says what is missing.
        """
        path = f"{receipts.rstrip('/')}/run={self.application_id}"
        with _told("the query did not start"):
            landing = self._landing = Landing(partial(self._land_rows, path))
            landing.start()
            self._stream = (
                rows.writeStream.queryName(name)
                .option("checkpointLocation", checkpoint.as_uri())
                .foreachBatch(lambda epoch, _number: self._run_epoch(epoch, landing, close_books))
                .start()
            )

    def wait(self, seconds: int) -> bool:
        """Wait for the end of the stream; tell whether it came."""
        assert self._stream is not None
        with _told("Spark gave up"):
            return bool(self._stream.awaitTermination(seconds))

    def hurry(self) -> None:
        """Wait for nothing any more: the end is near."""
        self._is_hurried.set()
        if self._landing is not None:
            self._landing.hurry()

    @property
    def unwritten(self) -> int:
        """How many receipts of epochs that are over are not written yet."""
        return self._landing.waiting if self._landing else 0

    @property
    def trouble(self) -> str:
        """What did not go well lately, if anything."""
        return self._trouble or (self._landing.trouble if self._landing else "")

    def end_stream(self) -> None:
        """End the stream, with whatever is under way in it."""
        self._is_ending = True
        self.hurry()
        if self._stream is not None:
            with _told("the query did not end"):
                self._stream.stop()

    def close(self) -> None:
        """End Spark, and see the JVM off."""
        if self._landing is not None:
            self._landing.close()
        with _told("Spark did not end"):
            self._session.stop()
        self._jvm.communicate()  # the end of its input is what it waits for

    def _run_epoch(
        self, epoch: DataFrame, landing: Landing, close_books: Callable[[bool], list[Row]]
    ) -> None:
        """Run the tasks of an epoch and hand on their receipts, and what they owe.

        An epoch that fails is no reason to end: what was copied is copied, and the next one has new
        attempts. Only in a hurry it must not be.
        """
        handed_in: list[Row] = []
        failure = _failure_of(lambda: handed_in.extend(tuple(row) for row in epoch.collect()))
        landing.add([*handed_in, *close_books(failure is None)])
        if failure is None:
            self._trouble = ""
            self._backoff.reset()
        elif not self._is_ending:
            log.error("An epoch did not end well", exc_info=failure)
            self._trouble = f"the last epoch did not end well: {_sentence(failure)}"
            self._is_hurried.wait(self._backoff.pause_s())

    def _land_rows(self, path: str, rows: Sequence[Row]) -> None:
        """Write receipts, by the JVM alone: rows of Python would have it start workers."""
        said = json.dumps([dict(zip(NAMES, row, strict=True)) for row in rows])
        with _told("Spark does not write them"):
            told = functions.from_json(functions.lit(said), ARRAY)
            receipts = self._session.range(0, 1, 1, 1).select(functions.inline(told))
            _land(receipts.selectExpr(*COLUMNS), path)


_start_jvm: Callable[[SparkConf], Any] = launch_gateway
"""Spark gives this function no types."""


def _conf(settings: dict[str, str]) -> SparkConf:
    return SparkConf(loadDefaults=False).setAll(list(settings.items()))


def _land(rows: DataFrame, path: str) -> None:
    rows.write.mode("append").partitionBy(KEPT_BY).parquet(path)


def _failure_of(work: Callable[[], None]) -> Exception | None:
    """Do something with Spark; returns what it raised, if it did."""
    try:
        work()
    except (PySparkException, Py4JError) as error:
        return error
    return None


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Turn Spark's errors into ours."""
    try:
        yield
    except Py4JJavaError as error:
        raise DriverLost(f"{what}: {_sentence(error)}") from error
    except (Py4JError, OSError) as error:
        raise DriverLost(f"{what}: its JVM has died") from error
    except PySparkException as error:
        raise DriverLost(f"{what}: {_sentence(error)}") from error


def _sentence(error: Exception) -> str:
    """What happened, in a line: where Python code has failed, what it said."""
    told = error.java_exception if isinstance(error, Py4JJavaError) else error
    lines = str(told).strip().splitlines() or [type(error).__name__]
    traced = [number for number, line in enumerate(lines) if TRACE in line]
    if traced:
        ends = [line for line in lines[traced[-1] + 1 :] if line.strip() and not line[0].isspace()]
        lines = ends or lines
    return lines[0].strip()
