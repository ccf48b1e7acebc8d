"""Flows from and to brokers of Kafka 2.8 and 3.0, and what a worker does on such brokers.

These brokers need ZooKeeper. Their authorizers are on and have no ACLs, as in many tutorials.
"""

from __future__ import annotations

import importlib
import logging
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import pytest

import sparkmirror.cli.check
import sparkmirror.cluster
import sparkmirror.wire.protocol
from sparkmirror.cluster.acls import create_acls, describe_topic_acls
from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.describe_topics import NewTopic
from sparkmirror.copy.delivery import DeliveryMode
from sparkmirror.errors import UnsupportedByBroker
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from sparkmirror.mirror.topics.acls import AclBinding
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.protocol.api_versions import NodeApiVersions
from sparkmirror.wire.protocol.apis import Api
from sparkmirror.wire.protocol.fetch import fetch_version
from sparkmirror.wire.protocol.produce import produce_version
from tests.support.connect.checkpoint_task import (
    commit_group_offsets,
    committed_group_offsets,
    run_until_synced,
    running_checkpoint_task,
)
from tests.support.connect.connector_context import connector_config
from tests.support.connect.connector_flow import ConnectorFlow
from tests.support.connect.in_memory_herder import SOURCE_CONFIG, named_config
from tests.support.connect.log_collector import assert_refused_append_leaves_no_record
from tests.support.connect.source_connector import explicit_configs, started_connector
from tests.support.connect.worker_group import HerderGroup
from tests.support.copy.copy_flow import CopyFlow
from tests.support.copy.exactly_once import assert_exactly_once, assert_ledger_positions
from tests.support.copy.fault_scenario import has_copied_records
from tests.support.kafka.admin_operations import set_topic_config
from tests.support.kafka.batch_writer import (
    MIXED_PARTITIONS,
    SMALL_MESSAGE_LIMIT,
    BatchWriter,
    now_ms,
    numbered_records,
    write_mixed_batches,
)
from tests.support.kafka.bulk_reader import read_partitions
from tests.support.kafka.clusters import SharedCluster, UniqueName, read_acl
from tests.support.kafka.wire_copier import connect_first_broker
from tests.support.waiting import wait_until

log = logging.getLogger(__name__)

AnyApi: TypeAlias = Api[Any, Any]

FETCHING_S = 900
"""The first run on a computer fetches the jars of the versions."""
NEWEST = "newest"
AUTHORIZERS = {
    "3.0.2": "kafka.security.authorizer.AclAuthorizer",
    "2.8.2": "kafka.security.auth.SimpleAclAuthorizer",
}
FLOWS = [flow for version in AUTHORIZERS for flow in ((version, NEWEST), (NEWEST, version))]
SLOW = {"bytes_per_s": 40_000}
"""So slow that the fault hits a running copy."""
COMMIT_INTERVAL_S = 0.5
ABSENT_APIS = {
    "3.0.2": {"ConsumerGroupDescribe", "DescribeQuorum"},
    "2.8.2": {
        "ConsumerGroupDescribe",
        "DescribeQuorum",
        "DescribeTransactions",
        "ListTransactions",
    },
}
"""The APIs that brokers do not have, or in no version that sparkmirror supports.

DescribeGroups replaces ConsumerGroupDescribe. `check` shows no clock without DescribeQuorum. A
fence without ListTransactions knows the tasks of this plan and of the one before.
"""

pytestmark = pytest.mark.timeout(FETCHING_S)


@pytest.fixture(scope="module")
def old_clusters(reaper: ProcessReaper, lab_directory: Path) -> Iterator[dict[str, SharedCluster]]:
    """One cluster of each old version."""
    specs = [
        ClusterSpec(
            name=f"kafka-{version}",
            version=version,
            fast_start=True,
            properties={
                "auto.create.topics.enable": "false",
                "zookeeper.session.timeout.ms": "60000",
                "authorizer.class.name": authorizer,
                "allow.everyone.if.no.acl.found": "true",
                "super.users": "User:ANONYMOUS",
            },
        )
        for version, authorizer in AUTHORIZERS.items()
    ]
    started = Cluster.start_all(specs, lab_directory, reaper, log.info)
    yield {
        cluster.spec.version: SharedCluster(
            name=cluster.name, properties=cluster.client_properties()
        )
        for cluster in started
    }
    for cluster in started:
        cluster.remove()


@pytest.fixture
def clusters(
    old_clusters: dict[str, SharedCluster], backup: SharedCluster
) -> dict[str, SharedCluster]:
    """The clusters by version."""
    return {**old_clusters, NEWEST: backup}


def write_records(cluster: SharedCluster, topic: str) -> int:
    """Write to two partitions; return how many records are committed."""
    headers = ((b"same", b"1"), (b"same", b"2"), (b"null", None))
    plain, transactional = TopicPartition(topic, 0), TopicPartition(topic, 1)
    time = now_ms()
    shapes = [
        Record(0, time, None, None),
        Record(0, time, b"", b""),
        Record(0, time, b"key", b"value", headers),
        *numbered_records(range(200)),
    ]
    writer = BatchWriter(cluster.access)
    try:
        for codec in CompressionType:
            writer.write_batch(plain, shapes, codec)
        transaction = writer.begin_transaction(f"writer-{topic}")
        for number in range(3):
            transaction.write_batch(transactional, numbered_records(range(10)))
            transaction.commit()
            transaction.write_batch(transactional, [Record(0, time, b"k", b"aborted")])
            transaction.abort()
            writer.write_batch(transactional, numbered_records([number]))
    finally:
        writer.close()
    return len(shapes) * len(CompressionType) + 3 * 11


def read_with_librdkafka(cluster: SharedCluster, topic: str) -> list[tuple[int, object]]:
    """Return the committed records of both partitions, without their offsets."""
    records = read_partitions(topic, 2, {"bootstrap.servers": cluster.bootstrap})
    return [(record.partition, record.content) for record in records]


@pytest.mark.parametrize(("source", "target"), FLOWS)
def test_a_flow_copies_every_record_and_translates_groups(
    clusters: dict[str, SharedCluster],
    source: str,
    target: str,
    topic: str,
    unique_name: UniqueName,
) -> None:
    flow = ConnectorFlow(name=topic, source=clusters[source], target=clusters[target], topics=topic)
    flow.create_topics({topic: 2})
    committed = write_records(flow.source, topic)
    flow.copy_to_end()
    original = read_with_librdkafka(flow.source, topic)
    assert len(original) == committed
    assert read_with_librdkafka(flow.target, f"A.{topic}") == original

    group, partition = unique_name("group"), TopicPartition(topic, 1)
    position = 30  # behind aborted records and markers, so the target offset is another one
    commit_group_offsets(flow.source, group, {partition: position})
    intervals = {
        "sync_group_offsets_enabled": "true",
        "sync_group_offsets_interval_seconds": "0",
        "emit_checkpoints_interval_seconds": "0",
    }
    with running_checkpoint_task(flow, group, **intervals) as (task, _):
        run_until_synced(task)
        assert task.current_problem() == ""
    expected = flow.expected_offset(partition, position)
    assert expected != position
    remote = partition._replace(topic=f"A.{topic}")
    assert committed_group_offsets(flow.target, group) == {remote: expected}


@pytest.mark.parametrize(
    ("source", "target"), [("2.8.2", "3.0.2"), ("3.0.2", "2.8.2"), (NEWEST, "2.8.2")]
)
def test_topic_configs_and_acls_are_synced(
    clusters: dict[str, SharedCluster],
    source: str,
    target: str,
    topic: str,
    unique_name: UniqueName,
) -> None:
    with Admin(clusters[source].access) as admin:
        configs = {"retention.ms": "1000000"}
        admin.create_topic(NewTopic(name=topic, partitions=2, configs=configs))
    has_acls = source != NEWEST
    if has_acls:
        _create_acl(clusters[source], read_acl(topic))
    config = connector_config(
        "Source",
        unique_name("connector"),
        clusters[source],
        clusters[target],
        topics=topic,
        sync_topic_configs_interval_seconds="1",
    )
    access = clusters[target].access
    with started_connector(config) as run:
        assert run.assigned_partitions_by_task(1) == [[f"{topic}-0", f"{topic}-1"]]
        assert explicit_configs(access, f"A.{topic}") == configs
        set_topic_config(clusters[source].access, topic, {"retention.ms": "2000000"})
        changed = {"retention.ms": "2000000"}
        wait_until(
            lambda: explicit_configs(access, f"A.{topic}") == changed, "the config to be synced"
        )
        if has_acls:
            expected = read_acl(f"A.{topic}")
            wait_until(lambda: expected in _acls(clusters[target]), "the ACL to be synced")
        assert run.context.problem == ""
        assert run.context.errors == []


def _create_acl(cluster: SharedCluster, acl: AclBinding) -> None:
    router = cluster.access.new_router()
    try:
        assert create_acls(router, [acl]) == {}
    finally:
        router.close()
    wait_until(lambda: acl in _acls(cluster), "the ACL to be in force")


def _acls(cluster: SharedCluster) -> list[AclBinding]:
    router = cluster.access.new_router()
    try:
        return list(describe_topic_acls(router) or ())
    finally:
        router.close()


@pytest.fixture
def flow_to_old(
    clusters: dict[str, SharedCluster], request: pytest.FixtureRequest, topic: str
) -> CopyFlow:
    """A flow from the newest version to that of the test, with a topic of all kinds of batches."""
    source, target = clusters[NEWEST], clusters[request.param]
    flow = CopyFlow(
        name=topic,
        source=source.access,
        target=target.access,
        source_properties=source.properties,
        target_properties=target.properties,
    )
    flow.create_topic(topic, MIXED_PARTITIONS, remote=SMALL_MESSAGE_LIMIT)
    writer = BatchWriter(flow.source)
    write_mixed_batches(writer, topic, records=600)
    writer.close()
    return flow


@pytest.mark.parametrize("flow_to_old", AUTHORIZERS, indirect=True)
def test_partitions_of_a_killed_task_are_fenced_and_every_record_arrives_once(
    flow_to_old: CopyFlow, topic: str
) -> None:
    topics = {topic: MIXED_PARTITIONS}
    with flow_to_old.harness(flow_to_old.job(topics, settings=SLOW)) as harness:
        harness.wait_for_snapshot("copying to begin", has_copied_records)
        harness.kill(0)
        harness.wait_for_event("takeover", times=MIXED_PARTITIONS)
        harness.conductor.set_rate(0)
        harness.wait_until_caught_up(flow_to_old.source_end_offsets(topics))
        harness.drain()
        flow_to_old.assert_mirrored(topics, fences=1, harness=harness)
        markers = sum(
            len(target.marker_offsets)
            for _, target in flow_to_old.all_partition_logs(harness.job.task_of_partition())
        )
        assert markers == MIXED_PARTITIONS


@pytest.mark.parametrize("flow_to_old", AUTHORIZERS, indirect=True)
def test_exactly_once_holds_although_a_task_is_killed_in_its_transaction(
    flow_to_old: CopyFlow, topic: str
) -> None:
    topics = {topic: MIXED_PARTITIONS}
    job = flow_to_old.job(
        topics,
        settings=SLOW,
        delivery=DeliveryMode.EXACTLY_ONCE,
        commit_interval_s=COMMIT_INTERVAL_S,
    )
    ends = flow_to_old.source_end_offsets(topics)
    with flow_to_old.harness(job) as harness:
        harness.wait_for_snapshot("a commit", has_copied_records)
        harness.kill(0)
        harness.conductor.set_rate(0)
        harness.wait_until_caught_up(ends)
        harness.drain()
        assert_exactly_once(flow_to_old, topics, harness)
        assert_ledger_positions(flow_to_old, job, ends)


@pytest.mark.parametrize("version", AUTHORIZERS)
def test_workers_of_a_group_divide_tasks_and_keep_configs_in_compacted_topics(
    clusters: dict[str, SharedCluster], version: str, unique_name: UniqueName
) -> None:
    name = unique_name("workers")
    workers = HerderGroup(clusters[version], name, exactly_once_source_support="enabled")
    try:
        workers.start("w1")
        workers.start("w2")
        workers.leader().create_connector(
            "c", named_config("c", SOURCE_CONFIG, tasks__max="2"), None
        )
        wait_until(lambda: sorted(workers.owners("c")) == ["w1", "w2"], "one task on each worker")
        for part in ("config", "offset", "status"):
            configs = explicit_configs(clusters[version].access, f"{name}-{part}")
            assert configs == {"cleanup.policy": "compact"}
    finally:
        workers.stop_all()


def test_claims_hold_on_brokers_that_do_not_bump_epochs(
    clusters: dict[str, SharedCluster], topic: str
) -> None:
    assert_refused_append_leaves_no_record(clusters["2.8.2"].access, topic)


@pytest.mark.parametrize("version", AUTHORIZERS)
def test_every_api_has_a_version_that_old_brokers_support(
    clusters: dict[str, SharedCluster], version: str
) -> None:
    connection = connect_first_broker(clusters[version].access)
    versions = connection.api_versions
    connection.close()
    absent = {api.name for api in _all_apis() if not _is_supported(api, versions)}
    assert absent == ABSENT_APIS[version]
    assert fetch_version(versions, by_id=False) == 12
    assert produce_version(versions, by_id=False, implicit_add=False) == 9


def _is_supported(api: AnyApi, versions: NodeApiVersions) -> bool:
    try:
        versions.latest_usable_version(api.name, api.request_type.API_KEY, api.versions)
    except UnsupportedByBroker:
        return False
    return True


def _all_apis() -> list[AnyApi]:
    """Return every Api in the modules that use Kafka's protocol."""
    found = [
        value
        for package in (sparkmirror.wire.protocol, sparkmirror.cluster, sparkmirror.cli.check)
        for module in _modules(package)
        for value in vars(module).values()
        if isinstance(value, Api)
    ]
    assert len(found) > 30
    return found


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(info.name)
