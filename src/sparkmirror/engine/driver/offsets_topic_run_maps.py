"""The exact maps of one source connector, kept in Connect's offsets topic beside its positions."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Self

from sparkmirror.copy.driver.run_map_store import RunSegments
from sparkmirror.copy.job import CopyJob
from sparkmirror.engine.driver.offsets_topic_access import open_offsets_topic
from sparkmirror.errors import RecordError
from sparkmirror.mirror.offsets.run_map_records import (
    RUNS_KEY_PREFIX,
    RunMapSegment,
    RunMapSegmentKey,
    decode_segment,
    decode_segment_key,
    encode_segment,
)
from sparkmirror.model import TopicPartition
from sparkmirror.store.offsets_topic import OffsetsTopic

log = logging.getLogger(__name__)


class OffsetsTopicRunMaps:
    """Segments of run maps as records that no connector of Java's takes for its own."""

    def __init__(self, topic: OffsetsTopic, connector: str, cluster: str) -> None:
        self._topic = topic
        self._connector = connector
        self._cluster = cluster

    @classmethod
    def for_job(cls, job: CopyJob) -> Self:
        """The maps of a job, with a connection of their own."""
        return cls(open_offsets_topic(job), job.connector, job.settings.source_alias)

    def load(self) -> dict[TopicPartition, RunSegments]:
        """All segments of this connector, by source partition. A damaged one is as good as none."""
        found: dict[TopicPartition, dict[int, RunMapSegment]] = {}
        for stored in self._topic.load().of_connector(f"{RUNS_KEY_PREFIX}{self._connector}"):
            key = decode_segment_key(stored)
            if key is None or key.cluster != self._cluster:
                continue
            try:
                segment = decode_segment(stored)
            except RecordError as error:
                log.warning("%s: %s", key.partition, error)
                continue
            if segment:
                found.setdefault(key.partition, {})[key.number] = segment
        return dict(found)

    def save(self, segments: Mapping[tuple[TopicPartition, int], RunMapSegment | None]) -> None:
        """Keep these; returns when the brokers have them."""
        self._topic.save(
            [
                encode_segment(self._key(partition, number), segment)
                for (partition, number), segment in segments.items()
            ],
            now_ms=time.time_ns() // 1_000_000,
        )

    def close(self) -> None:
        """Hang up."""
        self._topic.close()

    def _key(self, partition: TopicPartition, number: int) -> RunMapSegmentKey:
        return RunMapSegmentKey(
            connector=self._connector, cluster=self._cluster, partition=partition, number=number
        )
