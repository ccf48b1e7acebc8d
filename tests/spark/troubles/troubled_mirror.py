"""Two clusters, a worker and a source connector that troubles are provoked on."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path

from kafka.admin import ACLOperation, ResourceType

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.describe_topics import NewTopic
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import CONTROL_USER, ClusterSpec, ListenerProtocol
from sparkmirror.model import TopicPartition
from tests.spark.troubles.surfaces import Subject
from tests.support.cli.mirror_process import (
    SPARK_TIMEOUT_S,
    MirrorProcess,
    connector_path,
    running_worker,
)
from tests.support.cli.property_files import worker_properties
from tests.support.kafka.admin_operations import grant_acls
from tests.support.kafka.batch_writer import BatchWriter, numbered_records
from tests.support.kafka.clusters import SharedCluster
from tests.support.waiting import wait_until

MAIN = "main"
"""The source connector that copies a topic per trouble."""
TOPIC_PREFIX = "row."
OWN_PREFIX = "own."
"""Of the topic of a row that has a source connector of its own, with the name of the row."""
USER = "mirror"
RECORDS = 10
STOP_TIMEOUT_S = 10
"""After so long the worker logs that a connector failed to properly shut down."""
EVERYTHING = "*"
INTERNAL_TOPICS = ("config", "offset", "status")


def cluster_spec(name: str, brokers: int = 1) -> ClusterSpec:
    """Return a cluster on which the tests have all rights, and USER those that it is granted."""
    return ClusterSpec(
        name=name,
        brokers=brokers,
        fast_start=True,
        listeners=(ListenerProtocol.PLAINTEXT, ListenerProtocol.SASL_PLAINTEXT),
        users={USER: f"sesame-{secrets.token_hex(8)}"},
        authorizer=True,
        properties={
            "auto.create.topics.enable": "false",
            "super.users": f"User:{CONTROL_USER};User:ANONYMOUS",
            # A killed broker starts only when its session has expired: 9 s by default.
            "broker.session.timeout.ms": "6000",
            "broker.heartbeat.interval.ms": "500",
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TroubledMirror:
    """The connector MAIN copies TOPIC_PREFIX topics from source to target, as USER."""

    source: Cluster
    target: Cluster
    program: MirrorProcess
    properties: Mapping[str, str]
    """Of the worker."""
    directory: Path

    def put_config(self, connector: str, config: Mapping[str, str]) -> None:
        """Create a connector or change its config."""
        self.program.call_json("PUT", f"{connector_path(connector)}/config", dict(config))

    def delete(self, connector: str) -> None:
        """Delete a connector."""
        self.program.call_json("DELETE", connector_path(connector))

    def config(self, kind: str = "Source", **more: str) -> dict[str, str]:
        """Return the config of a connector from source to target, as USER."""
        return {
            "connector.class": f"Mirror{kind}Connector",
            "source.cluster.alias": "east",
            "target.cluster.alias": "west",
            **_client_properties("source", self.source),
            **_client_properties("target", self.target),
            "topics": f"{TOPIC_PREFIX}.*",
            "groups": "no-group",
            "replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            "checkpoints.topic.replication.factor": "1",
            "heartbeats.topic.replication.factor": "1",
            "heartbeats.replication.enabled": "false",
            "tasks.max": "1",
            **{key.replace("_", "."): value for key, value in more.items()},
        }

    def start_source_connectors(self, configs: Mapping[str, Mapping[str, str]]) -> None:
        """Create and fill topics, and create the source connector of each; wait for the copies."""
        for name, more in configs.items():
            topic = f"{OWN_PREFIX}{name}"
            create_topics(self.source, [topic])
            self.write(topic)
            own = {
                "topics": f"{topic}.*",
                "refresh.topics.interval.seconds": "2",
                "sync.topic.acls.enabled": "false",
            }
            self.put_config(name, {**self.config(), **own, **more})
        for name in configs:
            wait_until(partial(_is_caught_up, self.program, name, 1), name, SPARK_TIMEOUT_S)

    def other_properties(self, group: str) -> dict[str, str]:
        """Return the properties of a worker with another group and other internal topics."""
        topics = {f"{kind}.storage.topic": f"{group}-{kind}s" for kind in INTERNAL_TOPICS}
        return {**self.properties, "group.id": group, **topics}

    def write(self, topic: str, records: int = RECORDS) -> None:
        """Append records to partition 0 of a source topic."""
        write_records(self.source, topic, records)


def subject_of(topic: str) -> Subject:
    """Return the source connector that copies a topic, and the topic."""
    is_own = topic.startswith(OWN_PREFIX)
    return Subject(connector=topic.removeprefix(OWN_PREFIX) if is_own else MAIN, topic=topic)


def write_records(cluster: Cluster, topic: str, records: int, size: int = 20) -> None:
    """Append records to partition 0 of a topic."""
    writer = BatchWriter(cluster.access(ListenerProtocol.PLAINTEXT))
    try:
        writer.write_batches(
            TopicPartition(topic, 0), numbered_records(range(records), size=size), batch=RECORDS
        )
    finally:
        writer.close()


def create_topics(cluster: Cluster, topics: Iterable[str], partitions: int = 1) -> None:
    """Create topics. Each partition has one replica; partitions of a topic have different leaders
    if there are so many brokers."""
    with Admin(cluster.access(ListenerProtocol.PLAINTEXT)) as admin:
        created = admin.create_topics(
            [NewTopic(name=name, partitions=partitions, replication_factor=1) for name in topics]
        )
        assert not created.failed, created.failed


def grant_everything(cluster: Cluster) -> None:
    """Give USER all rights on all topics, groups, transactional ids and the cluster."""
    access = cluster.access(ListenerProtocol.PLAINTEXT)
    for kind in (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID):
        grant_acls(access, USER, kind, EVERYTHING, ACLOperation.ALL)
    grant_acls(access, USER, ResourceType.CLUSTER, "kafka-cluster", ACLOperation.ALL)


@contextmanager
def running_mirror(
    source: Cluster, target: Cluster, directory: Path, topics: Mapping[str, int]
) -> Iterator[TroubledMirror]:
    """Create and fill the topics, start a worker and MAIN, and wait until all is copied.

    `topics` has the number of partitions of each; only partition 0 gets records.
    """
    for cluster in (source, target):
        grant_everything(cluster)
    for topic, partitions in topics.items():
        create_topics(source, [topic], partitions)
        write_records(source, topic, RECORDS)
    login = target.client_properties(ListenerProtocol.SASL_PLAINTEXT, USER, "PLAIN")
    properties = worker_properties(SharedCluster(name="west", properties=login), "troubles") | {
        f"{kind}.{key}": value
        for kind in ("producer", "consumer", "admin")
        for key, value in login.items()
    }
    properties["task.shutdown.graceful.timeout.ms"] = str(1000 * STOP_TIMEOUT_S)
    with running_worker(properties, directory) as program:
        mirror = TroubledMirror(
            source=source,
            target=target,
            program=program,
            properties=properties,
            directory=directory,
        )
        wait_until(
            lambda: program.request("GET", "/health").status == HTTPStatus.OK,
            "the worker to be ready",
            SPARK_TIMEOUT_S,
        )
        mirror.put_config(MAIN, mirror.config())
        count = sum(topics.values())
        wait_until(lambda: _is_caught_up(program, MAIN, count), "MAIN to copy", SPARK_TIMEOUT_S)
        yield mirror


def _client_properties(side: str, cluster: Cluster) -> dict[str, str]:
    found = cluster.client_properties(ListenerProtocol.SASL_PLAINTEXT, USER, "PLAIN")
    return {f"{side}.cluster.{key}": value for key, value in found.items()}


def _is_caught_up(program: MirrorProcess, connector: str, partitions: int) -> bool:
    answer = program.request("GET", f"{connector_path(connector)}/partitions")
    return (
        answer.status == 200
        and len(answer.json["partitions"]) == partitions
        and answer.json["lag"] == 0
    )
