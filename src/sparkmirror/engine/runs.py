"""The exact maps of one source connector, kept in Connect's offsets topic beside its positions."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Self

from sparkmirror.copy.job import Job
from sparkmirror.copy.run_keeping import Segments
from sparkmirror.engine.offsets import offsets_topic_of
from sparkmirror.errors import RecordError
from sparkmirror.mirror.run_records import (
    PREFIX,
    Segment,
    SegmentKey,
    key_of,
    segment_of,
    to_stored,
)
from sparkmirror.model import TopicPartition
from sparkmirror.store.offsets import OffsetsTopic

log = logging.getLogger(__name__)


class OffsetsTopicRuns:
    """Segments of run maps as records that no connector of Java's takes for its own."""

    def __init__(self, topic: OffsetsTopic, connector: str, cluster: str) -> None:
        self._topic = topic
        self._connector = connector
        self._cluster = cluster

    @classmethod
    def of(cls, job: Job) -> Self:
        """The maps of a job, with a connection of their own."""
        return cls(offsets_topic_of(job), job.connector, job.settings.source_alias)

    def load(self) -> dict[TopicPartition, Segments]:
        """All segments of this connector, by source partition. A damaged one is as good as none."""
        found: dict[TopicPartition, dict[int, Segment]] = {}
        for stored in self._topic.load().of_connector(f"{PREFIX}{self._connector}"):
            key = key_of(stored)
            if key is None or key.cluster != self._cluster:
                continue
            try:
                segment = segment_of(stored)
            except RecordError as error:
                log.warning("%s: %s", key.partition, error)
                continue
            if segment:
                found.setdefault(key.partition, {})[key.number] = segment
        return dict(found)

    def save(self, segments: Mapping[tuple[TopicPartition, int], Segment | None]) -> None:
        """Keep these; returns when the brokers have them."""
        self._topic.save(
            [
                to_stored(self._key(partition, number), segment)
                for (partition, number), segment in segments.items()
            ],
            now_ms=time.time_ns() // 1_000_000,
        )

    def close(self) -> None:
        """Hang up."""
        self._topic.close()

    def _key(self, partition: TopicPartition, number: int) -> SegmentKey:
        return SegmentKey(
            connector=self._connector, cluster=self._cluster, partition=partition, number=number
        )
