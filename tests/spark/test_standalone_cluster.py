"""Copying on a real Spark cluster: an executor and a worker die, and no record is lost.

A query is evaluated by a Spark beside the slot, which ends with the slot.

The commands of docs/spark.md start a cluster on this computer and copy a topic on it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.describe_topics import NewTopic
from sparkmirror.cluster.produce_and_consume import read_topic
from sparkmirror.copy.job import CopyJob
from sparkmirror.engine.driver.spark_conf import FAST_START_JVM_OPTIONS
from sparkmirror.engine.supervisor.driver_spec import DriverSpec
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus
from sparkmirror.engine.supervisor.single_job_supervisor import SingleJobSupervisor
from sparkmirror.lab.processes.port_registry import PortRegistry
from sparkmirror.lab.processes.process_identity import Process
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.records import Record
from tests.support.cli.mirror_process import SPARK_TIMEOUT_S
from tests.support.cli.page_commands import program_directory, shell_blocks
from tests.support.copy.copy_flow import CopyFlow
from tests.support.kafka.batch_writer import BatchWriter, numbered_records
from tests.support.kafka.partition_log import assert_copied
from tests.support.processes import RunningProcess, all_processes, session_processes
from tests.support.spark.standalone_cluster import (
    EXECUTOR,
    PYTHON_WORKER,
    StandaloneCluster,
    jvm_options,
    running_standalone_cluster,
)
from tests.support.spark.status_follower import StatusFollower, own_driver_pid
from tests.support.waiting import wait_until

TOPIC = "spark-standalone"
TOPICS = {TOPIC: 2}
WORKERS = 2
QUERIED_TOPIC = "spark-standalone-query"
QUERY = {
    "sparkmirror.transform.sql": (
        "SELECT * EXCEPT (value), upper(CAST(value AS STRING)) AS value FROM records"
        " WHERE CAST(key AS STRING) NOT LIKE '%3'"
    )
}
QUERY_PROCESS, GATEWAY = "executor_query_main", "PythonGatewayServer"
PAGE, PAGE_PORT, PAGE_TOPIC = "spark.md", "7077", "orders"
TYPED_TOPIC = "spark-standalone-page"
SETTINGS = {"report_interval_s": 0.5, "lease_timeout_s": 60.0}
FENCES = 4
"""One for each takeover, and two for a busy computer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandaloneRun:
    """The result of one run on the cluster."""

    statuses: list[DriverStatus]
    tasks: list[RunningProcess]
    tasks_in_driver: list[RunningProcess]
    receipts: list[Path]


def write(writer: BatchWriter, first: int, count: int, topic: str = TOPIC) -> None:
    for number in range(TOPICS.get(topic, 1)):
        writer.write_batches(
            TopicPartition(topic, number), numbered_records(range(first, first + count))
        )


def worker_with_task(cluster: StandaloneCluster) -> Process:
    """Return a worker whose executor runs a task. While tasks move, no executor may have one."""

    def has_task(worker: Process) -> bool:
        executors = {one.pid for one in session_processes(worker.pid, EXECUTOR)}
        return any(one.parent in executors for one in session_processes(worker.pid, PYTHON_WORKER))

    wait_until(lambda: any(map(has_task, cluster.workers)), "an executor with a task")
    return next(filter(has_task, cluster.workers))


def query_processes() -> list[RunningProcess]:
    """The processes that evaluate the queries of slots, and their JVMs."""
    running = all_processes()
    owners = {one.pid for one in running if QUERY_PROCESS in one.command}
    return [
        one
        for one in running
        if one.pid in owners or (GATEWAY in one.command and one.parent in owners)
    ]


@contextmanager
def running_application(
    cluster: StandaloneCluster, flow: CopyFlow, topics: Mapping[str, int], job: CopyJob, log: Path
) -> Iterator[tuple[SingleJobSupervisor, StatusFollower]]:
    """Run a job on the cluster; the receipts are beside the log."""
    spec = DriverSpec(
        jobs=(job,),
        receipts=str(log.parent / "receipts"),
        log=str(log),
        master=cluster.master,
        conf={
            "spark.driver.host": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": jvm_options(),
        },
    )
    with SingleJobSupervisor(spec) as supervisor:
        yield supervisor, StatusFollower(supervisor, flow, topics, log)


@pytest.fixture(scope="module")
def standalone_cluster(
    reaper: ProcessReaper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StandaloneCluster]:
    directory = tmp_path_factory.mktemp("cluster")
    with running_standalone_cluster(reaper, directory, workers=WORKERS) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def standalone_run(
    flow: CopyFlow,
    writer: BatchWriter,
    standalone_cluster: StandaloneCluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> StandaloneRun:
    """Copy on two workers with two tasks; kill an executor, then a worker with all it runs."""
    directory = tmp_path_factory.mktemp("standalone")
    cluster = standalone_cluster
    flow.create_topics({TOPIC: (TOPICS[TOPIC], {}, {})})
    write(writer, 0, 500)
    job = flow.job(TOPICS, tasks=2, settings=SETTINGS, task_timeout_s=50.0)
    with running_application(cluster, flow, TOPICS, job, directory / "log") as running:
        supervisor, follower = running
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


def test_tasks_run_in_executors_not_in_the_driver(standalone_run: StandaloneRun) -> None:
    assert len(standalone_run.tasks) >= 2
    assert standalone_run.tasks_in_driver == []


def test_no_record_is_lost_or_copied_twice_when_executors_and_workers_die(
    standalone_run: StandaloneRun, flow: CopyFlow
) -> None:
    flow.assert_mirrored(TOPICS, fences=FENCES)


def test_a_dead_executor_does_not_end_the_driver(standalone_run: StandaloneRun) -> None:
    assert len({status.application_id for status in standalone_run.statuses} - {""}) == 1
    assert {status.phase for status in standalone_run.statuses} <= {
        DriverPhase.STARTING,
        DriverPhase.RUNNING,
        DriverPhase.DRAINING,
        DriverPhase.STOPPED,
    }
    assert standalone_run.statuses[-1].phase is DriverPhase.STOPPED


def test_the_slots_are_those_of_the_spark_cluster(standalone_run: StandaloneRun) -> None:
    assert max(status.slots for status in standalone_run.statuses) == WORKERS


def test_receipts_of_executors_are_written(standalone_run: StandaloneRun) -> None:
    assert standalone_run.receipts


def queried(records: list[Record]) -> list[Record]:
    """What the query makes of records."""
    return [
        record._replace(value=(record.value or b"").upper())
        for record in records
        if not (record.key or b"").endswith(b"3")
    ]


def test_a_query_is_evaluated_beside_the_slot_and_ends_with_it(
    flow: CopyFlow, writer: BatchWriter, standalone_cluster: StandaloneCluster, tmp_path: Path
) -> None:
    topics = {QUERIED_TOPIC: 1}
    named = replace(flow, name=f"{flow.name}-query")
    named.create_topics({QUERIED_TOPIC: (1, {}, {})})
    write(writer, 0, 500, QUERIED_TOPIC)
    job = named.job(topics, settings={**SETTINGS, "transforms": QUERY}, task_timeout_s=50.0)
    log = tmp_path / "log"
    with running_application(standalone_cluster, named, topics, job, log) as running:
        supervisor, follower = running
        follower.wait_until_copied()
        before = query_processes()
        [process, jvm] = sorted(before, key=lambda one: GATEWAY in one.command)
        assert process.parent in {task.pid for task in standalone_cluster.tasks()}
        assert jvm.parent == process.pid
        [slot] = [task for task in standalone_cluster.tasks() if task.pid == process.parent]
        write(writer, 500, 500, QUERIED_TOPIC)
        slot.kill()
        gone = {one.pid for one in before}
        wait_until(
            lambda: not gone & {one.pid for one in all_processes()},
            "the process for queries and its JVM to end with the slot",
            timeout_s=20,
        )
        follower.wait_until_copied()
        supervisor.drain()
        follower.wait_for_end()
    wait_until(lambda: not query_processes(), "the JVM to end with the application")
    [(source, target)] = named.all_partition_logs([TopicPartition(QUERIED_TOPIC, 0)])
    assert_copied(queried(source.records), target, fences=FENCES)


@pytest.mark.soak
def test_the_commands_of_the_page_start_a_cluster_and_copy_a_topic(
    flow: CopyFlow, writer: BatchWriter, reaper: ProcessReaper, tmp_path: Path
) -> None:
    [written] = [block for block in shell_blocks(PAGE) if "deploy.master.Master" in block]
    [port] = PortRegistry().claim(1, tmp_path)
    typed = written.replace(PAGE_PORT, str(port)).replace(PAGE_TOPIC, TYPED_TOPIC)
    assert (written.count(PAGE_PORT), written.count(PAGE_TOPIC)) == (3, 1)
    partition = TopicPartition(TYPED_TOPIC, 0)
    with Admin(flow.source) as admin:
        admin.create_topic(NewTopic(name=TYPED_TOPIC, partitions=1))
    records = numbered_records(range(100))
    writer.write_batches(partition, records)
    environ = {
        **os.environ,
        "PATH": f"{program_directory(tmp_path)}:{os.environ['PATH']}",
        "PRIMARY": flow.source_properties["bootstrap.servers"],
        "BACKUP": flow.target_properties["bootstrap.servers"],
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
        "SPARK_DAEMON_JAVA_OPTS": FAST_START_JVM_OPTIONS,
    }
    log = tmp_path / "log"
    command = ["bash", "-c", f"{typed}\necho ended with $?"]
    shell = reaper.launch(command, log=log, cwd=tmp_path, environ=environ)
    try:
        shell.wait_for_exit(SPARK_TIMEOUT_S)
        assert "ended with 0" in log.read_text("utf-8"), log.read_text("utf-8")[-3000:]
    finally:
        for process in session_processes(shell.pid):
            process.kill()
        reaper.unregister(shell)
    copied = [record.value for record in read_topic(flow.target, TYPED_TOPIC)]
    assert copied == [record.value for record in records]
