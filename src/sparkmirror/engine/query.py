"""The query: Spark's session, and the stream of epochs whose rows are added to the receipts.

The only module of the driver process that calls Spark. The checkpoint is made anew for each run and
thrown away with it: it holds epoch numbers, and where the partitions stand is known elsewhere.
Receipts of a run go to a directory of their own, because neither a file sink's journal nor a
committer of files bears a second writer beside or after it; together the directories are one table.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sparkmirror.engine.home import MINIMUM_JAVA
from sparkmirror.engine.receipts import COLUMNS, KEPT_BY, SCHEMA
from sparkmirror.engine.source import MirrorSource
from sparkmirror.errors import DriverLost


class Query:
    """One flow as a streaming query. Blocks; one thread opens, starts and waits."""

    def __init__(self, settings: dict[str, str]) -> None:
        """Start Spark with these settings."""
        builder = SparkSession.builder
        for key, value in settings.items():
            builder = builder.config(key, value)
        try:
            self._session = builder.getOrCreate()
        except (PySparkException, Py4JError) as error:
            raise DriverLost(
                f"Spark did not start: {_sentence(error)} (it needs Java {MINIMUM_JAVA} or newer)"
            ) from error
        self._stream: StreamingQuery | None = None

    @property
    def application_id(self) -> str:
        """Spark's name for this run."""
        return self._session.sparkContext.applicationId

    @property
    def web_ui(self) -> str:
        """Where Spark's own page is; empty if it has none."""
        return self._session.sparkContext.uiWebUrl or ""

    @property
    def slots(self) -> int:
        """How many tasks can run at once, as far as Spark knows now."""
        return self._session.sparkContext.defaultParallelism

    def setting(self, key: str) -> str:
        """A setting as Spark has made it."""
        return self._session.sparkContext.getConf().get(key) or ""

    def prepare(self, flow: str, post: Path) -> DataFrame:
        """Make the source known and plan with it."""
        self._session.dataSource.register(MirrorSource)
        source = self._session.readStream.format(MirrorSource.name())
        return source.option("flow", flow).option("post", str(post)).load()

    def start(self, rows: DataFrame, name: str, receipts: str, checkpoint: Path) -> None:
        """Run one epoch after the other, from now on."""
        path = f"{receipts.rstrip('/')}/run={self.application_id}"

        def land(epoch: DataFrame, _number: int) -> None:
            _land(epoch, path)

        self._stream = (
            rows.selectExpr(*COLUMNS)
            .writeStream.queryName(name)
            .option("checkpointLocation", checkpoint.as_uri())
            .foreachBatch(land)
            .start()
        )

    def rehearse_landing(self, directory: Path) -> None:
        """Land one empty receipt elsewhere. Spark is slow the first time, and then time matters."""
        row = self._session.range(1).selectExpr(f"from_json('{{\"ended_ms\":0}}', '{SCHEMA}') AS r")
        _land(row.select("r.*").selectExpr(*COLUMNS), directory.as_uri())

    def wait(self, seconds: int) -> bool:
        """Wait for the end of the stream; tell whether it came. Raises DriverLost if it failed."""
        assert self._stream is not None
        try:
            return bool(self._stream.awaitTermination(seconds))
        except PySparkException as error:
            raise DriverLost(f"Spark gave up: {_sentence(error)}") from error
        except (Py4JError, OSError) as error:
            raise DriverLost("Spark's JVM has died") from error

    def end_stream(self) -> None:
        """End the stream, with whatever is under way in it."""
        if self._stream is not None:
            self._stream.stop()

    def close(self) -> None:
        """End Spark, and see the JVM off."""
        gateway = self._session.sparkContext._gateway
        self._session.stop()
        jvm = vars(gateway).get("proc") if gateway else None
        if isinstance(jvm, subprocess.Popen):
            jvm.communicate()  # the end of its input is what it waits for


def _land(rows: DataFrame, path: str) -> None:
    rows.write.mode("append").partitionBy(KEPT_BY).parquet(path)


def _sentence(error: Exception) -> str:
    """What happened, without the stack trace: that is in the log."""
    told = error.java_exception if isinstance(error, Py4JJavaError) else error
    return str(told).strip().partition("\n")[0]
