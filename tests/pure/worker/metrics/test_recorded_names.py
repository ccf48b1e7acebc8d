"""The series have the names and labels that rule sets give the MBeans of a Java worker.

Every figure of the recordings is exposed, or is in the list of absent ones. The recordings are of a
worker with two tasks of `mm2-msc`. What they have of clients with other roles, and of topics with
underscores in place of dots (deprecated since Kafka 4.1), is left out.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.connect.connectors.checkpoint.checkpoint_latency import CheckpointKey
from sparkmirror.connect.distributed.assignment import Assignment, MemberShare
from sparkmirror.connect.distributed.rebalance_times import RebalanceTimes
from sparkmirror.connect.herder.herder import ConnectorStateInfo, StateInfo
from sparkmirror.connect.herder.mirror_monitor_api import HerderFigures
from sparkmirror.connect.runtime.status.task_state_times import TaskTimeShares
from sparkmirror.copy.snapshot import CopySnapshot, PartitionView
from sparkmirror.engine.noop_conductor import job_without_partitions
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus
from sparkmirror.metrics.definition import Figure, RuleSet
from sparkmirror.metrics.duplicate_series import merge_figures
from sparkmirror.metrics.exposition import render
from sparkmirror.metrics.names.absent_metrics import ABSENT_METRICS
from sparkmirror.metrics.names.exposed_names import expose
from sparkmirror.metrics.names.mbeans import MBEAN_TYPES, MBeanType, jmx_name, strimzi_name
from sparkmirror.model import SourceAndTarget, TopicPartition
from sparkmirror.worker.connector_progress import WorkerMonitor
from sparkmirror.worker.metrics.coordinator_figures import (
    HerderReading,
    ProgramInfo,
    program_figures,
)
from sparkmirror.worker.metrics.herder_metrics import herder_figures
from sparkmirror.worker.metrics.metrics_settings import MetricsDetail, MetricsSettings
from tests.support.exposed_series import Series, series, series_of
from tests.support.golden import golden_lines
from tests.support.metric_definitions import DEFINITIONS

WORKER_ID = "127.0.0.1:31083"
CONNECTORS = {"mm2-msc": 2, "mm2-cpc": 1, "mm2-hbc": 1}
TEXTS = ("connector-class", "connector-type", "connector-version")
GROUP_TEXTS = ("leader-name", "connect-protocol")
LEADER = "http://127.0.0.1:31083/"
INFO = ProgramInfo(version="4.3.0", commit="a9ce3221537b8653", started_s=1794781585.687)
FLOW = SourceAndTarget("source", "target")


def recorded_beans() -> Iterator[tuple[MBeanType, dict[str, str], dict[str, Any]]]:
    """The type, the other keys and the attributes of each MBean."""
    for line in golden_lines("metrics/mbeans.jsonl"):
        domain, _, rest = line["mbean"].partition(":")
        keys = dict(part.split("=", 1) for part in rest.split(","))
        kind = keys.pop("type")
        unknown = MBeanType(domain=domain, type=kind, strimzi="")
        yield MBEAN_TYPES.get(kind, unknown), keys, line["attributes"]


def recorded_series() -> Iterator[Series]:
    """The series that Strimzi's rules make of the MBeans, but of those that are absent here."""
    for bean, keys, attributes in recorded_beans():
        labels = {key.replace("-", ""): value for key, value in keys.items()}
        if bean.type == "app-info":
            yield from program_series(keys, attributes)
            continue
        for attribute, value in attributes.items():
            if any(one.covers_strimzi(bean, attribute) for one in ABSENT_METRICS):
                continue
            if attribute in ("status", *TEXTS, *GROUP_TEXTS):
                yield from text_series(bean, labels, attribute, value)
            elif not attribute.endswith(("-class", "-version")):
                yield series(strimzi_name(bean, attribute), **labels)


def text_series(
    bean: MBeanType, labels: dict[str, str], attribute: str, value: str
) -> Iterator[Series]:
    """The series that Strimzi's rules make of a text."""
    text = attribute.replace("-", "_")
    if attribute == "status":
        if "task" in labels:
            yield series("kafka_connect_connector_status", **labels, status=value)
            yield series("kafka_connect_connector_task_status", **labels, status=value)
    elif "task" not in labels:
        yield series(strimzi_name(bean, attribute), **labels, **{text: value})


def program_series(keys: dict[str, str], attributes: dict[str, Any]) -> Iterator[Series]:
    """The series of the version of a Connect worker."""
    if "client-id" in keys:
        client = keys["client-id"]
        yield series("kafka_connect_start_time_seconds", clientid=client)
        for name in ("version", "commit_id"):
            value = attributes[name.replace("_", "-")]
            yield series(f"kafka_connect_{name}_info", clientid=client, **{name: value})


def expected_series() -> set[Series]:
    return {
        (name, labels)
        for name, labels in recorded_series()
        if "offset-syncs-source-consumer" not in dict(labels).get("clientid", "")
        and dict(labels).get("topic") != "my_dotted_topic"
        and (name, dict(labels).get("connector")) not in BATCH_SIZES_OF_SOURCE_TASKS
    }


BATCH_SIZES_OF_SOURCE_TASKS = {
    (f"kafka_connect_connector_task_batch_size_{suffix}", "mm2-msc") for suffix in ("avg", "max")
}
"""Tasks of a source connector report their batches by topic: `sparkmirror_lane_batches_total`."""


def tasks_of_the_recording() -> dict[int, list[TopicPartition]]:
    tasks: defaultdict[int, list[TopicPartition]] = defaultdict(list)
    for name, labels in expected_series():
        values = dict(labels)
        if name == "kafka_consumer_fetch_manager_records_lag":
            [task] = re.findall(r"mm2-msc-(\d)", values["clientid"])
            tasks[int(task)].append(TopicPartition(values["topic"], int(values["partition"])))
    return tasks


def worker_series(
    detail: MetricsDetail = MetricsDetail.PARTITION, *rule_sets: RuleSet
) -> dict[Series, float]:
    """The series of a worker that runs what the recorded one ran."""
    figures = expose(worker_figures(detail), rule_sets or (RuleSet.STRIMZI,))
    return series_of(merge_figures(figures))


def worker_figures(detail: MetricsDetail) -> list[Figure]:
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
    flow.task_stats.start("mm2-cpc", 0)
    flow.task_stats.start("mm2-hbc", 0).on_heartbeat(1.0)
    rebalances = RebalanceTimes()
    rebalances.on_began()
    rebalances.on_completed()
    reading = HerderReading(prefix="", herder=herder(), rebalances=rebalances.summary())
    return [
        *herder_figures([reading]),
        *program_figures([WORKER_ID], INFO),
        *monitor.figures(),
    ]


def herder() -> HerderFigures:
    running = StateInfo(state="RUNNING", worker_id=WORKER_ID, version="4.3.0")
    share = MemberShare(
        worker_id=WORKER_ID,
        url=LEADER,
        connectors=frozenset(CONNECTORS),
        tasks=frozenset(
            ConnectorTaskId(connector=name, task=task)
            for name, count in CONNECTORS.items()
            for task in range(count)
        ),
    )
    return HerderFigures(
        worker_id=WORKER_ID,
        task_times=dict.fromkeys(share.tasks, TaskTimeShares(running=1.0, paused=0.0)),
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
        elif definition.rule_sets != {RuleSet.JMX}:
            assert definition.name.startswith(("sparkmirror_", "process_")), definition.name


def test_without_a_request_no_series_has_a_partition() -> None:
    found = worker_series(MetricsDetail.TOPIC)
    labels = {key for _, given in found for key, _ in given}
    assert "topic" in labels and "partition" not in labels
    assert {name for name, _ in found} == {name for name, _ in worker_series()}


# -- the names of the JMX exporter without rules -------------------------------------------------


def jmx_names() -> dict[str, list[set[str]]]:
    """The recorded names, each with the sets of labels that its series have."""
    return {
        line["name"]: [set(labels) for labels in line["label_name_sets"]]
        for line in golden_lines("metrics/jmx-exporter-names.jsonl")
    }


def own_jmx_series() -> list[Series]:
    found = worker_series(MetricsDetail.PARTITION, RuleSet.JMX)
    return [one for one in found if not one[0].startswith("sparkmirror_")]


def test_every_name_of_the_jmx_exporter_is_exposed_or_its_absence_has_a_reason() -> None:
    recorded = jmx_names()
    assert sum(name.startswith("kafka_connect_") for name in recorded) == 140
    exposed = {name for name, _ in own_jmx_series()}
    absent = {name for name in recorded if any(one.covers_jmx(name) for one in ABSENT_METRICS)}
    assert exposed & absent == set(), "the reason does not hold any more"
    assert exposed | absent == recorded.keys()
    assert len(exposed) > 90


def test_every_series_has_labels_that_it_has_at_the_jmx_exporter() -> None:
    recorded = jmx_names()
    for name, labels in own_jmx_series():
        assert {key for key, _ in labels} in recorded[name], name


def test_every_entry_of_the_list_of_absent_metrics_is_in_the_recording() -> None:
    names = jmx_names()
    for entry in ABSENT_METRICS:
        assert any(map(entry.covers_jmx, names)), entry.bean
        for attribute in entry.attributes:
            assert jmx_name(entry.bean, attribute) in names, attribute
    listed = [
        (one.bean.domain, one.bean.type, each)
        for one in ABSENT_METRICS
        for each in one.attributes or ("",)
    ]
    assert len(listed) == len(set(listed))


def test_names_of_several_rule_sets_are_there_at_once_with_the_same_values() -> None:
    both = worker_series(MetricsDetail.TOPIC, RuleSet.STRIMZI, RuleSet.JMX)
    for rule_set in (RuleSet.STRIMZI, RuleSet.JMX):
        alone = worker_series(MetricsDetail.TOPIC, rule_set)
        assert alone.keys() <= both.keys()
    labels = {"source": "source", "target": "target", "topic": "source.orders"}
    name = "kafka_connect_mirror_{}_record_count".format
    assert both[series(name("mirrorsourceconnector"), **labels)] == 0
    assert both[series(name("MirrorSourceConnector"), **labels)] == 0


@pytest.mark.parametrize(
    ("accept", "read"),
    [
        ("", text_string_to_metric_families),
        ("application/openmetrics-text", openmetrics.text_string_to_metric_families),
    ],
)
def test_all_names_at_once_can_be_read_in_both_formats(
    accept: str, read: Callable[[str], Iterator[Metric]]
) -> None:
    figures = list(expose(worker_figures(MetricsDetail.PARTITION), tuple(RuleSet)))
    families = list(read(render(figures, accept).content.decode()))
    names = {sample.name for family in families for sample in family.samples}
    assert names == {figure.definition.name for figure in figures}
    assert len({family.name for family in families}) == len(families)
