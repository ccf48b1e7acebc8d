"""The Spark applications of a worker: one for all source connectors with the same Spark settings.

An application starts with its first connector, and ends when it had none for some seconds: a
connector that is stopped and started again, for example with another password, finds it running. A
connector with `spark.*` keys in its own config gets an application of its own. The common
application also runs without a connector while it is kept ready for tasks of other workers. It
starts while a connector makes its first plan, in dedicated mode with the process: Spark takes
seconds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from sparkmirror.copy.job import CopyJob
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.engine.supervisor.driver_status import DriverPhase
from sparkmirror.engine.supervisor.driver_supervisor import DriverSupervisor
from sparkmirror.engine.supervisor.idle_driver import IdleDriver
from sparkmirror.engine.supervisor.supervised_job import SupervisedJob
from sparkmirror.worker.spark.copy_job_comparison import is_same_but_for_tasks
from sparkmirror.worker.spark.driver_log_levels import DriverLogLevels
from sparkmirror.worker.spark.spark_settings import SparkSettings, own_spark_conf

IDLE_TIMEOUT_S = 5.0
"""An application without a connector ends after so long."""
_COMMON = ""
"""The owner of the application that connectors share."""
EARLY_START_S = 30.0
"""An application that was started early ends if no connector has come after so long."""
_EARLY = "early"
"""The name under which an application is kept that was started early; no group has it."""
CLOSE_TIMEOUT_S = 30.0
"""How long an application may take to write its receipts at the end of the worker."""


def create_supervisor(spec: DriverSpec) -> DriverSupervisor:
    """Return the supervisor of an application that ends when it has no connector."""
    return DriverSupervisor(spec, idle_timeout_s=IDLE_TIMEOUT_S)


class SparkApplications:
    """Starts jobs in applications. Any thread may call it."""

    def __init__(
        self,
        settings: SparkSettings,
        log_levels: DriverLogLevels | None = None,
        create: Callable[[DriverSpec], DriverSupervisor] = create_supervisor,
        idle_driver: IdleDriver | None = None,
    ) -> None:
        """The common application uses `idle_driver` if it starts."""
        self._idle_driver = idle_driver
        self._settings = settings
        self._log_levels = log_levels or DriverLogLevels()
        self._create = create
        self._lock = threading.Lock()
        self._ready_tasks: dict[str, int] = {}
        """How many tasks each group may take over from other workers, or will have soon."""
        self._is_closed = False
        self._prepared: dict[str, SupervisedJob] = {}
        """Jobs without tasks, by name: tasks may come soon from another worker."""
        self._supervisors: dict[str, DriverSupervisor] = {}
        """By the name of the job that has the application alone; the common one has no name."""

    def start_job(self, job: CopyJob, own_conf: Mapping[str, str]) -> SupervisedJob:
        """Run a job. `own_conf` has the Spark settings of its connector, usually none."""
        owner = job.name if own_conf else _COMMON
        self._stop_outdated(job, is_common=owner == _COMMON)
        with self._lock:
            was_planning = self._ready_tasks.pop(_planning(job.connector), 0)
            prepared = self._take_prepared(job, is_common=owner == _COMMON)
            known = self._supervisors.get(owner)
            if known and (started := prepared or known.start_job(job)):
                if was_planning:
                    known.keep_ready(sum(self._ready_tasks.values()))
                return started
            supervisor = self._new_supervisor(owner, own_conf)
            started = supervisor.start_job(job)
            assert started is not None, "a new supervisor starts every job"
            supervisor.start()
            return started

    def prepare_job(self, job: CopyJob) -> None:
        """Start a job without tasks in the common application, if that is ready for tasks.

        `start_job` goes on with it.
        """
        assert not job.tasks, "a job that is prepared copies nothing"
        with self._lock:
            known = self._supervisors.get(_COMMON)
            if self._is_closed or known is None or not known.status.is_ready:
                return
            if not known.has_job(job.name) and (started := known.start_job(job)):
                self._prepared[job.name] = started

    def is_prepared(self, job_name: str) -> bool:
        """Whether a prepared job runs, or has a problem; also if there is none of that name."""
        with self._lock:
            prepared = self._prepared.get(job_name)
        if prepared is None or prepared.is_ending or prepared.is_finished:
            return True
        status = prepared.status
        return status.phase is not DriverPhase.STARTING or bool(status.problem)

    def forget_prepared(self, job_name: str) -> None:
        """End a job that was prepared, unless `start_job` has used it. Returns at once."""
        with self._lock:
            if prepared := self._prepared.get(job_name):
                prepared.drain()

    def _stop_outdated(self, job: CopyJob, *, is_common: bool) -> None:
        """End a prepared job that cannot go on with this plan. Blocks, without the lock."""
        with self._lock:
            prepared = self._prepared.get(job.name)
            if prepared is None or _can_continue(prepared, job, is_common=is_common):
                return
            del self._prepared[job.name]
        if not prepared.is_finished:
            prepared.stop()

    def _take_prepared(self, job: CopyJob, *, is_common: bool) -> SupervisedJob | None:
        """Return the prepared job with this plan; None if there is none that can go on with it."""
        prepared = self._prepared.pop(job.name, None)
        if prepared is None or not _can_continue(prepared, job, is_common=is_common):
            return None
        prepared.replan(job)
        return prepared

    def keep_ready(self, group: str, tasks: int) -> None:
        """Keep the common application ready to take over so many tasks of a group at once."""
        with self._lock:
            self._ready_tasks.pop(group, None)
            if tasks:
                self._ready_tasks[group] = tasks
            total, known = sum(self._ready_tasks.values()), self._supervisors.get(_COMMON)
            if (known and known.keep_ready(total)) or not total or self._is_closed:
                return
            if known and known.failure():
                return  # the next connector that starts tries again
            supervisor = self._new_supervisor(_COMMON, {})
            supervisor.keep_ready(total)
            supervisor.start()

    def start_early(self) -> None:
        """Start the common application for connectors that the worker is going to start."""
        self.keep_ready(_EARLY, 1)
        timer = threading.Timer(EARLY_START_S, self.keep_ready, (_EARLY, 0))
        timer.daemon = True
        timer.start()

    def end_idle_driver(self) -> None:
        """End a driver process that no application has used."""
        with self._lock:
            driver, self._idle_driver = self._idle_driver, None
        if driver is not None:
            driver.close()

    def on_planning(self, connector: str, config: Mapping[str, str]) -> None:
        """Start the common application for a connector whose tasks come soon."""
        if not own_spark_conf(config):
            self.keep_ready(_planning(connector), 1)
            self.keep_ready(_EARLY, 0)

    def on_no_tasks(self, connector: str) -> None:
        """Keep the application no longer for this connector."""
        self.keep_ready(_planning(connector), 0)

    def is_ready(self) -> bool:
        """Whether a task that comes to the common application starts at once, or never."""
        with self._lock:
            known = self._supervisors.get(_COMMON)
            return known is not None and (known.status.is_ready or known.failure() is not None)

    def _new_supervisor(self, owner: str, own_conf: Mapping[str, str]) -> DriverSupervisor:
        supervisor = self._create(self._settings.driver_spec(owner, own_conf))
        self._supervisors[owner] = supervisor
        self._log_levels.add_driver(supervisor)
        if owner == _COMMON:
            supervisor.keep_ready(sum(self._ready_tasks.values()))
            if self._idle_driver is not None:
                supervisor.use(self._idle_driver)
                self._idle_driver = None
        return supervisor

    def close(self) -> None:
        """End all applications. Their jobs should have ended before."""
        with self._lock:
            self._is_closed = True
            supervisors = list(self._supervisors.values())
        self.end_idle_driver()
        for supervisor in supervisors:
            supervisor.drain()
        for supervisor in supervisors:
            supervisor.wait(CLOSE_TIMEOUT_S)
            supervisor.stop()


def _planning(connector: str) -> str:
    """Return the name under which Spark is kept ready for a connector; no group has it."""
    return f"planning/{connector}"


def _can_continue(prepared: SupervisedJob, job: CopyJob, *, is_common: bool) -> bool:
    """Whether a prepared job can go on with the tasks of this plan."""
    is_usable = is_common and not prepared.is_ending and not prepared.is_finished
    return is_usable and is_same_but_for_tasks(prepared.job, job)
