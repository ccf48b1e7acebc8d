"""The ledger of one source connector, kept in Connect's offsets topic on the target."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Self

from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.ledger import LedgerEntry, decode_entry, encode_entry
from sparkmirror.engine.driver.offsets_topic_access import open_offsets_topic
from sparkmirror.mirror.connect_topics.connect_offsets import StoredOffset, source_partition
from sparkmirror.model import TopicPartition
from sparkmirror.store.offsets_topic import OffsetsTopic


class OffsetsTopicLedger:
    """Entries as Connect's offsets: Java MirrorMaker 2 reads them and goes on, and so do we."""

    def __init__(self, topic: OffsetsTopic, connector: str, cluster: str) -> None:
        self._topic = topic
        self._connector = connector
        self._cluster = cluster

    @classmethod
    def for_job(cls, job: CopyJob) -> Self:
        """The ledger that a job names, with a connection of its own."""
        return cls(open_offsets_topic(job), job.connector, job.settings.source_alias)

    def load(self) -> dict[TopicPartition, LedgerEntry]:
        """Everything remembered for this connector, as of now."""
        entries: dict[TopicPartition, LedgerEntry] = {}
        for stored in self._topic.load().of_connector(self._connector):
            match dict(stored.partition or {}):
                case {"cluster": cluster, "topic": str(topic), "partition": int(number)}:
                    entry = decode_entry(stored.offset or {})
                    if entry and cluster == self._cluster:
                        entries[TopicPartition(topic, number)] = entry
        return entries

    def save(self, entries: Mapping[TopicPartition, LedgerEntry]) -> None:
        """Remember these; returns when the target has them."""
        self._topic.save(
            (
                StoredOffset(
                    connector=self._connector,
                    partition=source_partition(self._cluster, partition),
                    offset=encode_entry(entry),
                )
                for partition, entry in entries.items()
            ),
            now_ms=time.time_ns() // 1_000_000,
        )

    def close(self) -> None:
        """Hang up."""
        self._topic.close()
