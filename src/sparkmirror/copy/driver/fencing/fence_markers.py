"""Confirms the markers of a fence: only a partition whose log has the marker is fenced.

The marker is the last batch of the log, unless another producer has written since. So the last
batches of all partitions are fetched in a few requests. A partition whose last batch is not the
marker is then searched backwards, batch by batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sparkmirror.errors import ClusterError, NotAuthorized
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import BatchHeader
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch
from sparkmirror.wire.protocol.synchronous.multi_partition_fetch import fetch_partitions
from sparkmirror.wire.protocol.synchronous.synchronous_fetch import (
    fetch_batch_at,
    iter_complete_batches,
)
from sparkmirror.wire.protocol.topics.offsets import LATEST, list_offsets
from sparkmirror.wire.protocol.transactions import EPOCH_BUMPING_VERSION

CONFIRM_TIMEOUT_S = 10.0
MAX_MARKER_BYTES = 256
"""A batch that holds one marker is smaller."""
MAX_BATCHES_BACK = 100
"""How many batches of other producers may follow the marker before it is confirmed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerSearch:
    """What the search of one partition found."""

    has_marker: bool | None = None
    """None if the log cannot be read now."""
    end_offset: int = -1
    is_at_end: bool = False
    """Whether the marker is the last batch of the log."""
    code: ErrorCode = ErrorCode.LEADER_NOT_AVAILABLE
    """Why the partition is not fenced, if the marker was not found."""


def find_markers(
    router: Router, identities: Mapping[TopicPartition, ProducerIdAndEpoch], version: int
) -> dict[TopicPartition, MarkerSearch]:
    """Search in each partition the marker of the fence that its identity made. Blocks.

    `version` is the transaction version of the cluster.
    """
    ends = list_offsets(router, dict.fromkeys(identities, LATEST), timeout_s=CONFIRM_TIMEOUT_S)
    offsets = {p: outcome.value.offset for p, outcome in ends.items() if outcome.value}
    last = _last_batches(router, offsets)
    searches: dict[TopicPartition, MarkerSearch] = {}
    for partition, outcome in ends.items():
        end = offsets.get(partition)
        if end is None:
            searches[partition] = MarkerSearch(code=outcome.code)
            continue
        header, identity = last.get(partition), identities[partition]
        if header and is_fence_marker(header, identity, version):
            searches[partition] = MarkerSearch(has_marker=True, end_offset=end, is_at_end=True)
            continue
        try:
            found = _has_marker(router, partition, end, identity, version)
        except NotAuthorized:
            searches[partition] = MarkerSearch(code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        except ClusterError:
            searches[partition] = MarkerSearch()
        else:
            searches[partition] = MarkerSearch(has_marker=found, end_offset=end)
    return searches


def _last_batches(
    router: Router, ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, BatchHeader]:
    """Return the last batch of each log, where it is small and can be read now."""
    positions = {partition: end - 1 for partition, end in ends.items() if end > 0}
    try:
        fetched = fetch_partitions(
            router, positions, partition_bytes=MAX_MARKER_BYTES, timeout_s=CONFIRM_TIMEOUT_S
        )
    except ClusterError:
        return {}  # the search one by one tells why
    found: dict[TopicPartition, BatchHeader] = {}
    for partition, result in fetched.items():
        if not isinstance(result, ErrorCode):
            for header, _ in iter_complete_batches(result.records):
                if header.next_offset == ends[partition]:
                    found[partition] = header
    return found


def _has_marker(
    router: Router,
    partition: TopicPartition,
    end: int,
    identity: ProducerIdAndEpoch,
    version: int,
) -> bool:
    """Step back from the end to the last batch of the fence's producer."""
    offset = end
    for _ in range(MAX_BATCHES_BACK):
        header, _ = fetch_batch_at(router, partition, offset - 1)
        verdict = is_fence_marker(header, identity, version)
        if verdict is not None:
            return verdict
        offset = header.base_offset
    return False


def is_fence_marker(header: BatchHeader, identity: ProducerIdAndEpoch, version: int) -> bool | None:
    """Whether a batch is the marker of a fence; None if another producer wrote the batch.

    Where an abort raises the epoch, the marker has the raised one; otherwise the identity itself
    was new.
    """
    if header.producer_id != identity.producer_id:
        return None
    raised = 1 if version >= EPOCH_BUMPING_VERSION else 0
    return header.is_control and header.producer_epoch >= identity.epoch + raised
