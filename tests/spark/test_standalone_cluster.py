"""The same on a real Spark cluster: an executor is killed, a worker is lost, no record is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from sparkmirror.engine.driver.spark_conf import FAST_START_JVM_OPTIONS
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus
from sparkmirror.engine.supervisor.driver_supervisor import DriverSupervisor
from sparkmirror.lab.processes.process import Process
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from sparkmirror.model import TopicPartition
from tests.support.copy.copy_flow import CopyFlow
from tests.support.kafka.batch_writer import BatchWriter, numbered_records
from tests.support.processes import RunningProcess, session_processes
from tests.support.spark.standalone_cluster import (
    EXECUTOR,
    PYTHON_WORKER,
    StandaloneCluster,
    running_standalone_cluster,
)
from tests.support.spark.status_follower import StatusFollower, own_driver_pid
from tests.support.waiting import wait_until

TOPIC = "spark-standalone"
TOPICS = {TOPIC: 2}
WORKERS = 3
FENCES = 4
"""One for each takeover, and two for a busy computer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandaloneRun:
    """What happened on the cluster."""

    statuses: list[DriverStatus]
    tasks: list[RunningProcess]
    tasks_in_driver: list[RunningProcess]
    receipts: list[Path]


def write(writer: BatchWriter, first: int, count: int) -> None:
    for number in range(TOPICS[TOPIC]):
        writer.write_batches(
            TopicPartition(TOPIC, number), numbered_records(range(first, first + count))
        )


def worker_with_task(cluster: StandaloneCluster) -> Process:
    """A worker whose executor has a task: killing another one would prove nothing."""

    def has_task(worker: Process) -> bool:
        executors = {one.pid for one in session_processes(worker.pid, EXECUTOR)}
        return any(one.parent in executors for one in session_processes(worker.pid, PYTHON_WORKER))

    return next(filter(has_task, cluster.workers))


@pytest.fixture(scope="module")
def story(
    flow: CopyFlow,
    writer: BatchWriter,
    guard: ProcessReaper,
    tmp_path_factory: pytest.TempPathFactory,
) -> StandaloneRun:
    """Copy on three workers with two tasks; kill an executor, then a worker with all it runs."""
    directory = tmp_path_factory.mktemp("standalone")
    log = directory / "log"
    flow.create_topics({TOPIC: (TOPICS[TOPIC], {}, {})})
    write(writer, 0, 500)
    settings = {"report_interval_s": 0.5, "lease_timeout_s": 60.0}
    with running_standalone_cluster(guard, directory, workers=WORKERS) as cluster:
        assignment = DriverSpec(
            job=flow.job(TOPICS, tasks=2, settings=settings, task_timeout_s=50.0),
            receipts=str(directory / "receipts"),
            log=str(log),
            master=cluster.master,
            conf={
                "spark.driver.host": "127.0.0.1",
                "spark.executor.memory": "512m",
                "spark.executor.extraJavaOptions": FAST_START_JVM_OPTIONS,
            },
        )
        with DriverSupervisor(assignment) as supervisor:
            follower = StatusFollower(supervisor, flow, TOPICS, log)
            follower.wait_for_status("all slots", lambda status: status.slots == WORKERS)
            follower.wait_until_copied()
            tasks = cluster.tasks()
            tasks_in_driver = session_processes(own_driver_pid(), "pyspark.worker")
            [victim] = session_processes(worker_with_task(cluster).pid, EXECUTOR)
            victim.kill()
            write(writer, 500, 500)
            wait_until(lambda: victim not in cluster.executors(), "the executor to be gone")
            follower.wait_until_copied()
            for process in session_processes(worker_with_task(cluster).pid):
                process.kill()
            write(writer, 1000, 500)
            follower.wait_until_copied()
            supervisor.drain()
            statuses = follower.wait_for_end()
    return StandaloneRun(
        statuses=statuses,
        tasks=tasks,
        tasks_in_driver=tasks_in_driver,
        receipts=list((directory / "receipts").rglob("*.parquet")),
    )


def test_tasks_run_in_executors_not_in_the_driver(story: StandaloneRun) -> None:
    assert len(story.tasks) >= 2
    assert story.tasks_in_driver == []


def test_nothing_is_lost_or_doubled_when_executors_and_workers_die(
    story: StandaloneRun, flow: CopyFlow
) -> None:
    flow.assert_mirrored(TOPICS, fences=FENCES)


def test_a_dead_executor_does_not_end_the_driver(story: StandaloneRun) -> None:
    assert len({status.application_id for status in story.statuses} - {""}) == 1
    assert {status.phase for status in story.statuses} <= {
        DriverPhase.STARTING,
        DriverPhase.RUNNING,
        DriverPhase.DRAINING,
        DriverPhase.STOPPED,
    }
    assert story.statuses[-1].phase is DriverPhase.STOPPED


def test_slots_are_those_of_the_cluster(story: StandaloneRun) -> None:
    assert max(status.slots for status in story.statuses) == WORKERS


def test_receipts_come_back_from_the_executors(story: StandaloneRun) -> None:
    assert story.receipts
