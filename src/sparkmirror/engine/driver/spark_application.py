"""The Spark application of a driver: session, control server and streaming query, in one thread.

Spark takes seconds to start. The tasks of jobs that are started before wait for it. An error ends
the thread, and `failure` returns it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sparkmirror.backoff import Backoff
from sparkmirror.copy.control.tls_psk import HAS_TLS_PSK
from sparkmirror.copy.receipt import AttemptEpoch
from sparkmirror.copy.settings import CopySettings
from sparkmirror.copy.task.transform.record_evaluator import RecordEvaluator
from sparkmirror.engine.control_endpoint import ControlEndpoint
from sparkmirror.engine.driver.conductor_api import ConductorApi
from sparkmirror.engine.driver.control.control_server import ControlServer
from sparkmirror.engine.driver.python_planner_cleanup import end_planning_processes
from sparkmirror.engine.driver.spark_conf import (
    LOOPBACK,
    control_port,
    control_protocol,
    effective_master,
    is_local_master,
    no_slot_text,
    query_settings,
    reuses_python_workers,
    slots_for_tasks,
)
from sparkmirror.engine.driver.spark_master_check import (
    master_problem,
    slow_start_problem,
    start_failure,
)
from sparkmirror.engine.driver.spark_process import PreparedProcess, jvm_starter, prepare_process
from sparkmirror.engine.spark.receipt_rows import ReceiptRow
from sparkmirror.engine.spark.streaming_query import MirrorStreamingQuery, visible_settings
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.errors import DriverLost
from sparkmirror.transforms.spark_query import spark_query

log = logging.getLogger(__name__)

POLL_INTERVAL_S = 2
START_CHECK_S = 0.5
"""How often a job that waits for Spark looks whether the driver ends."""
WARM_EPOCH = 2
"""From this epoch on Spark has done everything once and needs its planning processes no more."""
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


@dataclass(frozen=True, slots=True)
class _JobTasks:
    """The tasks of a job that are to run, and their conductor."""

    conductor: ConductorApi
    tasks: tuple[int, ...]
    flow: str


class SparkApplication:
    """Starts Spark and runs the streaming query. Any thread may call it."""

    def __init__(
        self,
        spec: DriverSpec,
        directory: Path,
        close_epoch: Callable[[int, Collection[AttemptEpoch]], list[ReceiptRow]],
        python: Path | None = None,
    ) -> None:
        """After each epoch, `close_epoch` gets its number and the attempts that returned receipts.

        It returns the rows of all other receipts. A local Spark starts `python`.
        """
        self._python = python
        self._lock = threading.Lock()
        """Protects what is given to the control server, which is created late."""
        self._jobs: dict[str, _JobTasks] = {}
        self._log_levels = dict(spec.log_levels)
        self._task_count = self._partition_count = 0
        self.is_streaming = False
        self.slots = 0
        """How many slots Spark can run at once; 0 until Spark has started."""
        self.application_id = ""
        self.web_ui = ""
        self._spec = spec
        self._close_epoch = close_epoch
        self._directory = directory
        self._query: MirrorStreamingQuery | None = None
        self._spark_started = threading.Event()
        self._control_server: ControlServer | None = None
        self._closing = self._is_warm = False
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

    @property
    def is_ready(self) -> bool:
        """Whether a task that is added starts at once."""
        return self._control_server is not None and self._control_server.is_ready

    def problem(self) -> str:
        """A problem of Spark that does not end it, as a sentence for the operator."""
        if start_problem := self.start_problem():
            return start_problem
        if self.lacks_slots:
            shortage = no_slot_text(self._task_count)
            return f"{shortage}; {self._master_problem}" if self._master_problem else shortage
        return self._query.problem if self._query else ""

    @property
    def lacks_slots(self) -> bool:
        """Whether Spark has no free core for any slot, so that no task can run."""
        return self._control_server is not None and self._control_server.lacks_slots

    def task_problems(self, name: str) -> Mapping[int, str]:
        """Return why tasks of a job do not run, by task."""
        return self._control_server.task_problems(name) if self._control_server else {}

    def start_problem(self) -> str:
        """Why Spark has not started yet; empty while it may only need time, and afterwards."""
        if self._control_server is not None:
            return ""
        if self._master_problem or is_local_master(effective_master(self._spec)):
            return self._master_problem
        if time.monotonic() < self._launched_at + SLOW_START_S:
            return ""
        return slow_start_problem(effective_master(self._spec), SLOW_START_S, self._spec.log)

    def new_evaluator(self, settings: CopySettings) -> RecordEvaluator:
        """Check the query of a job and make its evaluator, as soon as Spark has started. Blocks.

        Raises ConfigError if the query cannot be run, DriverLost if Spark does not start.
        """
        query = spark_query(settings.transforms)
        assert query is not None, "there is a query to evaluate"
        while not self._spark_started.wait(START_CHECK_S):
            if self._closing or self._failure:
                raise DriverLost("Spark has not started") from self._failure
        assert self._query is not None
        return self._query.new_evaluator(query, settings.chain)

    # -- tasks: see `jobs.driver_job.TaskRunner` -------------------------------------------------

    def set_job(
        self, name: str, conductor: ConductorApi, tasks: Collection[int], flow: str = ""
    ) -> None:
        """Run exactly these tasks of a job, as soon as Spark runs."""
        with self._lock:
            job = self._jobs[name] = _JobTasks(conductor, tuple(tasks), flow)
            if self._control_server:
                self._control_server.set_job(name, job.conductor, job.tasks, job.flow)

    def remove_job(self, name: str) -> None:
        """Forget a job; its tasks end."""
        with self._lock:
            self._jobs.pop(name, None)
            if self._control_server:
                self._control_server.remove_job(name)

    def restart_tasks(self, name: str, tasks: Collection[int]) -> None:
        """Drain these tasks of a job and start them again."""
        if self._control_server:
            self._control_server.restart_tasks(name, tasks)

    def set_task_count(self, tasks: int, partitions: int) -> None:
        """Provide slots for so many tasks of all jobs together, with so many partitions."""
        with self._lock:
            self._task_count, self._partition_count = tasks, partitions
            self._update_slots()

    def _update_slots(self) -> None:
        if self._control_server:
            available = slots_for_tasks(self._spec, self.slots)
            self._control_server.set_slots(
                available=available, tasks=self._task_count, partitions=self._partition_count
            )

    def end_epoch(self) -> None:
        """End the running epoch, so that its receipts are written; the next one follows."""
        if self._control_server:
            self._control_server.end_epoch()

    def set_log_levels(self, levels: Mapping[str, int]) -> None:
        """Have the slots set these levels from the next epoch on."""
        with self._lock:
            self._log_levels |= levels
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
                with self._lock:
                    self._update_slots()
                self._check_master()
                if self.epoch >= WARM_EPOCH and not self._is_warm:
                    self._is_warm = True
                    end_planning_processes(query.jvm_pid)
        except Exception as error:
            if not self._closing:
                log.exception("Spark has failed; the driver ends")
                self._failure = error

    def _start_query(self) -> MirrorStreamingQuery:
        """Start Spark, the control server, then the stream, unless `close` was called."""
        endpoint_file = self._directory / "control_endpoint.json"
        process = prepare_process(self._spec, self._directory, self._python)
        self._await_master()
        timer = _StepTimer()
        self._query = query = self._start_spark(process)
        self._spark_started.set()
        self.application_id, self.web_ui = query.application_id, query.web_ui
        timer.log_step("Spark started")
        self._start_control_server(query)
        self._endpoint(query).write(endpoint_file)
        rows = query.load_stream({"endpoint": str(endpoint_file)})
        timer.log_step("Data source registered")
        if not self._closing:
            checkpoint = self._directory / "checkpoint"
            query.start(rows, self._spec.name, self._spec.receipts, checkpoint, self._end_of_epoch)
            timer.log_step("Streaming query started")
            self.is_streaming = True
        return query

    def _endpoint(self, query: MirrorStreamingQuery) -> ControlEndpoint:
        """What slots get: on this computer they may call Spark's JVM, too.

        Those of a cluster evaluate queries with a Spark of their own, which gets the same settings.
        """
        assert self._control_server is not None
        endpoint = self._control_server.endpoint
        if not is_local_master(effective_master(self._spec)):
            return replace(endpoint, query_settings=visible_settings(query_settings(self._spec)))
        port, secret = query.gateway
        return replace(endpoint, gateway_port=port, gateway_secret=secret)

    def _start_control_server(self, query: MirrorStreamingQuery) -> ControlServer:
        """Start the control server, with everything that commands have set so far."""
        server = self._open_control_server(query)
        server.start()
        self.slots = query.slots()
        with self._lock:
            self._control_server = server
            server.set_log_levels(self._log_levels)
            self._update_slots()
            for name, job in self._jobs.items():
                server.set_job(name, job.conductor, job.tasks, job.flow)
        return server

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

    def _start_spark(self, process: PreparedProcess) -> MirrorStreamingQuery:
        self._launched_at = time.monotonic()
        master = effective_master(self._spec)
        try:
            return MirrorStreamingQuery(process.settings, jvm_starter(process, self._directory))
        except DriverLost as error:
            if is_local_master(master):
                raise
            raise DriverLost(start_failure(master, str(error), self._spec.log)) from error

    def _check_master(self) -> None:
        """Find out whether the master answers, if there is no slot: it may explain that."""
        master = effective_master(self._spec)
        self._master_problem = master_problem(master) if self.lacks_slots else ""

    def _open_control_server(self, query: MirrorStreamingQuery) -> ControlServer:
        """Listen at the address at which executors reach the driver."""
        host = query.conf_value("spark.driver.host")
        bind = query.conf_value("spark.driver.bindAddress") or host
        if is_local_master(effective_master(self._spec)):
            host = bind = LOOPBACK
        return ControlServer(
            epoch_s=self._spec.epoch_s,
            protocol=control_protocol(self._spec, has_tls_psk=HAS_TLS_PSK),
            bind=bind,
            host=host,
            port=control_port(self._spec),
            keeps_slots=reuses_python_workers(query.conf_value),
        )

    def _end_of_epoch(self, returned: Collection[AttemptEpoch]) -> list[ReceiptRow]:
        """The rows of receipts that slots of the finished epoch did not return."""
        return self._close_epoch(self.epoch, returned)
