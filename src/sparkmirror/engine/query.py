"""The query: Spark's session, and the stream of epochs whose rows are added to the receipts.

The only module of the driver process that calls Spark, and the place where Spark's errors become
ours. The checkpoint is made anew for each run and thrown away with it: it holds epoch numbers, and
where the partitions stand is known elsewhere. Receipts of a run go to a directory of their own,
because neither a file sink's journal nor a committer of files bears a second writer beside or after
it; together the directories are one table.
"""

from __future__ import annotations

import logging
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sparkmirror.engine.home import MINIMUM_JAVA
from sparkmirror.engine.receipts import COLUMNS, KEPT_BY, SCHEMA
from sparkmirror.engine.source import MirrorSource
from sparkmirror.errors import DriverLost
from sparkmirror.wire.backoff import Backoff

log = logging.getLogger(__name__)

TRACE = "Traceback (most recent call last):"


class Query:
    """One flow as a streaming query. Blocks; one thread opens, starts and waits.

    Whatever Spark raises comes out as DriverLost.
    """

    def __init__(self, settings: dict[str, str]) -> None:
        """Start Spark with these settings."""
        builder = SparkSession.builder
        for key, value in settings.items():
            builder = builder.config(key, value)
        with _told(f"Spark (it needs Java {MINIMUM_JAVA} or newer) did not start"):
            self._session = builder.getOrCreate()
            context = self._session.sparkContext
            self.application_id = context.applicationId
            self.web_ui = context.uiWebUrl or ""
            self._conf = dict(context.getConf().getAll())
        self._stream: StreamingQuery | None = None
        self._is_ending = False
        self._backoff = Backoff(first_s=1.0, longest_s=60.0)
        self.trouble = ""
        """Why the last epoch did not end well, if it did not."""

    def slots(self) -> int:
        """How many tasks can run at once, as far as Spark knows now."""
        with _told("Spark does not answer"):
            return self._session.sparkContext.defaultParallelism

    def setting(self, key: str) -> str:
        """A setting as Spark has made it."""
        return self._conf.get(key, "")

    def prepare(self, options: dict[str, str]) -> DataFrame:
        """Make the source known and plan with it."""
        with _told("Spark does not take our data source"):
            self._session.dataSource.register(MirrorSource)
            return self._session.readStream.format(MirrorSource.name()).options(**options).load()

    def start(self, rows: DataFrame, name: str, receipts: str, checkpoint: Path) -> None:
        """Run one epoch after the other, from now on."""
        path = f"{receipts.rstrip('/')}/run={self.application_id}"
        with _told("the query did not start"):
            self._stream = (
                rows.selectExpr(*COLUMNS)
                .writeStream.queryName(name)
                .option("checkpointLocation", checkpoint.as_uri())
                .foreachBatch(lambda epoch, _number: self._run_epoch(epoch, path))
                .start()
            )

    def rehearse_landing(self, directory: Path) -> None:
        """Land one empty receipt elsewhere. Spark is slow the first time, and then time matters."""
        with _told("an empty receipt cannot be written"):
            row = self._session.range(1).selectExpr(f"from_json('{_EMPTY}', '{SCHEMA}') AS receipt")
            _land(row.select("receipt.*").selectExpr(*COLUMNS), directory.as_uri())

    def wait(self, seconds: int) -> bool:
        """Wait for the end of the stream; tell whether it came."""
        assert self._stream is not None
        with _told("Spark gave up"):
            return bool(self._stream.awaitTermination(seconds))

    def end_stream(self) -> None:
        """End the stream, with whatever is under way in it."""
        self._is_ending = True
        if self._stream is not None:
            with _told("the query did not end"):
                self._stream.stop()

    def close(self) -> None:
        """End Spark, and see the JVM off."""
        gateway = self._session.sparkContext._gateway
        with _told("Spark did not end"):
            self._session.stop()
        jvm = vars(gateway).get("proc") if gateway else None
        if isinstance(jvm, subprocess.Popen):
            jvm.communicate()  # the end of its input is what it waits for

    def _run_epoch(self, epoch: DataFrame, path: str) -> None:
        """Run the tasks of an epoch and keep their receipts.

        An epoch that fails is no reason to end: what was copied is copied, and the next one has new
        attempts. Only in a hurry it must not be.
        """
        try:
            _land(epoch, path)
        except (PySparkException, Py4JError) as error:
            if self._is_ending:
                return
            log.exception("An epoch did not end well")
            self.trouble = f"the last epoch did not end well: {_sentence(error)}"
            time.sleep(self._backoff.pause_s())
        else:
            self.trouble = ""
            self._backoff.reset()


_EMPTY = '{"ended_ms":0}'


def _land(rows: DataFrame, path: str) -> None:
    rows.write.mode("append").partitionBy(KEPT_BY).parquet(path)


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
