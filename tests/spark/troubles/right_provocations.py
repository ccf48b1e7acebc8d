"""How each missing right is provoked: a DENY rule in the block takes it from the mirror's user."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from kafka.admin import ACLOperation, ResourceType

from sparkmirror.cluster.groups import alter_consumer_group_offsets
from sparkmirror.lab.cluster.cluster_spec import ListenerProtocol
from sparkmirror.model import OffsetAndMetadata, TopicPartition
from tests.spark.troubles.surfaces import Subject
from tests.spark.troubles.troubled_mirror import (
    TOPIC_PREFIX,
    USER,
    TroubledMirror,
    create_topics,
    subject_of,
)
from tests.support.kafka.admin_operations import denied, grant_acls, set_topic_config

CLUSTER = "kafka-cluster"
CHECKPOINTS = "east.checkpoints.internal"
HEARTBEATS = "heartbeats"
REMOTE = "east."
READER = "reader"
SYNC_DUE_RECORDS = 200
"""More than offset.lag.max: an offset sync is due at once."""
FAST_CHECKPOINTS = {
    "emit_checkpoints_interval_seconds": "1",
    "sync_group_offsets_enabled": "true",
    "sync_group_offsets_interval_seconds": "1",
}
SYNC_ACLS = {"sync.topic.acls.enabled": "true", "sync.topic.acls.interval.seconds": "1"}
SYNC_CONFIGS = {"sync.topic.configs.interval.seconds": "1"}
OTHER_OFFSET_SYNCS = "mm2-offset-syncs.south.internal"


@contextmanager
def _denied(
    mirror: TroubledMirror, side: str, kind: ResourceType, name: str, operation: ACLOperation
) -> Iterator[None]:
    cluster = {"source": mirror.source, "target": mirror.target}[side]
    access = cluster.access(ListenerProtocol.PLAINTEXT)
    with denied(access, USER, kind, name, operation):
        yield


@contextmanager
def _no_write_to_offset_syncs(mirror: TroubledMirror, topic: str) -> Iterator[Subject]:
    with _denied(mirror, "source", ResourceType.TOPIC, OTHER_OFFSET_SYNCS, ACLOperation.WRITE):
        mirror.write(topic, SYNC_DUE_RECORDS)
        yield subject_of(topic)


@contextmanager
def _no_write_to_offsets(mirror: TroubledMirror, topic: str) -> Iterator[Subject]:
    offsets = mirror.properties["offset.storage.topic"]
    with _denied(mirror, "target", ResourceType.TOPIC, offsets, ACLOperation.WRITE):
        mirror.write(topic)
        yield subject_of(topic)


@contextmanager
def _no_write_to_statuses(mirror: TroubledMirror, topic: str) -> Iterator[Subject]:
    """Create a connector whose status cannot be written."""
    name, statuses = topic.removeprefix(TOPIC_PREFIX), mirror.properties["status.storage.topic"]
    with _denied(mirror, "target", ResourceType.TOPIC, statuses, ACLOperation.WRITE):
        mirror.put_config(name, mirror.config("Checkpoint"))
        yield Subject(connector=name, tidy=partial(mirror.delete, name))


@contextmanager
def _no_write_to_configs(mirror: TroubledMirror, topic: str) -> Iterator[Subject]:
    """Create another topic: the configs of the task that copies it cannot be written."""
    configs = mirror.properties["config.storage.topic"]
    with _denied(mirror, "target", ResourceType.TOPIC, configs, ACLOperation.WRITE):
        create_topics(mirror.source, [f"{topic}.created"])
        yield subject_of(topic)


@contextmanager
def _checkpoints(
    mirror: TroubledMirror, topic: str, side: str, kind: ResourceType, name: str, right: str
) -> Iterator[Subject]:
    """Take a right; then create a checkpoint connector for a group. `name` may be the group's."""
    group = topic.removeprefix(TOPIC_PREFIX)
    _commit(mirror, topic, group)
    with _denied(mirror, side, kind, name or group, ACLOperation[right]):
        mirror.put_config(group, mirror.config("Checkpoint", groups=group, **FAST_CHECKPOINTS))
        yield Subject(connector=group, tidy=partial(mirror.delete, group))


@contextmanager
def _no_describe_on_group(mirror: TroubledMirror, topic: str) -> Iterator[Subject]:
    """Take the right to one of two groups that a checkpoint connector follows."""
    name = topic.removeprefix(TOPIC_PREFIX)
    groups = [f"{name}-a", f"{name}-b"]
    for group in groups:
        _commit(mirror, topic, group)
    config = mirror.config("Checkpoint", groups=",".join(groups), **FAST_CHECKPOINTS)
    mirror.put_config(name, config)
    mirror.program.wait_for_states(name, "RUNNING", "RUNNING")
    with _denied(mirror, "source", ResourceType.GROUP, groups[0], ACLOperation.DESCRIBE):
        yield Subject(connector=name, tidy=partial(mirror.delete, name))


def _commit(mirror: TroubledMirror, topic: str, group: str) -> None:
    """Commit an offset for a group of the source that has no members."""
    router = mirror.source.access(ListenerProtocol.PLAINTEXT).new_router()
    try:
        offsets = {TopicPartition(topic, 0): OffsetAndMetadata(5, "")}
        codes = alter_consumer_group_offsets(router, group, offsets)
        assert not any(codes.values()), codes
    finally:
        router.close()


@contextmanager
def _no_write_to_heartbeats(mirror: TroubledMirror, topic: str) -> Iterator[Subject]:
    name = topic.removeprefix(TOPIC_PREFIX)
    more = {"heartbeats_topic_replication_factor": "1", "emit_heartbeats_interval_seconds": "1"}
    with _denied(mirror, "target", ResourceType.TOPIC, HEARTBEATS, ACLOperation.WRITE):
        mirror.put_config(name, mirror.config("Heartbeat", **more))
        yield Subject(connector=name, tidy=partial(mirror.delete, name))


@contextmanager
def _no_read_on_worker_group(mirror: TroubledMirror, topic: str) -> Iterator[Subject]:
    group = mirror.properties["group.id"]
    with _denied(mirror, "target", ResourceType.GROUP, group, ACLOperation.READ):
        yield subject_of(topic)


@contextmanager
def _no_describe_configs(mirror: TroubledMirror, topic: str) -> Iterator[Subject]:
    with _denied(mirror, "source", ResourceType.TOPIC, topic, ACLOperation.DESCRIBE_CONFIGS):
        yield subject_of(topic)


@contextmanager
def _no_alter_configs(mirror: TroubledMirror, topic: str) -> Iterator[Subject]:
    remote = f"{REMOTE}{topic}"
    source = mirror.source.access(ListenerProtocol.PLAINTEXT)
    with _denied(mirror, "target", ResourceType.TOPIC, remote, ACLOperation.ALTER_CONFIGS):
        set_topic_config(source, topic, {"retention.ms": "86400000"})
        yield subject_of(topic)


@contextmanager
def _no_describe_on_cluster(mirror: TroubledMirror, topic: str) -> Iterator[Subject]:
    with _denied(mirror, "source", ResourceType.CLUSTER, CLUSTER, ACLOperation.DESCRIBE):
        yield subject_of(topic)


@contextmanager
def _no_alter_on_cluster(mirror: TroubledMirror, topic: str) -> Iterator[Subject]:
    """Grant a right on the source topic that the mirror cannot grant on the remote one."""
    source = mirror.source.access(ListenerProtocol.PLAINTEXT)
    with _denied(mirror, "target", ResourceType.CLUSTER, CLUSTER, ACLOperation.ALTER):
        grant_acls(source, READER, ResourceType.TOPIC, topic, ACLOperation.READ)
        yield subject_of(topic)


RIGHT_PROVOCATIONS: dict[str, Callable[[TroubledMirror, str], AbstractContextManager[Subject]]] = {
    "no-write-to-offset-syncs": _no_write_to_offset_syncs,
    "no-write-to-offsets": _no_write_to_offsets,
    "no-write-to-statuses": _no_write_to_statuses,
    "no-write-to-configs": _no_write_to_configs,
    "no-write-to-checkpoints": partial(
        _checkpoints, side="target", kind=ResourceType.TOPIC, name=CHECKPOINTS, right="WRITE"
    ),
    "no-write-to-heartbeats": _no_write_to_heartbeats,
    "no-describe-on-source-group": _no_describe_on_group,
    "no-read-on-target-group": partial(
        _checkpoints, side="target", kind=ResourceType.GROUP, name="", right="READ"
    ),
    "no-read-on-worker-group": _no_read_on_worker_group,
    "no-describe-configs": _no_describe_configs,
    "no-alter-configs": _no_alter_configs,
    "no-describe-on-cluster": _no_describe_on_cluster,
    "no-alter-on-cluster": _no_alter_on_cluster,
}
