"""The offsets of heartbeat and checkpoint records survive an offsets topic that refuses them."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from sparkmirror.connect.connectors.shared.checkpoint_and_heartbeat_offsets import (
    CheckpointAndHeartbeatOffsets,
)
from sparkmirror.connect.connectors.shared.source_task_stats import SourceTaskStats
from sparkmirror.connect.connectors.shared.worker_client_config import WorkerClientConfig
from sparkmirror.errors import NotAuthorized
from sparkmirror.mirror.connect_topics.connect_offsets import StoredOffset
from sparkmirror.mirror.connect_topics.source_record import heartbeat_record
from sparkmirror.mirror.offsets.records import Heartbeat
from sparkmirror.store.offsets_topic import OffsetsTopic

WORKER = WorkerClientConfig(properties={"bootstrap.servers": "127.0.0.1:1"})
CONNECTOR = {"offsets.storage.topic": "offsets"}
HEARTBEAT = heartbeat_record("heartbeats", Heartbeat(source="A", target="B", timestamp_ms=1))


def test_offsets_that_were_refused_are_written_with_the_next_try_and_then_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written: list[int] = []
    may_write = False

    def save(_topic: OffsetsTopic, offsets: Iterable[StoredOffset], *, now_ms: int) -> None:
        del now_ms
        if not may_write:
            raise NotAuthorized("worker", "grant Write on the topic")
        written.append(len(list(offsets)))

    monkeypatch.setattr(OffsetsTopic, "save", save)
    stats = SourceTaskStats()
    offsets = CheckpointAndHeartbeatOffsets("c", CONNECTOR, WORKER, stats)
    try:
        with pytest.raises(NotAuthorized):
            offsets.save([HEARTBEAT])
        with pytest.raises(NotAuthorized):
            offsets.save_unsaved()
        may_write = True
        offsets.save_unsaved()
        offsets.save_unsaved()
        offsets.save([HEARTBEAT])
        assert written == [1]
        assert round(stats.summary().commit_failure, 2) == 0.67
    finally:
        offsets.close()
