"""The heartbeat connector: sees to its topic, and has one task that beats.

As in the original it does not ask whether it is enabled, only whether heartbeats are wanted.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from sparkmirror.cluster.access import Access
from sparkmirror.config.clients import Side
from sparkmirror.connect.connector import ConnectorContext, ExpandedConfig
from sparkmirror.connect.connectors.hands import Hands
from sparkmirror.connect.connectors.heartbeat_config import HeartbeatConfig
from sparkmirror.connect.connectors.lookout import Lookout
from sparkmirror.connect.connectors.offsets_noted import OffsetsNoted
from sparkmirror.connect.connectors.scheduler import SHORTEST_S
from sparkmirror.connect.connectors.topic_making import ensure_internal_topic
from sparkmirror.connect.connectors.worker_side import WorkerSide
from sparkmirror.mirror import offset_alterations
from sparkmirror.mirror.offset_alterations import Alteration
from sparkmirror.mirror.outgoing import heartbeat_record
from sparkmirror.mirror.records import Heartbeat
from sparkmirror.mirror.tasks import heartbeat_task_configs
from sparkmirror.model import TopicPartition
from sparkmirror.wire.append import append
from sparkmirror.wire.records import Record


class HeartbeatConnector:
    """Sees to the heartbeats topic."""

    def __init__(self, name: str, context: ConnectorContext) -> None:
        self._name = name
        self._context = context
        self._config: HeartbeatConfig | None = None
        self._hands: Hands | None = None
        self._lookout: Lookout | None = None

    def start(self, config: ExpandedConfig) -> None:
        """Create the topic if it is not there."""
        self._config = parsed = HeartbeatConfig.parse(config)
        access = parsed.shared.access(Side.TARGET, role="heartbeats-target-admin")
        self._hands = hands = Hands.on(access, parsed.shared.admin_timeout_s)

        def look() -> float:
            ensure_internal_topic(hands, parsed.heartbeats_topic, parsed.heartbeats_factor)
            return 0.0

        self._lookout = Lookout(
            "MirrorHeartbeatConnector", parsed.shared, "creating internal topics", look
        )
        self._lookout.start(self._context)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Give the one task, if heartbeats are wanted."""
        assert max_tasks > 0
        if self._config is None:
            return ()
        is_wanted = self._config.emit_heartbeats_s is not None
        return heartbeat_task_configs(self._config.shared.originals, emit_heartbeats=is_wanted)

    def stop(self) -> None:
        """End."""
        if self._lookout and self._lookout.stop() and self._hands:
            self._hands.close()

    def alter_offsets(self, config: ExpandedConfig, alterations: Sequence[Alteration]) -> bool:
        """Refuse offsets that no heartbeat can have."""
        del config
        offset_alterations.check(alterations, offset_alterations.HEARTBEAT)
        return True


class HeartbeatWork:
    """One task: a record every so often."""

    def __init__(self, config: ExpandedConfig, worker: WorkerSide) -> None:
        self._config = HeartbeatConfig.parse(config)
        self._interval_s = max(self._config.emit_heartbeats_s or 0.0, SHORTEST_S)
        self._topic = self._config.heartbeats_topic.name
        shared = self._config.shared
        self._router = Access.from_properties(shared.flow.target, worker.producer(config)).router(
            f"connector-producer-{shared.name}-0"
        )
        self._offsets = OffsetsNoted(shared.name, config, worker)
        self._topics: frozenset[str] = frozenset()
        self._beat_at = time.monotonic() + self._interval_s

    def begin(self) -> None:
        """Nothing to get ready."""

    def turn(self) -> None:
        """Beat, if it is time."""
        if time.monotonic() < self._beat_at:
            return
        flow = self._config.shared.flow
        now_ms = time.time_ns() // 1_000_000
        beat = heartbeat_record(
            self._topic, Heartbeat(source=flow.source, target=flow.target, timestamp_ms=now_ms)
        )
        append(
            self._router,
            TopicPartition(beat.topic, beat.partition),
            [Record(0, beat.timestamp_ms, *beat.record)],
        )
        self._beat_at = max(self._beat_at + self._interval_s, time.monotonic())
        self._topics = frozenset({self._topic})
        self._offsets.note([beat])

    def pause_s(self) -> float:
        """Say how long until the next beat."""
        return max(self._beat_at - time.monotonic(), 0.0)

    def remark(self) -> str:
        """Say nothing: what goes wrong is an error of the turn."""
        return ""

    def topics(self) -> frozenset[str]:
        """Name the heartbeats topic, once it was written to."""
        return self._topics

    def take(self, config: ExpandedConfig) -> bool:
        """Begin anew if anything has changed."""
        return config == self._config.shared.originals

    def end(self) -> None:
        """Hang up."""
        self._router.close()
        self._offsets.close()
