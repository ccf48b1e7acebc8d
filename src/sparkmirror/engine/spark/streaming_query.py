"""The streaming query: Spark's session, the stream of epochs, and the receipts it writes.

Only this module of the driver process calls Spark; it translates Spark's errors to MirrorErrors.
Each run has a new checkpoint directory and removes it at the end, because a checkpoint holds only
epoch numbers. Each run writes its receipts to a directory of its own, because neither a file sink
nor a file committer allows a second writer; all directories together are one table.
"""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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
from sparkmirror.config.plugin_module_allowlist import PluginModuleAllowlist
from sparkmirror.copy.receipt import AttemptEpoch
from sparkmirror.copy.task.transform.record_evaluator import RecordEvaluator
from sparkmirror.engine.gateway_process import GatewayProcess
from sparkmirror.engine.spark.data_source import MirrorDataSource
from sparkmirror.engine.spark.error_summary import error_summary
from sparkmirror.engine.spark.receipt_rows import (
    COLUMN_NAMES,
    PARTITION_COLUMN,
    RECEIPT_ARRAY_TYPE,
    TABLE_COLUMNS,
    ReceiptRow,
    receipts_of,
    returned_attempts,
)
from sparkmirror.engine.spark.receipt_writer_thread import ReceiptWriter
from sparkmirror.engine.spark.receipts_directory_check import directory_error
from sparkmirror.errors import DriverLost
from sparkmirror.java.java_runtime import MINIMUM_MAJOR
from sparkmirror.transforms.spark_query import SparkQuery

log = logging.getLogger(__name__)

SECRET_KEYS = re.compile(r"(?i)secret|password|token|access[.]?key|credential")
"""Settings that must not appear in the arguments of the JVM. Spark redacts similar keys."""
PORT_VARIABLE, SECRET_VARIABLE = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
"""How pyspark finds a gateway that runs already."""


class MirrorStreamingQuery:
    """One flow as a streaming query. Methods block; one thread opens, starts and waits.

    Raises DriverLost for every error of Spark.
    """

    def __init__(
        self, settings: dict[str, str], start_jvm: Callable[[], GatewayProcess] | None = None
    ) -> None:
        """Start Spark with these settings, in the JVM of `start_jvm`, or with `spark-submit`.

        All users of this computer can read the arguments of the JVM. So it gets the secret settings
        only after its start.
        """
        with _translate_errors(
            f"the JVM of Spark did not start (it needs Java {MINIMUM_MAJOR} or newer)"
        ):
            visible = _to_spark_conf(visible_settings(settings))
            gateway = _connect(start_jvm()) if start_jvm else _launch_gateway(visible)
            self._jvm: subprocess.Popen[bytes] = gateway.proc
            self._gateway = gateway
        with _translate_errors("Spark did not start"):
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
        """Why the last epoch failed; empty if it succeeded."""

    @property
    def jvm_pid(self) -> int:
        """The process id of the JVM."""
        return self._jvm.pid

    def await_jvm_end(self) -> None:
        """Wait until the JVM has ended."""
        self._jvm.wait()

    @property
    def gateway(self) -> tuple[int, str]:
        """The port and the secret of py4j's gateway to the JVM."""
        parameters = self._gateway.gateway_parameters
        return int(parameters.port), str(parameters.auth_token)

    def new_evaluator(self, query: SparkQuery, chain: str) -> RecordEvaluator:
        """Check the query of a job, and let slots find it by the fingerprint of its chain.

        Raises ConfigError if Spark or a mirror cannot run it.
        """
        # Imported here because few connectors have a query, and the import is slow.
        from sparkmirror.engine.spark.query.query_analysis import evaluator_of

        view = self.register_query(query, chain)
        return evaluator_of(self._gateway, view, query.key)

    def register_query(self, query: SparkQuery, chain: str) -> str:
        """Check the query of a job and create its view; returns the name of the view.

        Raises ConfigError if Spark or a mirror cannot run it.
        """
        from sparkmirror.engine.spark.query import query_analysis

        view = query_analysis.view_name(chain)
        modules = PluginModuleAllowlist.from_environment(os.environ)
        query_analysis.register_query(self._session, query, view, modules)
        return view

    def slots(self) -> int:
        """How many tasks Spark can run at once now."""
        with _translate_errors("Spark does not answer"):
            return self._session.sparkContext.defaultParallelism

    def conf_value(self, key: str) -> str:
        """A setting of the running Spark context; empty if it is not set."""
        return self._effective_conf.get(key, "")

    def load_stream(self, options: dict[str, str]) -> DataFrame:
        """Register the data source and create the stream."""
        with _translate_errors("Spark rejected the data source"):
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
        close_epoch: Callable[[Collection[AttemptEpoch]], list[ReceiptRow]],
    ) -> None:
        """Run one epoch after the other from now on; returns at once.

        After each epoch, calls `close_epoch` with the attempts whose rows have come; `close_epoch`
        returns the rows of all others.
        """
        with _translate_errors("the query did not start"):
            writer = self._receipt_writer = ReceiptWriter(partial(self._write_receipts, receipts))
            writer.start()
            self._streaming_query = (
                rows.writeStream.queryName(name)
                .option("checkpointLocation", checkpoint.as_uri())
                .foreachBatch(lambda epoch, _number: self._run_epoch(epoch, writer, close_epoch))
                .start()
            )

    def await_termination(self, seconds: int) -> bool:
        """Wait for the end of the stream, at most so long; returns whether it has ended."""
        assert self._streaming_query is not None
        with _translate_errors("the streaming query failed"):
            return bool(self._streaming_query.awaitTermination(seconds))

    def skip_backoff(self) -> None:
        """End all pauses between retries, now and later: the driver drains or ends."""
        self._backoff_skipped.set()
        if self._receipt_writer is not None:
            self._receipt_writer.retry_now()

    @property
    def unwritten_receipts(self) -> int:
        """How many receipts of finished epochs are not written yet."""
        return self._receipt_writer.pending_rows if self._receipt_writer else 0

    @property
    def problem(self) -> str:
        """Why the last epoch or the last write of receipts failed; empty if both succeeded."""
        return self._problem or (self._receipt_writer.problem if self._receipt_writer else "")

    def stop_stream(self) -> None:
        """End the stream, and the tasks that run in it."""
        self._stopping = True
        self.skip_backoff()
        if self._streaming_query is not None:
            with _translate_errors("the query did not end"):
                self._streaming_query.stop()

    def close(self) -> None:
        """End Spark and wait for the end of the JVM."""
        if self._receipt_writer is not None:
            self._receipt_writer.close()
        with _translate_errors("Spark did not end"):
            self._session.stop()
        self._jvm.communicate()  # the JVM ends when its standard input does

    def _run_epoch(
        self,
        epoch: DataFrame,
        writer: ReceiptWriter,
        close_epoch: Callable[[Collection[AttemptEpoch]], list[ReceiptRow]],
    ) -> None:
        """Run the tasks of an epoch and pass their receipts to the writer.

        A failed epoch does not end the query: what was copied is copied, and the next epoch starts
        new task attempts, after a pause.
        """
        rows: list[ReceiptRow] = []
        failure = _spark_error_of(lambda: rows.extend(tuple(row) for row in epoch.collect()))
        writer.add([*receipts_of(rows), *close_epoch(returned_attempts(rows))])
        if failure is None:
            self._problem = ""
            self._backoff.reset()
        elif not self._stopping:
            log.error("An epoch failed; the next one starts after a pause", exc_info=failure)
            self._problem = f"the last epoch failed: {error_summary(failure)}"
            self._backoff_skipped.wait(self._backoff.next_delay_s())

    def _write_receipts(self, directory: str, rows: Sequence[ReceiptRow]) -> None:
        """Append receipts in the JVM alone, as one JSON literal: Python rows would need workers.

        Without rows, check only whether the directory can be written.
        """
        if error := directory_error(directory):
            raise DriverLost(f"{directory}: {error}")
        if not rows:
            return
        path = f"{directory.rstrip('/')}/run={self.application_id}"
        rows_json = json.dumps([dict(zip(COLUMN_NAMES, row, strict=True)) for row in rows])
        with _translate_errors(f"{directory}: Spark cannot write"):
            parsed = functions.from_json(functions.lit(rows_json), RECEIPT_ARRAY_TYPE)
            receipts = self._session.range(0, 1, 1, 1).select(functions.inline(parsed))
            _append_parquet(receipts.selectExpr(*TABLE_COLUMNS), path)


_launch_gateway: Callable[[SparkConf | None], Any] = launch_gateway
"""pyspark has no types for this function."""


def visible_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that all users of this computer may see."""
    return {key: value for key, value in settings.items() if not SECRET_KEYS.search(key)}


def _connect(jvm: GatewayProcess) -> Any:
    """Connect to a JVM that was started. Raises DriverLost."""
    address = jvm.await_address()
    variables = {PORT_VARIABLE: str(address.port), SECRET_VARIABLE: address.secret}
    os.environ.update(variables)
    try:
        gateway = _launch_gateway(None)
    finally:
        for name in variables:
            del os.environ[name]
    gateway.proc = jvm.process
    return gateway


def _to_spark_conf(settings: dict[str, str]) -> SparkConf:
    return SparkConf(loadDefaults=False).setAll(list(settings.items()))


def _append_parquet(rows: DataFrame, path: str) -> None:
    rows.write.mode("append").partitionBy(PARTITION_COLUMN).parquet(path)


def _spark_error_of(work: Callable[[], None]) -> Exception | None:
    """Call `work`; returns the error of Spark, if it raised one."""
    try:
        work()
    except (PySparkException, Py4JError) as error:
        return error
    return None


@contextmanager
def _translate_errors(what: str) -> Iterator[None]:
    """Raise DriverLost for errors of Spark."""
    try:
        yield
    except Py4JJavaError as error:
        raise DriverLost(f"{what}: {error_summary(error)}") from error
    except (Py4JError, OSError) as error:
        raise DriverLost(f"{what}: its JVM has died") from error
    except PySparkException as error:
        raise DriverLost(f"{what}: {error_summary(error)}") from error
