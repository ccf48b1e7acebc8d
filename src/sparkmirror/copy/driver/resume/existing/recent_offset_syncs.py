"""The recent offset syncs of a flow, which predict the source offset of a remote record."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import closing

from sparkmirror.copy.client_config_resolver import resolve_client
from sparkmirror.copy.job import OffsetSyncsTopic
from sparkmirror.errors import MirrorError, RecordError
from sparkmirror.mirror.offsets.records import OffsetSync, RecordBytes
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch import records
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.synchronous.synchronous_fetch import (
    fetch_records,
    high_watermark,
    iter_complete_batches,
    raise_for_code,
)
from sparkmirror.wire.protocol.topics.offsets import EARLIEST, list_offsets

log = logging.getLogger(__name__)

READ_TIMEOUT_S = 5.0
"""Offset syncs only help: a cluster that does not answer must not delay copying."""
MAX_SYNCS_READ = 20_000
MAX_SYNCS_PER_PARTITION = 8


def read_recent_syncs(
    topic: OffsetSyncsTopic, client_id: str, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, tuple[OffsetSync, ...]]:
    """Return the last offset syncs of source partitions, oldest first. Blocks.

    Without a right to read the topic, or without the topic, there are none: they only help.
    """
    found: dict[TopicPartition, list[OffsetSync]] = {partition: [] for partition in partitions}
    try:
        made = Router(*resolve_client(topic.cluster, topic.client, client_id))
        with closing(made) as router, router.time_limit(READ_TIMEOUT_S):
            for sync in _read_tail(router, TopicPartition(topic.name, 0)):
                if sync.partition in found:
                    found[sync.partition].append(sync)
    except MirrorError as error:
        log.info("Cannot read offset syncs of %s, going on without them: %s", topic.name, error)
        return {}
    return {p: tuple(syncs[-MAX_SYNCS_PER_PARTITION:]) for p, syncs in found.items() if syncs}


def _read_tail(router: Router, partition: TopicPartition) -> Iterable[OffsetSync]:
    end = high_watermark(router, partition)
    listed = list_offsets(router, {partition: EARLIEST})[partition]
    raise_for_code(router, partition, listed.code)
    assert listed.value is not None
    offset = max(listed.value.offset, end - MAX_SYNCS_READ)
    while offset < end:
        before = offset
        for header, batch in iter_complete_batches(
            fetch_records(router, partition, offset).records
        ):
            offset = max(offset, header.next_offset)
            if not header.is_control:
                yield from _decode(records.read_records(header, batch))
        if offset == before:
            return


def _decode(stored: Iterable[records.Record]) -> Iterable[OffsetSync]:
    for record in stored:
        try:
            yield OffsetSync.decode(RecordBytes(record.key, record.value))
        except RecordError:
            continue  # not a sync of a mirror: Java skips it, too
