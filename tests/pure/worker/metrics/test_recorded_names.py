"""The series have the names and labels that Strimzi's rules give the MBeans of a Java worker.

The recording is of a worker with two tasks of `mm2-msc`. What it has of clients with other roles,
of the task figures of other connectors, and topics with underscores in place of dots (deprecated
since Kafka 4.1), is left out.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.connect.connectors.checkpoint.checkpoint_latency import CheckpointKey
from sparkmirror.connect.distributed.assignment import Assignment, MemberShare
from sparkmirror.connect.distributed.rebalance_times import RebalanceTimes
from sparkmirror.connect.herder.herder import ConnectorStateInfo, StateInfo
from sparkmirror.connect.herder.mirror_monitor_api import HerderFigures
from sparkmirror.copy.snapshot import CopySnapshot, PartitionView
from sparkmirror.engine.noop_conductor import job_without_partitions
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus
from sparkmirror.model import SourceAndTarget, TopicPartition
from sparkmirror.worker.connector_progress import WorkerMonitor
from sparkmirror.worker.metrics.herder_metrics import HerderReading, herder_figures
from sparkmirror.worker.metrics.metrics_settings import MetricsDetail, MetricsSettings
from tests.support.exposed_series import Series, series, series_of
from tests.support.golden import golden_lines
from tests.support.metric_definitions import DEFINITIONS

WORKER_ID = "127.0.0.1:31083"
CONNECTORS = {"mm2-msc": 2, "mm2-cpc": 1, "mm2-hbc": 1}
PREFIXES = {
    "MirrorSourceConnector": "kafka_connect_mirror_mirrorsourceconnector",
    "MirrorCheckpointConnector": "kafka_connect_mirror_mirrorcheckpointconnector",
    "connect-worker-metrics": "kafka_connect_worker",
    "connect-worker-rebalance-metrics": "kafka_connect_worker_rebalance",
    "connect-coordinator-metrics": "kafka_connect_coordinator",
    "connector-task-metrics": "kafka_connect_connector_task",
    "connector-metrics": "kafka_connect_connector",
    "source-task-metrics": "kafka_connect_source_task",
    "task-error-metrics": "kafka_connect_task_error",
    "consumer-fetch-manager-metrics": "kafka_consumer_fetch_manager",
    "consumer-metrics": "kafka_consumer",
    "producer-metrics": "kafka_producer",
}
"""Strimzi's rules, by the type of the MBean."""
TEXTS = ("connector-class", "connector-type", "connector-version")
FLOW = SourceAndTarget("source", "target")


def recorded_series() -> Iterator[Series]:
    for bean in golden_lines("metrics/mbeans.jsonl"):
        keys = dict(part.split("=", 1) for part in bean["mbean"].partition(":")[2].split(","))
        prefix = PREFIXES[keys.pop("type")]
        labels = {key.replace("-", ""): value for key, value in keys.items()}
        for attribute, value in bean["attributes"].items():
            if attribute == "status" and "task" in labels:
                yield series("kafka_connect_connector_status", **labels, status=value)
                yield series("kafka_connect_connector_task_status", **labels, status=value)
            elif attribute in TEXTS and "task" not in labels:
                text = attribute.replace("-", "_")
                yield series(f"{prefix}_{text}", **labels, **{text: value})
            elif attribute not in ("status", *TEXTS):
                yield series(f"{prefix}_{attribute.replace('-', '_')}", **labels)


OF_SOURCE_TASKS = (
    "kafka_connect_source_task_",
    "kafka_connect_task_error_",
    "kafka_connect_connector_task_offset_",
)


def expected_series() -> set[Series]:
    return {
        (name, labels)
        for name, labels in recorded_series()
        if name in DEFINITIONS
        and not (name.startswith(OF_SOURCE_TASKS) and dict(labels)["connector"] != "mm2-msc")
        and "offset-syncs-source-consumer" not in dict(labels).get("clientid", "")
        and dict(labels).get("topic") != "my_dotted_topic"
    }


def tasks_of_the_recording() -> dict[int, list[TopicPartition]]:
    tasks: defaultdict[int, list[TopicPartition]] = defaultdict(list)
    for name, labels in expected_series():
        values = dict(labels)
        if name == "kafka_consumer_fetch_manager_records_lag":
            [task] = re.findall(r"mm2-msc-(\d)", values["clientid"])
            tasks[int(task)].append(TopicPartition(values["topic"], int(values["partition"])))
    return tasks


def worker_series(detail: MetricsDetail = MetricsDetail.PARTITION) -> dict[Series, float]:
    """The series of a worker that runs what the recorded one ran."""
    tasks = tasks_of_the_recording()
    topics = {partition.topic for each in tasks.values() for partition in each}
    job = replace(
        job_without_partitions(2),
        connector="mm2-msc",
        remote_topics={topic: f"source.{topic}" for topic in topics},
        tasks={task: tuple(each) for task, each in tasks.items()},
    )
    monitor = WorkerMonitor()
    flow = monitor.for_flow(metrics=MetricsSettings(detail=detail))
    flow.on_plan("mm2-msc", job)
    views = {
        str(partition): PartitionView(
            remote=job.remote_topics[partition.topic],
            task=task,
            state="leased",
            position=1,
            end=1,
        )
        for partition, task in job.task_of_partition().items()
    }
    snapshot = CopySnapshot(partitions=views)
    flow.on_status("mm2-msc", DriverStatus(phase=DriverPhase.RUNNING, snapshot=snapshot))
    for name, labels in recorded_series():
        if name == "kafka_connect_mirror_mirrorcheckpointconnector_checkpoint_latency_ms":
            of = dict(labels)
            partition = TopicPartition(of["topic"], int(of["partition"]))
            key = CheckpointKey("mm2-cpc", FLOW, of["group"], partition)
            flow.group_reports.latencies.record([key], 1.0)
    rebalances = RebalanceTimes()
    rebalances.on_began()
    rebalances.on_completed()
    reading = HerderReading(prefix="", herder=herder(), rebalances=rebalances.summary())
    return series_of([*herder_figures([reading]), *monitor.figures()])


def herder() -> HerderFigures:
    running = StateInfo(state="RUNNING", worker_id=WORKER_ID, version="4.3.0")
    share = MemberShare(
        worker_id=WORKER_ID,
        url="",
        connectors=frozenset(CONNECTORS),
        tasks=frozenset(
            ConnectorTaskId(connector=name, task=task)
            for name, count in CONNECTORS.items()
            for task in range(count)
        ),
    )
    return HerderFigures(
        worker_id=WORKER_ID,
        assignment=Assignment(
            generation=6, member_id="m", leader_id="m", config_offset=0, shares={"m": share}
        ),
        statuses={
            name: ConnectorStateInfo(
                name=name,
                connector=running,
                tasks=dict.fromkeys(range(count), running),
                type="source",
            )
            for name, count in CONNECTORS.items()
        },
        classes={
            name: f"org.apache.kafka.connect.mirror.Mirror{kind}Connector"
            for name, kind in (
                ("mm2-msc", "Source"),
                ("mm2-cpc", "Checkpoint"),
                ("mm2-hbc", "Heartbeat"),
            )
        },
    )


def test_every_series_with_a_name_of_java_is_one_of_the_recording_and_none_is_missing() -> None:
    own = {one for one in worker_series() if not one[0].startswith("sparkmirror_")}
    assert len(own) > 200
    assert own == expected_series()


def test_every_metric_of_a_topic_may_have_partitions_only_where_java_has_them() -> None:
    recorded = {name: {key for key, _ in labels} for name, labels in expected_series()}
    for definition in DEFINITIONS.values():
        if definition.name in recorded:
            assert definition.all_labels == recorded[definition.name], definition.name
        else:
            assert definition.name.startswith(("sparkmirror_", "process_")), definition.name


def test_without_a_request_no_series_has_a_partition() -> None:
    found = worker_series(MetricsDetail.TOPIC)
    labels = {key for _, given in found for key, _ in given}
    assert "topic" in labels and "partition" not in labels
    assert {name for name, _ in found} == {name for name, _ in worker_series()}
