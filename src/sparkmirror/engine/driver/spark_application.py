"""Spark at work: the session, the control server and the query of one driver, in one thread.

Starting takes seconds and is done beside the conductor's own start; the stream begins when both are
ready. Whatever goes wrong ends the thread and is kept in `failure`.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from pathlib import Path

from sparkmirror.engine.driver.conductor_api import ConductorApi
from sparkmirror.engine.driver.control_server import ControlServer
from sparkmirror.engine.driver.executor_python import link_executor_python
from sparkmirror.engine.driver.spark_conf import (
    LOOPBACK,
    DriverEnvironment,
    build_spark_conf,
    control_port,
    effective_master,
    is_local_master,
    slot_shortage_text,
    slot_shortage_warning,
    spark_environment,
)
from sparkmirror.engine.driver.spark_home import linked_spark_home
from sparkmirror.engine.spark.java_runtime import require_java
from sparkmirror.engine.spark.receipt_rows import ReceiptRow, missing_receipt_row
from sparkmirror.engine.spark.streaming_query import MirrorStreamingQuery
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.errors import DriverLost
from sparkmirror.java.java_runtime import java_variables

log = logging.getLogger(__name__)

POLL_INTERVAL_S = 2


class _StepTimer:
    """Tells the log how long each step took."""

    def __init__(self) -> None:
        self._step_started_at = time.monotonic()

    def log_step(self, what: str) -> None:
        now = time.monotonic()
        log.info("%s after %.1f s", what, now - self._step_started_at)
        self._step_started_at = now


class SparkApplication:
    """Starts Spark and keeps it running. Everything here may be asked from any thread."""

    def __init__(self, assignment: DriverSpec, conductor: ConductorApi, directory: Path) -> None:
        self.conductor_ready = threading.Event()
        self.is_streaming = False
        self.slots = 0
        """How many tasks Spark can run at once; 0 until that is known."""
        self.application_id = ""
        self.web_ui = ""
        self._spec = assignment
        self._conductor = conductor
        self._directory = directory
        self._query: MirrorStreamingQuery | None = None
        self._control_server: ControlServer | None = None
        self._closing = False
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="spark", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    @property
    def epoch(self) -> int:
        """The epoch that is under way."""
        return self._control_server.epoch if self._control_server else 0

    def problem(self) -> str:
        """What is wrong with Spark that does not end it, in a sentence."""
        tasks = len(self._spec.job.tasks)
        waiting = self._control_server.tasks_without_slot() if self._control_server else []
        if waiting:
            return slot_shortage_text(tasks, tasks - len(waiting))
        ended_badly = self._query.problem if self._query else ""
        return ended_badly or slot_shortage_warning(self._spec)

    def end_epoch(self) -> None:
        """Have every task start anew."""
        if self._control_server:
            self._control_server.end_epoch()

    def replan(self, assignment: DriverSpec) -> None:
        """Go on with another number of tasks."""
        self._spec = assignment
        if self._control_server:
            self._control_server.set_task_count(len(assignment.job.tasks))

    def stop_new_epochs(self) -> None:
        """Let no further epoch begin."""
        if self._control_server:
            self._control_server.stop_new_epochs()
        if self._query:
            self._query.skip_backoff()

    @property
    def is_idle(self) -> bool:
        """Whether the last epoch is over and its receipts have landed."""
        if self._control_server is None or self._query is None:
            return False
        return self._control_server.is_idle and not self._query.unwritten_receipts

    @property
    def unwritten_receipts(self) -> int:
        """How many receipts are not written yet."""
        return self._query.unwritten_receipts if self._query else 0

    def failure(self) -> Exception | None:
        """Why it has ended by itself, if it has."""
        return self._failure or (self._control_server.failure() if self._control_server else None)

    def close(self) -> None:
        """End the stream, the server and Spark."""
        self._closing = True
        self.conductor_ready.set()
        try:
            if self._query:
                self._query.stop_stream()
            if self._control_server:
                self._control_server.close()
            if self._query:
                self._query.close()
        except DriverLost as error:
            log.warning("%s", error)

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            query = self._start_query()
            while self.is_streaming and not query.await_termination(POLL_INTERVAL_S):
                self.slots = query.slots()
        except Exception as error:
            if not self._closing:
                log.exception("Spark has ended")
                self._failure = error

    def _start_query(self) -> MirrorStreamingQuery:
        """Start everything; the stream only if we are not to end already."""
        assignment, post = self._spec, self._directory / "post.json"
        watch = _StepTimer()
        self._query = query = MirrorStreamingQuery(self._prepare_process())
        self.application_id, self.web_ui = query.application_id, query.web_ui
        watch.log_step("Spark started")
        self._control_server = server = self._open_control_server(query)
        server.endpoint.write(post)
        server.start()
        connector = assignment.job.connector
        rows = query.load_stream(
            {"flow": assignment.flow, "connector": connector, "post": str(post)},
        )
        watch.log_step("The source was made known")
        self.conductor_ready.wait()
        watch.log_step("The conductor was ready")
        if not self._closing:
            checkpoint = self._directory / "checkpoint"
            query.start(rows, connector, assignment.receipts, checkpoint, self._close_epoch)
            watch.log_step("The query began")
            self.is_streaming = True
        return query

    def _prepare_process(self) -> dict[str, str]:
        """Prepare this process for Spark; returns Spark's settings."""
        os.environ.update(java_variables(os.environ))
        require_java(os.environ)
        home = (
            linked_spark_home(os.environ) if is_local_master(effective_master(self._spec)) else None
        )
        around = DriverEnvironment(
            directory=self._directory,
            spark_home=home,
            has_cds_archive=home is not None and home.cds_archive.is_file(),
        )
        os.environ.update(spark_environment(self._spec, around, os.environ))
        link_executor_python(os.environ["PYSPARK_PYTHON"], Path.cwd(), Path(sys.prefix))
        return build_spark_conf(self._spec, around)

    def _open_control_server(self, query: MirrorStreamingQuery) -> ControlServer:
        """Listen where the executors look for the driver anyway."""
        host = query.conf_value("spark.driver.host")
        bind = query.conf_value("spark.driver.bindAddress") or host
        if is_local_master(effective_master(self._spec)):
            host = bind = LOOPBACK
        return ControlServer(
            self._conductor,
            tasks=len(self._spec.job.tasks),
            epoch_s=self._spec.epoch_s,
            bind=bind,
            host=host,
            port=control_port(self._spec),
        )

    def _close_epoch(self, landed: bool) -> list[ReceiptRow]:
        """Between two epochs: what the one that is over still owes."""
        unclaimed = self._conductor.close_epoch(self.epoch, landed=landed)
        return [missing_receipt_row(self._spec.flow, one) for one in unclaimed]
