"""The Spark application of a driver: session, control server and streaming query, in one thread.

Spark and the conductor start at the same time, which takes seconds; the stream begins when both are
ready. An error ends the thread, and `failure` returns it.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from sparkmirror.backoff import Backoff
from sparkmirror.config.files.written_keys import written_keys_variable
from sparkmirror.copy.control.tls_psk import HAS_TLS_PSK
from sparkmirror.engine.driver.conductor_api import ConductorApi
from sparkmirror.engine.driver.control_server import ControlServer
from sparkmirror.engine.driver.executor_python import link_executor_python
from sparkmirror.engine.driver.spark_conf import (
    LOOPBACK,
    DriverEnvironment,
    build_spark_conf,
    control_port,
    control_protocol,
    effective_master,
    is_local_master,
    slot_shortage_text,
    slot_shortage_warning,
    spark_environment,
)
from sparkmirror.engine.driver.spark_home import linked_spark_home
from sparkmirror.engine.driver.spark_master import (
    master_problem,
    slow_start_problem,
    start_failure,
)
from sparkmirror.engine.spark.java_check import require_java
from sparkmirror.engine.spark.receipt_rows import ReceiptRow, missing_receipt_row
from sparkmirror.engine.spark.streaming_query import MirrorStreamingQuery
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.errors import DriverLost
from sparkmirror.java.java_runtime import java_variables
from sparkmirror.security.oauthbearer.allowed_resources import allowed_variables

log = logging.getLogger(__name__)

POLL_INTERVAL_S = 2
SLOW_START_S = 20.0
"""A cluster that has not accepted the application for so long has a problem."""


class _StepTimer:
    """Logs how long each step of the start took."""

    def __init__(self) -> None:
        self._step_started_at = time.monotonic()

    def log_step(self, what: str) -> None:
        now = time.monotonic()
        log.info("%s after %.1f s", what, now - self._step_started_at)
        self._step_started_at = now


class SparkApplication:
    """Starts Spark and runs the streaming query. Any thread may call it."""

    def __init__(self, spec: DriverSpec, conductor: ConductorApi, directory: Path) -> None:
        self.conductor_ready = threading.Event()
        self._spec_lock = threading.Lock()
        self.is_streaming = False
        self.slots = 0
        """How many tasks Spark can run at once; 0 until Spark has started."""
        self.application_id = ""
        self.web_ui = ""
        self._spec = spec
        self._conductor = conductor
        self._directory = directory
        self._query: MirrorStreamingQuery | None = None
        self._control_server: ControlServer | None = None
        self._closing = False
        self._launched_at = float("inf")
        self._master_problem = ""
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="spark-application", daemon=True)

    def start(self) -> None:
        """Start the thread; returns at once."""
        self._thread.start()

    @property
    def epoch(self) -> int:
        """The number of the running epoch; 0 before the first."""
        return self._control_server.epoch if self._control_server else 0

    def problem(self) -> str:
        """A problem of Spark that does not end it, as a sentence for the operator."""
        tasks = len(self._spec.job.tasks)
        if start_problem := self.start_problem():
            return start_problem
        if waiting := self.tasks_without_slot():
            shortage = slot_shortage_text(tasks, tasks - len(waiting))
            return f"{shortage}; {self._master_problem}" if self._master_problem else shortage
        query_problem = self._query.problem if self._query else ""
        return query_problem or slot_shortage_warning(self._spec)

    def tasks_without_slot(self) -> list[int]:
        """Return the tasks that Spark has no slot for."""
        return self._control_server.tasks_without_slot() if self._control_server else []

    def start_problem(self) -> str:
        """Why Spark has not started yet; empty while it may only need time, and afterwards."""
        if self._control_server is not None:
            return ""
        if self._master_problem or is_local_master(effective_master(self._spec)):
            return self._master_problem
        if time.monotonic() < self._launched_at + SLOW_START_S:
            return ""
        return slow_start_problem(effective_master(self._spec), SLOW_START_S, self._spec.log)

    def end_epoch(self) -> None:
        """End the running epoch, so that every task starts again."""
        if self._control_server:
            self._control_server.end_epoch()

    def replan(self, spec: DriverSpec) -> None:
        """Continue with the number of tasks of another spec."""
        with self._spec_lock:
            self._spec = spec
            if self._control_server:
                self._control_server.set_task_count(len(spec.job.tasks))

    def set_log_levels(self, levels: Mapping[str, int]) -> None:
        """Have the tasks set these levels from the next epoch on."""
        with self._spec_lock:
            self._spec = replace(self._spec, log_levels={**self._spec.log_levels, **levels})
            if self._control_server:
                self._control_server.set_log_levels(levels)

    def stop_new_epochs(self) -> None:
        """Start no further epoch."""
        if self._control_server:
            self._control_server.stop_new_epochs()
        if self._query:
            self._query.skip_backoff()

    @property
    def is_idle(self) -> bool:
        """Whether the last epoch is over and its receipts are written."""
        if self._control_server is None or self._query is None:
            return False
        return self._control_server.is_idle and not self._query.unwritten_receipts

    @property
    def unwritten_receipts(self) -> int:
        """How many receipts of finished epochs are not written yet."""
        return self._query.unwritten_receipts if self._query else 0

    def failure(self) -> Exception | None:
        """The error that has ended Spark or the control server, if there was one."""
        return self._failure or (self._control_server.failure() if self._control_server else None)

    def close(self) -> None:
        """End the stream, the control server and Spark. Blocks until the JVM has ended."""
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
            log.warning("Spark did not end cleanly; the driver ends anyway: %s", error)

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            query = self._start_query()
            while self.is_streaming and not query.await_termination(POLL_INTERVAL_S):
                self.slots = query.slots()
                self._check_master()
        except Exception as error:
            if not self._closing:
                log.exception("Spark has failed; the driver ends")
                self._failure = error

    def _start_query(self) -> MirrorStreamingQuery:
        """Start Spark, the control server, then the stream, unless `close` was called."""
        spec, endpoint_file = self._spec, self._directory / "control_endpoint.json"
        settings = self._prepare_process()
        self._await_master()
        timer = _StepTimer()
        self._query = query = self._start_spark(settings)
        self.application_id, self.web_ui = query.application_id, query.web_ui
        timer.log_step("Spark started")
        self._control_server = server = self._open_control_server(query)
        server.endpoint.write(endpoint_file)
        server.start()
        with self._spec_lock:  # a command may have changed the spec while the server was created
            server.set_task_count(len(self._spec.job.tasks))
            server.set_log_levels(self._spec.log_levels)
        connector = spec.job.connector
        rows = query.load_stream(
            {"flow": spec.flow, "connector": connector, "endpoint": str(endpoint_file)},
        )
        timer.log_step("Data source registered")
        self.conductor_ready.wait()
        timer.log_step("Conductor started")
        if not self._closing:
            checkpoint = self._directory / "checkpoint"
            query.start(rows, connector, spec.receipts, checkpoint, self._close_epoch)
            timer.log_step("Streaming query started")
            self.is_streaming = True
        return query

    def _await_master(self) -> None:
        """Wait until a standalone master accepts connections; `problem` says why it does not."""
        master, backoff = effective_master(self._spec), Backoff(initial_s=0.5, max_s=5.0)
        while not self._closing:
            problem = master_problem(master)
            if problem != self._master_problem:
                log.warning("%s", problem or f"Spark master {master} answers")
            self._master_problem = problem
            if not problem:
                return
            time.sleep(backoff.next_delay_s())

    def _start_spark(self, settings: dict[str, str]) -> MirrorStreamingQuery:
        self._launched_at = time.monotonic()
        master = effective_master(self._spec)
        try:
            return MirrorStreamingQuery(settings)
        except DriverLost as error:
            if is_local_master(master):
                raise
            raise DriverLost(start_failure(master, str(error), self._spec.log)) from error

    def _check_master(self) -> None:
        """Find out whether the master answers, if tasks have no slot: it may explain that."""
        assert self._control_server is not None
        has_shortage = self._control_server.tasks_without_slot()
        self._master_problem = master_problem(effective_master(self._spec)) if has_shortage else ""

    def _prepare_process(self) -> dict[str, str]:
        """Set environment variables and links for Spark; returns the Spark settings."""
        os.environ.update(java_variables(os.environ))
        require_java(os.environ)
        home = (
            linked_spark_home(os.environ) if is_local_master(effective_master(self._spec)) else None
        )
        environment = DriverEnvironment(
            directory=self._directory,
            spark_home=home,
            has_cds_archive=home is not None and home.cds_archive.is_file(),
            executor_variables=allowed_variables(os.environ) | written_keys_variable(os.environ),
        )
        os.environ.update(spark_environment(self._spec, environment, os.environ))
        link_executor_python(os.environ["PYSPARK_PYTHON"], Path.cwd(), Path(sys.prefix))
        return build_spark_conf(self._spec, environment)

    def _open_control_server(self, query: MirrorStreamingQuery) -> ControlServer:
        """Listen at the address at which executors reach the driver."""
        host = query.conf_value("spark.driver.host")
        bind = query.conf_value("spark.driver.bindAddress") or host
        if is_local_master(effective_master(self._spec)):
            host = bind = LOOPBACK
        return ControlServer(
            self._conductor,
            tasks=len(self._spec.job.tasks),
            epoch_s=self._spec.epoch_s,
            protocol=control_protocol(self._spec, has_tls_psk=HAS_TLS_PSK),
            bind=bind,
            host=host,
            port=control_port(self._spec),
        )

    def _close_epoch(self, succeeded: bool) -> list[ReceiptRow]:
        """The rows of receipts that tasks of the finished epoch did not return."""
        missing = self._conductor.close_epoch(self.epoch, succeeded=succeeded)
        return [missing_receipt_row(self._spec.flow, receipt) for receipt in missing]
