"""Reads a compacted topic: all partitions, from their beginning offsets to their end and beyond.

Connect's topics are read here only. `read_to_end` reads up to an end; `topic_follower` follows the
topic from there. Brokers may stop, restart and hand over leadership meanwhile. All calls block, in
the thread of the router.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from sparkmirror.backoff import Backoff
from sparkmirror.cluster.describe_topics import await_new_topic
from sparkmirror.errors import ClusterError, ClusterUnavailable, TopicMissing
from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.model import TopicPartition
from sparkmirror.store.committed_records import CommittedRecordReader
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.leader_calls import NEW_TOPIC_WAIT_S
from sparkmirror.wire.net.routing import CALL_TIMEOUT_S, LeaderOf, Router
from sparkmirror.wire.protocol.error_code_exceptions import error_for_code
from sparkmirror.wire.protocol.error_codes import ErrorAction, ErrorCode
from sparkmirror.wire.protocol.synchronous.synchronous_fetch import raise_for_code
from sparkmirror.wire.protocol.topics.metadata_snapshot import TopicInfo
from sparkmirror.wire.protocol.topics.offsets import EARLIEST, LATEST, list_offsets
from sparkmirror.wire.protocol.topics.topic_fetch import (
    PartitionRecords,
    TopicFetchResponse,
    topic_fetch_request,
)

log = logging.getLogger(__name__)

NO_PROGRESS_TIMEOUT_S = 30.0
"""How long `read_to_end` may get no records before the end. Then it raises."""
FETCH_TIMEOUT_S = 8.0
FETCH_WAIT_MS = 500
"""How long a broker may wait for records that it must have."""
MAX_SHOWN_KEY_BYTES = 200


class ConsumedRecord(NamedTuple):
    """One committed record and its position."""

    topic: str
    partition: int
    offset: int
    record: RecordBytes
    preexisting: bool
    """Whether the record was in the topic before the reader started."""

    def __str__(self) -> str:
        key = self.record.key
        shown = "no key" if key is None else f"key {key[:MAX_SHOWN_KEY_BYTES]!r}"
        return f"{self.topic}-{self.partition}, at offset {self.offset} with {shown}"


class PollResult(NamedTuple):
    """The records of one poll, and the first error of a partition or broker."""

    records: Sequence[ConsumedRecord]
    error: ClusterError | None


def topic_partitions(
    router: Router, topic: str, timeout_s: float = CALL_TIMEOUT_S
) -> list[TopicPartition]:
    """Return the partitions of a topic, from the router's metadata or from a broker.

    Waits a moment for a new topic. Raises TopicMissing, or the error of a refused request.
    """
    found = router.metadata.topics.get(topic)
    if found is None or not found.partitions:
        found = await_new_topic(
            partial(_request_metadata, router, topic, timeout_s), NEW_TOPIC_WAIT_S
        )
    return [TopicPartition(topic, number) for number in sorted(found.partitions)]


def _request_metadata(router: Router, topic: str, timeout_s: float) -> TopicInfo:
    """Return a topic that has partitions. Raises NotAuthorized or TopicMissing."""
    found = router.refresh([topic], timeout_s=timeout_s).topics.get(topic)
    if found is not None and found.error_code.action is ErrorAction.NOT_AUTHORIZED:
        raise error_for_code(router.client.cluster, "Metadata", found.error_code, topic)
    if found is None or not found.partitions:
        raise TopicMissing(router.client.cluster, f"there is no topic {topic}; create it")
    return found


def end_offsets(
    router: Router, partitions: Sequence[TopicPartition], timeout_s: float = CALL_TIMEOUT_S
) -> dict[int, int]:
    """Return the high watermark of each partition."""
    return _list_offsets(router, partitions, LATEST, timeout_s)


def _list_offsets(
    router: Router, partitions: Sequence[TopicPartition], timestamp: int, timeout_s: float
) -> dict[int, int]:
    offsets = {}
    found = list_offsets(router, dict.fromkeys(partitions, timestamp), timeout_s=timeout_s)
    for partition, (code, listed) in found.items():
        raise_for_code(router, partition, code)
        assert listed is not None
        offsets[partition.partition] = listed.offset
    return offsets


class TopicReader:
    """Reads one topic from its beginning. `end_offsets` are the ends when the reader was made.

    `timeout_s` limits the requests of the constructor.
    """

    def __init__(self, router: Router, topic: str, timeout_s: float = CALL_TIMEOUT_S) -> None:
        self._router = router
        self.topic = topic
        partitions = topic_partitions(router, topic, timeout_s)
        self.beginning_offsets: Mapping[int, int] = _list_offsets(
            router, partitions, EARLIEST, timeout_s
        )
        self.end_offsets: Mapping[int, int] = end_offsets(router, partitions, timeout_s)
        self._readers = {
            p.partition: CommittedRecordReader(p, self.beginning_offsets[p.partition])
            for p in partitions
        }

    def move_end(self, timeout_s: float = CALL_TIMEOUT_S) -> None:
        """Set `end_offsets` to the ends of the partitions now, so that `read_to_end` goes on."""
        partitions = [reader.partition for reader in self._readers.values()]
        self.end_offsets = end_offsets(self._router, partitions, timeout_s)

    def close(self) -> None:
        """No-op: the router belongs to the caller."""

    def positions(self) -> dict[int, int]:
        """Return the next offset to read, by partition."""
        return {number: reader.position for number, reader in self._readers.items()}

    def read_to_end(self) -> Iterator[ConsumedRecord]:
        """Yield the records before `end_offsets`. Raises after 30 s without progress."""
        deadline, backoff = time.monotonic() + NO_PROGRESS_TIMEOUT_S, Backoff()
        while not has_reached(self.positions(), self.end_offsets):
            before = self.positions()
            records, error = self.poll(self.end_offsets)
            yield from records
            if self.positions() != before:
                deadline = time.monotonic() + NO_PROGRESS_TIMEOUT_S
                backoff.reset()
                continue
            error = error or self._unavailable("has more records but brings none")
            if not error.retriable or time.monotonic() > deadline:
                raise error
            time.sleep(backoff.next_delay_s())

    def poll(self, ends: Mapping[int, int]) -> PollResult:
        """Fetch once the partitions that are not at these ends, from all their leaders.

        Partitions at their end are not fetched: their leaders would wait for new records.
        """
        offsets = {n: at for n, at in self.positions().items() if at != ends.get(n, at)}
        errors: list[ClusterError] = []
        groups = self.group_by_leader(offsets, errors)
        requests = {
            address: partial(
                topic_fetch_request, self.topic, {n: offsets[n] for n in numbers}, FETCH_WAIT_MS
            )
            for address, numbers in groups.items()
        }
        records: list[ConsumedRecord] = []
        responses = self._router.connections.request_all(
            requests, time.monotonic() + FETCH_TIMEOUT_S
        )
        for address, response in responses.items():
            records += self.consume(groups[address], response, errors)
        return PollResult(records, errors[0] if errors else None)

    def consume(
        self,
        numbers: Sequence[int],
        response: TopicFetchResponse | ClusterError,
        errors: list[ClusterError],
    ) -> list[ConsumedRecord]:
        """Return the records of a response for these partitions, and advance; append errors."""
        if isinstance(response, TopicFetchResponse) and response.error_code is ErrorCode.NONE:
            return [
                record
                for fetched in response.partitions
                for record in self._consume_partition(fetched, errors)
            ]
        errors.append(self._response_error(response))
        self._invalidate_leaders(numbers)
        return []

    def group_by_leader(
        self, numbers: Iterable[int], errors: list[ClusterError]
    ) -> dict[Address, list[int]]:
        """Return partitions by the address of their leader; append an error for the others."""
        partitions = [self._readers[number].partition for number in numbers]
        if any(self._router.metadata.leader_node(p) is None for p in partitions):
            try:
                self._router.refresh([self.topic], timeout_s=FETCH_TIMEOUT_S)
            except ClusterError as error:
                errors.append(error)
        groups: dict[Address, list[int]] = {}
        leaderless: list[int] = []
        for partition in partitions:
            broker = self._router.metadata.leader_node(partition)
            group = leaderless if broker is None else groups.setdefault(broker.address, [])
            group.append(partition.partition)
        if leaderless:
            shown = ", ".join(map(str, sorted(leaderless)))
            errors.append(self._unavailable(f"has no leader for partition {shown}"))
        return groups

    def _consume_partition(
        self, fetched: PartitionRecords, errors: list[ClusterError]
    ) -> Iterator[ConsumedRecord]:
        reader, end = self._readers[fetched.partition], self.end_offsets[fetched.partition]
        if fetched.error_code is not ErrorCode.NONE:
            try:
                self._handle_error_code(reader, fetched.error_code)
            except ClusterError as error:
                errors.append(error)
            return
        for record in reader.accept(fetched.records):
            content = RecordBytes(record.key, record.value)
            preexisting = record.offset < end
            yield ConsumedRecord(self.topic, fetched.partition, record.offset, content, preexisting)

    def _handle_error_code(self, reader: CommittedRecordReader, code: ErrorCode) -> None:
        """Seek to the beginning if the position is out of range; raise every other error."""
        self._invalidate_leaders([reader.partition.partition])
        if code is not ErrorCode.OFFSET_OUT_OF_RANGE:
            raise_for_code(self._router, reader.partition, code)
        (start,) = _list_offsets(
            self._router, [reader.partition], EARLIEST, FETCH_TIMEOUT_S
        ).values()
        log.error(
            "%s does not hold offset %d any more: it was truncated or created again. Reading it"
            " again from its beginning, offset %d; records that it has lost stay in effect here"
            " until a restart",
            reader.partition,
            reader.position,
            start,
        )
        reader.seek(start)

    def _invalidate_leaders(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._router.invalidate(LeaderOf(self._readers[number].partition))

    def _response_error(self, response: TopicFetchResponse | ClusterError) -> ClusterError:
        if isinstance(response, ClusterError):
            return response
        return error_for_code(self._router.client.cluster, "Fetch", response.error_code, self.topic)

    def _unavailable(self, what: str) -> ClusterError:
        return ClusterUnavailable(
            self._router.client.cluster, f"{self.topic} {what}; check whether all brokers are up"
        )


def has_reached(positions: Mapping[int, int], ends: Mapping[int, int]) -> bool:
    """Return whether every partition was read up to its end."""
    return all(positions.get(number, 0) >= end for number, end in ends.items())
