"""One job of a driver: its conductor starts, is replaced, fails alone, drains and ends."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from sparkmirror.backoff import Backoff
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.snapshot import CopySnapshot, PartitionView
from sparkmirror.engine.driver.conductor_api import ConductorApi
from sparkmirror.engine.driver.jobs.driver_job import MAX_FAILED_STARTS, DriverJob
from sparkmirror.engine.noop_conductor import NoopConductor, job_without_partitions
from sparkmirror.engine.supervisor.driver_status import DriverPhase
from sparkmirror.errors import ClusterError, ClusterUnavailable, ConfigError
from tests.support.waiting import wait_until

JOB = job_without_partitions(2)


@dataclass(slots=True)
class RecordingRunner:
    """A TaskRunner that records the tasks of each job."""

    tasks: dict[str, tuple[int, ...]] = field(default_factory=dict)
    restarted: list[int] = field(default_factory=list)

    def set_job(
        self, name: str, conductor: ConductorApi, tasks: Collection[int], flow: str = ""
    ) -> None:
        self.tasks[name] = tuple(tasks)

    def remove_job(self, name: str) -> None:
        self.tasks.pop(name, None)

    def restart_tasks(self, name: str, tasks: Collection[int]) -> None:
        self.restarted += tasks


@dataclass(slots=True)
class ScriptedConductor(NoopConductor):
    """A conductor that fails as a test says."""

    start_errors: list[Exception] = field(default_factory=list)
    error: Exception | None = None
    shown: CopySnapshot = field(default_factory=CopySnapshot)
    was_cancelled: bool = False
    was_stopped: bool = False

    def start(self) -> None:
        if self.start_errors:
            raise self.start_errors.pop(0)

    def failure(self) -> Exception | None:
        return self.error

    def snapshot(self) -> CopySnapshot:
        return self.shown

    def cancel(self) -> None:
        self.was_cancelled = True
        self.start_errors.clear()

    def stop(self) -> None:
        self.was_stopped = True


@dataclass(slots=True)
class RunningJob:
    """A job whose conductors a test creates."""

    conductors: list[ScriptedConductor]
    runner: RecordingRunner = field(default_factory=RecordingRunner)
    job: DriverJob = field(init=False)
    _created: int = 0

    def __post_init__(self) -> None:
        self.job = DriverJob(
            JOB, lambda _: self._next(), self.runner, Backoff(initial_s=0.01, max_s=0.02)
        )
        self.job.start()

    def _next(self) -> ScriptedConductor:
        self._created += 1
        return self.conductors[min(self._created, len(self.conductors)) - 1]

    def is_in(self, phase: DriverPhase) -> Callable[[], bool]:
        return lambda: self.job.phase is phase

    def end(self) -> None:
        self.job.cancel()
        self.job.wait(50)


def conductor(*start_errors: Exception) -> ScriptedConductor:
    return ScriptedConductor(JOB, start_errors=list(start_errors))


def test_the_tasks_of_a_job_run_when_both_clusters_answer() -> None:
    refused = ClusterUnavailable("source", "not there yet")
    started = RunningJob([conductor(refused)])
    wait_until(lambda: "waiting for source cluster" in started.job.problem, "the problem")
    assert started.runner.tasks == {}
    wait_until(lambda: bool(started.runner.tasks), "the tasks")
    assert (started.runner.tasks, started.job.problem) == ({JOB.name: (0, 1)}, "")
    assert started.job.phase is DriverPhase.RUNNING
    started.end()


def test_a_plan_and_a_pause_reach_the_conductor_and_the_slots() -> None:
    started = RunningJob([conductor()])
    wait_until(started.is_in(DriverPhase.RUNNING), "the conductor")
    for tasks in ((), (0,)):
        plan = replace(JOB, tasks=dict.fromkeys(tasks, ()))
        started.job.replan(plan)
        assert started.runner.tasks == {JOB.name: tasks}
        assert started.conductors[0].job == plan
    started.end()


def test_a_drained_job_ends_when_its_leases_are_back() -> None:
    started = RunningJob([conductor()])
    wait_until(started.is_in(DriverPhase.RUNNING), "the conductor")
    started.job.drain()
    started.job.wait(50)
    assert started.job.phase is DriverPhase.STOPPED
    assert started.runner.tasks == {}
    [only] = started.conductors
    assert (only.was_stopped, only.was_cancelled) == (True, False)


def test_a_job_that_waits_for_a_cluster_ends_at_once() -> None:
    errors = [ClusterUnavailable("source", "down")] * 1000
    started = RunningJob([conductor(*errors)])
    wait_until(lambda: bool(started.job.problem), "the problem")
    started.job.drain()
    started.job.wait(50)
    assert started.job.phase is DriverPhase.STOPPED
    assert started.conductors[0].was_cancelled


def test_what_no_retry_can_heal_makes_the_job_fail() -> None:
    started = RunningJob([conductor(ConfigError.of("topics", "no such topic"))])
    started.job.wait(50)
    assert (started.job.phase, started.job.problem) == (DriverPhase.FAILED, "no such topic")
    assert not started.job.is_retriable


def test_a_query_that_spark_refuses_makes_the_job_fail_with_the_sentence() -> None:
    sentence = "sparkmirror.transform.sql has the operator Sort"

    def refuse(job: CopyJob) -> ScriptedConductor:
        raise ConfigError.of("sparkmirror.transform.sql", sentence)

    job = DriverJob(JOB, refuse, RecordingRunner())
    job.start()
    job.wait(50)
    assert (job.phase, job.problem, job.is_retriable) == (DriverPhase.FAILED, sentence, False)


def test_a_conductor_that_another_one_has_fenced_makes_the_job_fail() -> None:
    started = RunningJob([conductor()])
    wait_until(started.is_in(DriverPhase.RUNNING), "the conductor")
    started.conductors[0].error = ClusterError("target", "another driver uses the fence ids")
    started.job.check()
    started.job.wait(50)
    assert started.job.phase is DriverPhase.FAILED
    assert started.runner.tasks == {}


def test_a_conductor_that_fails_is_followed_by_another() -> None:
    broken, next_one = conductor(), conductor()
    started = RunningJob([broken, next_one])
    wait_until(started.is_in(DriverPhase.RUNNING), "the conductor")
    broken.error = RuntimeError("a bug")
    started.job.check()
    wait_until(lambda: broken.was_stopped, "the end of the first")
    wait_until(lambda: bool(started.runner.tasks), "the tasks of the next one")
    assert started.runner.tasks == {JOB.name: (0, 1)}
    assert started.job.phase is DriverPhase.RUNNING
    started.end()
    assert next_one.was_stopped


def test_conductors_that_never_run_are_given_up() -> None:
    bugs = [conductor(RuntimeError("a bug")) for _ in range(MAX_FAILED_STARTS)]
    started = RunningJob(bugs)
    started.job.wait(50)
    assert (started.job.phase, started.job.problem) == (
        DriverPhase.FAILED,
        "RuntimeError('a bug')",
    )


def test_the_receipts_of_ended_conductors_are_asked_for_twice() -> None:
    """A conductor may end while its tasks are already in the next epoch."""
    broken, next_one = conductor(), conductor()
    started = RunningJob([broken, next_one])
    wait_until(started.is_in(DriverPhase.RUNNING), "the conductor")
    broken.error = RuntimeError("a bug")
    started.job.check()
    wait_until(lambda: broken.was_stopped and bool(started.runner.tasks), "the next one")
    for epoch in (1, 2, 3):
        started.job.close_epoch(epoch, ())
    assert (broken.counts["last_closed_epoch"], next_one.counts["last_closed_epoch"]) == (2, 3)
    started.end()


def test_the_snapshot_of_a_stalled_job_changes_with_its_cause_and_its_partitions() -> None:
    view = PartitionView(remote="A.t", task=0, state="leased", end=7)
    scripted = conductor()
    scripted.shown = CopySnapshot(partitions={"t-0": view})
    started = RunningJob([scripted])
    wait_until(started.is_in(DriverPhase.RUNNING), "the conductor")
    first = started.job.stalled_snapshot("Spark starts")
    assert first.partitions["t-0"] == replace(view, state="waiting", end=-1, reason="Spark starts")
    assert started.job.stalled_snapshot("Spark starts") is first
    other = started.job.stalled_snapshot("the master is gone")
    assert other.partitions["t-0"].reason == "the master is gone"
    scripted.shown = CopySnapshot()
    assert started.job.stalled_snapshot("the master is gone").partitions == {}
    started.end()
