"""When a checkpoint task syncs group offsets again."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from sparkmirror.config.warn_once import unrecorded_warnings
from sparkmirror.connect.connectors.checkpoint import checkpoint_task
from sparkmirror.connect.connectors.checkpoint.checkpoint_task import (
    RETRY_UNSUPPORTED_S,
    MirrorCheckpointTask,
)
from sparkmirror.connect.connectors.checkpoint.group_report import GroupReports
from sparkmirror.connect.connectors.checkpoint.group_sync import SyncedGroup
from sparkmirror.connect.connectors.shared.worker_client_config import WorkerClientConfig
from sparkmirror.errors import UnsupportedByBroker
from sparkmirror.mirror.offsets.checkpoints import CheckpointStore
from sparkmirror.mirror.offsets.records import Checkpoint
from sparkmirror.model import TopicPartition

WORKER = WorkerClientConfig(
    properties={
        "bootstrap.servers": "127.0.0.1:1",
        "group.id": "g",
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "offset.storage.topic": "offsets",
        "config.storage.topic": "configs",
        "status.storage.topic": "status",
    }
)
REMOTE = TopicPartition("A.orders", 0)
CONFIG = {
    "name": "c",
    "connector.class": "MirrorCheckpointConnector",
    "source.cluster.alias": "A",
    "source.cluster.bootstrap.servers": "127.0.0.1:1",
    "target.cluster.alias": "B",
    "target.cluster.bootstrap.servers": "127.0.0.1:1",
    "topics": "orders",
    "task.assigned.groups": "g",
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "60",
}


@dataclass
class Clock:
    """A clock that the test sets, in place of the module `time`."""

    now: float = 1000.0

    def monotonic(self) -> float:
        return self.now


class TaskWithoutCheckpoints(MirrorCheckpointTask):
    """A task that only syncs group offsets."""

    def _emit(self) -> None:
        pass


def test_a_target_without_an_api_of_groups_is_asked_again_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock, asked_at = Clock(), list[float]()

    def sync(*_: object) -> SyncedGroup:
        asked_at.append(clock.now)
        raise UnsupportedByBroker("B", "the broker does not support DescribeGroups")

    checkpoint = Checkpoint(group="g", partition=REMOTE, upstream=1, downstream=1)
    monkeypatch.setattr(checkpoint_task, "time", clock)
    monkeypatch.setattr(checkpoint_task, "sync_group", sync)
    monkeypatch.setattr(CheckpointStore, "of_group", lambda *_: {REMOTE: checkpoint})
    task = TaskWithoutCheckpoints(CONFIG, WORKER, GroupReports())
    with unrecorded_warnings():
        for clock.now in (1060.0, 1120.0, 1060.0 + RETRY_UNSUPPORTED_S):
            task.run_due()
    task.close()
    assert asked_at == [1060.0, 1060.0 + RETRY_UNSUPPORTED_S]
    assert task.current_problem() == ""
    assert [one for one in caplog.messages if "so no group offsets are synced (A->B)" in one] == [
        "B: the broker does not support DescribeGroups, so no group offsets are synced (A->B)"
    ]
