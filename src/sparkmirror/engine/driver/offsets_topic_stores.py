"""Ledger and run maps of one source connector, stored in Connect's offsets topic.

Each store writes with its own connection to the cluster that holds the offsets topic. All stores of
the process with the same client read it together (`shared_topic_reader`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Self

from sparkmirror.config.client_configs import WORKER_PRODUCER_PREFIX
from sparkmirror.copy.client_config_resolver import resolve_client
from sparkmirror.copy.driver.run_map_store import RunSegments
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.ledger import LedgerChange, LedgerEntry, decode_entry, encode_entry
from sparkmirror.engine.driver.topic_readers.topic_reader_registry import PROCESS_READERS
from sparkmirror.errors import ClusterError, RecordError
from sparkmirror.mirror.connect_topics.connect_offsets import (
    StoredOffset,
    connector_key_filter,
    offset_key,
    offset_value,
    source_partition,
)
from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.mirror.offsets.run_map_records import (
    RUNS_KEY_PREFIX,
    RunMapSegment,
    RunMapSegmentKey,
    decode_segment,
    decode_segment_key,
    encode_segment,
)
from sparkmirror.model import TopicPartition
from sparkmirror.store.offsets_topic import OffsetsTopic, RecordReader
from sparkmirror.store.topic_reader import ConsumedRecord
from sparkmirror.wire.net.routing import Router

log = logging.getLogger(__name__)


_UNDECODABLE: Final = "\0"
"""Stands for the writer of a record that cannot be decoded; no conductor has this id."""


def collapse_unread(records: list[ConsumedRecord]) -> list[ConsumedRecord]:
    """Of consecutive entries of one key by one conductor keep the last, and keep the order. Pure.

    Which conductor wrote before which one decides about claims, and the last entry of each.
    """
    kept: dict[int, ConsumedRecord] = {}
    last: dict[bytes | None, tuple[str | None, int]] = {}
    for number, consumed in enumerate(records):
        key, writer = consumed.record.key, _writer(consumed.record)
        if key in last and last[key][0] == writer:
            del kept[last[key][1]]
        last[key] = writer, number
        kept[number] = consumed
    return list(kept.values())


def _writer(record: RecordBytes) -> str | None:
    """Return the conductor that wrote an entry; empty for one of another program, None if deleted.

    A record that cannot be decoded has no effect, so it must replace none that has.
    """
    if record.value is None:
        return None
    try:
        entry = decode_entry(StoredOffset.decode(record).offset or {})
    except RecordError:
        return _UNDECODABLE
    return entry.extension.conductor if entry and entry.extension else ""


class _OffsetsTopicStore:
    """What both stores share: the topic, and which records belong to the connector."""

    def __init__(self, topic: OffsetsTopic, connector: str, cluster: str) -> None:
        self._topic = topic
        self._connector = connector
        self._cluster = cluster

    @classmethod
    def for_job(cls, job: CopyJob) -> Self:
        """The store that the job names. Opens no connection yet; the caller closes the store."""
        settings = job.settings
        client = job.offsets_client or settings.target
        prefix = WORKER_PRODUCER_PREFIX if client == settings.target else ""
        resolved = resolve_client(
            settings.target_alias, client, settings.client_id, file_prefix=prefix
        )
        login = tuple(sorted((key, text) for key, text in client.items() if key != "client.id"))

        def create_reader(
            router: Router, topic: str, is_wanted: Callable[[bytes], bool]
        ) -> RecordReader:
            return PROCESS_READERS.subscribe(
                (settings.target_alias, login),
                topic,
                lambda: Router(*resolved),
                router,
                is_wanted,
                collapse_unread,
            )

        topic = OffsetsTopic(Router(*resolved), job.offsets_topic, create_reader)
        return cls(topic, job.connector, settings.source_alias)

    def set_on_retry(self, on_retry: Callable[[ClusterError], None]) -> None:
        """Call back with every error after which a call is tried again."""
        self._topic.set_on_retry(on_retry)

    def cancel(self) -> None:
        """End the running call and all later ones with CallCancelled. Any thread may call this."""
        self._topic.cancel()

    def close(self) -> None:
        """Close the connections."""
        self._topic.close()


class OffsetsTopicLedger(_OffsetsTopicStore):
    """Ledger entries as Connect source offsets, which Java MirrorMaker 2 reads and writes too."""

    def __init__(self, topic: OffsetsTopic, connector: str, cluster: str) -> None:
        super().__init__(topic, connector, cluster)
        self._keys: dict[TopicPartition, bytes] = {}
        """The record keys of partitions: each is written again and again."""

    def load(self) -> dict[TopicPartition, LedgerEntry]:
        """All entries of this connector, by source partition. Reads the topic to its end."""
        state = self._topic.load(connector_key_filter(self._connector), is_followed=True)
        loaded = self._decode(state.of_connector(self._connector))
        return {partition: entry for partition, entry in loaded if entry}

    def changes(self) -> list[LedgerChange]:
        """The entries of this connector since `load` or the last call, in the order of the log."""
        return list(self._decode(self._topic.load_new()))

    def _decode(self, records: Iterable[StoredOffset]) -> Iterator[LedgerChange]:
        for stored in records:
            match dict(stored.partition or {}):
                case {"cluster": cluster, "topic": str(topic), "partition": int(number)}:
                    if stored.connector == self._connector and cluster == self._cluster:
                        entry = decode_entry(stored.offset or {})
                        yield LedgerChange(TopicPartition(topic, number), entry)

    def save(self, entries: Mapping[TopicPartition, LedgerEntry]) -> None:
        """Write entries; returns when the brokers have acknowledged them."""
        self._topic.append(
            (
                RecordBytes(self._key(partition), offset_value(encode_entry(entry)))
                for partition, entry in entries.items()
            ),
            now_ms=time.time_ns() // 1_000_000,
        )

    def _key(self, partition: TopicPartition) -> bytes:
        key = self._keys.get(partition)
        if key is None:
            key = offset_key(self._connector, source_partition(self._cluster, partition))
            self._keys[partition] = key
        return key


class OffsetsTopicRunMaps(_OffsetsTopicStore):
    """Run map segments, under keys that no Java connector reads as its own."""

    def load(self) -> dict[TopicPartition, RunSegments]:
        """All segments of this connector, by source partition. Skips segments it cannot decode."""
        found: dict[TopicPartition, dict[int, RunMapSegment]] = {}
        name = f"{RUNS_KEY_PREFIX}{self._connector}"
        for stored in self._topic.load(connector_key_filter(name)).of_connector(name):
            key = decode_segment_key(stored)
            if key is None or key.cluster != self._cluster:
                continue
            try:
                segment = decode_segment(stored)
            except RecordError as error:
                log.warning("Ignored a run map segment of %s: %s", key.partition, error)
                continue
            if segment:
                found.setdefault(key.partition, {})[key.number] = segment
        return dict(found)

    def save(self, segments: Mapping[tuple[TopicPartition, int], RunMapSegment | None]) -> None:
        """Write segments (None deletes one); returns when the brokers have acknowledged them."""
        self._topic.save(
            [
                encode_segment(self._key(partition, number), segment)
                for (partition, number), segment in segments.items()
            ],
            now_ms=time.time_ns() // 1_000_000,
        )

    def _key(self, partition: TopicPartition, number: int) -> RunMapSegmentKey:
        return RunMapSegmentKey(
            connector=self._connector, cluster=self._cluster, partition=partition, number=number
        )
