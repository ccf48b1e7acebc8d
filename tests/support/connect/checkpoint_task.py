"""A checkpoint task of a flow, and the committed offsets of groups that it reads and writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.groups import alter_consumer_group_offsets, list_consumer_group_offsets
from sparkmirror.connect.connectors.checkpoint.checkpoint_config import MirrorCheckpointConfig
from sparkmirror.connect.connectors.checkpoint.checkpoint_task import MirrorCheckpointTask
from sparkmirror.connect.connectors.checkpoint.group_report import GroupReports
from sparkmirror.connect.connectors.shared.topic_creation import ensure_internal_topic
from sparkmirror.errors import ClusterError
from sparkmirror.model import OffsetAndMetadata, TopicPartition
from tests.support.connect.connector_flow import ConnectorFlow
from tests.support.kafka.clusters import SharedCluster
from tests.support.waiting import wait_until


def commit_group_offsets(
    cluster: SharedCluster, group: str, offsets: dict[TopicPartition, int]
) -> None:
    """Commit offsets of a group that has no members."""
    router = cluster.access.new_router()
    try:
        codes = alter_consumer_group_offsets(
            router, group, {p: OffsetAndMetadata(offset, "note") for p, offset in offsets.items()}
        )
    finally:
        router.close()
    assert set(codes.values()) == {0}


def committed_group_offsets(cluster: SharedCluster, group: str) -> dict[TopicPartition, int]:
    """Return the committed offsets of a group."""
    router = cluster.access.new_router()
    try:
        found = list_consumer_group_offsets(router, [group])[group]
    finally:
        router.close()
    assert not isinstance(found, ClusterError)
    return {partition: offset.offset for partition, offset in found.items() if offset}


@contextmanager
def running_checkpoint_task(
    mirroring: ConnectorFlow, *groups: str, **more: str
) -> Iterator[tuple[MirrorCheckpointTask, GroupReports]]:
    """A running checkpoint task that has read its topics."""
    explanations = GroupReports()
    config = mirroring.connector_config("Checkpoint", **more)
    config |= {"task.assigned.groups": ",".join(groups), "task.index": "0"}
    admin = Admin(mirroring.target.access, timeout_s=30)
    ensure_internal_topic(admin, MirrorCheckpointConfig.parse(config).checkpoints_topic, 1)
    admin.close()
    work = MirrorCheckpointTask(config, mirroring.worker, explanations)
    try:
        work.start()
        yield work, explanations
    finally:
        work.close()


def run_until_synced(work: MirrorCheckpointTask) -> None:
    """Wait until both sync intervals, which are minimal, have passed."""
    for _ in range(3):
        wait_until(lambda: work.next_run_in_s() == 0, "something to be due")
        work.run_due()
