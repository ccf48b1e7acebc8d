"""The same on a real Spark cluster: an executor is killed, a worker is lost, no record is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from sparkmirror.engine.assignment import Assignment
from sparkmirror.engine.conf import QUICK_JVM
from sparkmirror.engine.status import Phase, Status
from sparkmirror.engine.supervisor import Supervisor
from sparkmirror.lab.guard import Guard
from sparkmirror.lab.process import Process
from sparkmirror.model import TopicPartition
from tests.support.flows import Flow
from tests.support.followers import Follower, driver_of_this_process
from tests.support.processes import Seen, of_session
from tests.support.standalone import EXECUTOR, TASK, Standalone, standalone
from tests.support.waiting import wait_until
from tests.support.writing import Writer, numbered

TOPIC = "spark-standalone"
TOPICS = {TOPIC: 2}
WORKERS = 3
FENCES = 4
"""One for each takeover, and two for a busy computer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What happened on the cluster."""

    statuses: list[Status]
    tasks: list[Seen]
    tasks_in_driver: list[Seen]
    receipts: list[Path]


def write(writer: Writer, first: int, count: int) -> None:
    for number in range(TOPICS[TOPIC]):
        writer.write_many(TopicPartition(TOPIC, number), numbered(range(first, first + count)))


def busy(cluster: Standalone) -> Process:
    """A worker whose executor has a task: killing another one would prove nothing."""

    def has_task(worker: Process) -> bool:
        executors = {one.pid for one in of_session(worker.pid, EXECUTOR)}
        return any(one.parent in executors for one in of_session(worker.pid, TASK))

    return next(filter(has_task, cluster.workers))


@pytest.fixture(scope="module")
def story(
    flow: Flow, writer: Writer, guard: Guard, tmp_path_factory: pytest.TempPathFactory
) -> Story:
    """Copy on three workers with two tasks; kill an executor, then a worker with all it runs."""
    directory = tmp_path_factory.mktemp("standalone")
    log = directory / "log"
    flow.create_many({TOPIC: (TOPICS[TOPIC], {}, {})})
    write(writer, 0, 500)
    settings = {"report_every_s": 0.5, "lease_s": 60.0}
    with standalone(guard, directory, workers=WORKERS) as cluster:
        assignment = Assignment(
            job=flow.job(TOPICS, tasks=2, settings=settings, silence_s=50.0),
            receipts=str(directory / "receipts"),
            log=str(log),
            master=cluster.master,
            conf={
                "spark.driver.host": "127.0.0.1",
                "spark.executor.memory": "512m",
                "spark.executor.extraJavaOptions": QUICK_JVM,
            },
        )
        with Supervisor(assignment) as supervisor:
            follower = Follower(supervisor, flow, TOPICS, log)
            follower.until("all slots", lambda status: status.slots == WORKERS)
            follower.until_copied()
            tasks = cluster.tasks()
            tasks_in_driver = of_session(driver_of_this_process(), "pyspark.worker")
            [victim] = of_session(busy(cluster).pid, EXECUTOR)
            victim.kill()
            write(writer, 500, 500)
            wait_until(lambda: victim not in cluster.executors(), "the executor to be gone")
            follower.until_copied()
            for process in of_session(busy(cluster).pid):
                process.kill()
            write(writer, 1000, 500)
            follower.until_copied()
            supervisor.drain()
            statuses = follower.rest()
    return Story(
        statuses=statuses,
        tasks=tasks,
        tasks_in_driver=tasks_in_driver,
        receipts=list((directory / "receipts").rglob("*.parquet")),
    )


def test_tasks_run_in_executors_not_in_the_driver(story: Story) -> None:
    assert len(story.tasks) >= 2
    assert story.tasks_in_driver == []


def test_nothing_is_lost_or_doubled_when_executors_and_workers_die(
    story: Story, flow: Flow
) -> None:
    flow.assert_mirrored(TOPICS, fences=FENCES)


def test_a_dead_executor_does_not_end_the_driver(story: Story) -> None:
    assert len({status.application_id for status in story.statuses} - {""}) == 1
    assert {status.phase for status in story.statuses} <= {
        Phase.STARTING,
        Phase.RUNNING,
        Phase.DRAINING,
        Phase.STOPPED,
    }
    assert story.statuses[-1].phase is Phase.STOPPED


def test_slots_are_those_of_the_cluster(story: Story) -> None:
    assert max(status.slots for status in story.statuses) == WORKERS


def test_receipts_come_back_from_the_executors(story: Story) -> None:
    assert story.receipts
