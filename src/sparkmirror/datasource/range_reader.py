"""Reads the records of one range of a partition. Runs in Spark's executors.

The position decides when the range ends, not the records: control batches and compacted records
have offsets, too. What goes wrong is tried again until nothing has come for `stalled_s`; then

    offset out of range behind the first one     the log is shorter: records are lost
    the topic is gone                            records are lost
    anything else                                the task fails

Deleted records are a loss at once. After a failure the next fetch asks for less, so that a response
arrives in time on a slow link. Blocks; belongs to the thread of its router.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from sparkmirror.backoff import Backoff
from sparkmirror.cluster.describe_topics import describe_topics
from sparkmirror.datasource.offset_ranges import OffsetRange
from sparkmirror.errors import ClusterError, ClusterTimeout, RecordsLost
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch import message_format_v1
from sparkmirror.wire.batch.aborted_transactions import AbortedTransactionFilter
from sparkmirror.wire.batch.checksum import verify_crc
from sparkmirror.wire.batch.header import LOG_APPEND_TIME, MAGIC, iter_batches, read_header
from sparkmirror.wire.batch.records import Record, read_records
from sparkmirror.wire.net.routing import LeaderOf, Router
from sparkmirror.wire.protocol.synchronous.synchronous_fetch import (
    FETCH_BYTES,
    OffsetOutOfRange,
    SingleFetchResult,
    fetch_records,
    raise_for_code,
)
from sparkmirror.wire.protocol.topics.offsets import EARLIEST, list_offsets

log = logging.getLogger(__name__)

STALLED_S = 60.0
"""How long a partition may bring nothing, for example without a leader, before the task fails."""
MIN_FETCH_BYTES = 64 << 10
NO_TIMESTAMP_TYPE, CREATE_TIME, APPEND_TIME = -1, 0, 1
"""Kafka's numbers of timestamp types."""
_OLD_ATTRIBUTES_OFFSET = 17


class FetchedBatch(NamedTuple):
    """Records of a batch that belong to the range, and what their timestamps mean."""

    timestamp_type: int
    records: list[Record]


class RangeLog(Protocol):
    """The log of a partition: `LeaderLog`, or that of a test. Raises ClusterError."""

    @property
    def cluster(self) -> str:
        """The name of the cluster in errors."""
        ...

    def fetch(self, offset: int, max_bytes: int) -> SingleFetchResult:
        """Fetch at an offset. Raises OffsetOutOfRange."""
        ...

    def first_offset(self) -> int:
        """Return the first offset of the log."""
        ...

    def exists(self) -> bool:
        """Return whether the topic has the partition."""
        ...

    def pause(self, seconds: float) -> None:
        """Wait, and look up the leader again."""
        ...


class LeaderLog:
    """The log at the leader of a partition."""

    def __init__(
        self, router: Router, partition: TopicPartition, *, read_committed: bool = False
    ) -> None:
        self._router = router
        self._partition = partition
        self._read_committed = read_committed

    @property
    def cluster(self) -> str:
        """The name of the cluster in errors."""
        return self._router.cluster

    def fetch(self, offset: int, max_bytes: int) -> SingleFetchResult:
        """Fetch at an offset. Retries for some seconds. Raises OffsetOutOfRange."""
        return fetch_records(
            self._router,
            self._partition,
            offset,
            max_bytes=max_bytes,
            read_committed=self._read_committed,
        )

    def first_offset(self) -> int:
        """Return the first offset of the log."""
        outcome = list_offsets(self._router, {self._partition: EARLIEST})[self._partition]
        raise_for_code(self._router, self._partition, outcome.code)
        assert outcome.value is not None
        return outcome.value.offset

    def exists(self) -> bool:
        """Return whether the topic has the partition."""
        topics = describe_topics(self._router, [self._partition.topic]).values()
        return any(
            one.index == self._partition.partition for topic in topics for one in topic.partitions
        )

    def pause(self, seconds: float) -> None:
        """Wait, and look up the leader again."""
        self._router.invalidate(LeaderOf(self._partition))
        self._router.pause(seconds)


class RangeReader:
    """Reads one range."""

    def __init__(
        self,
        one: OffsetRange,
        records: RangeLog,
        *,
        fail_on_data_loss: bool = True,
        fetch_bytes: int = FETCH_BYTES,
        stalled_s: float = STALLED_S,
    ) -> None:
        self._range = one
        self._log = records
        self._fail_on_data_loss = fail_on_data_loss
        self._fetch_bytes = fetch_bytes
        self._stalled_s = stalled_s
        self._position = one.start
        self._backoff = Backoff()
        self._deadline = 0.0

    def read(self) -> Iterator[FetchedBatch]:
        """Yield the records of the range, in order. Raises RecordsLost if some are not there.

        Without `fail_on_data_loss`, logs the loss and goes on behind it.
        """
        end = self._range.end
        self._on_progress()
        while self._position < end:
            fetched = self._fetch()
            if fetched is None:
                continue
            before = self._position
            for next_offset, timestamp_type, records in _batches(fetched):
                if next_offset > self._position:
                    wanted = [r for r in records if self._position <= r.offset < end]
                    self._position = next_offset
                    if wanted:
                        yield FetchedBatch(timestamp_type, wanted)
                if self._position >= end:
                    break
            if self._position > before:
                self._on_progress()
            elif not self._has_stalled():
                self._log.pause(self._backoff.next_delay_s())
            else:
                self._give_up(fetched)

    def _fetch(self) -> SingleFetchResult | None:
        """Fetch at the position. Returns None if that failed and reading may go on."""
        try:
            try:
                return self._log.fetch(self._position, self._fetch_bytes)
            except OffsetOutOfRange:
                self._on_out_of_range()
        except ClusterError as error:
            self._on_error(error)
        return None

    def _on_progress(self) -> None:
        self._deadline = time.monotonic() + self._stalled_s
        self._backoff.reset()

    def _has_stalled(self) -> bool:
        return time.monotonic() > self._deadline

    def _on_out_of_range(self) -> None:
        partition, position = self._range.partition, self._position
        first = self._log.first_offset()
        if position < first:
            self._lose(f"{partition} begins at offset {first}, but {position} was next", first)
        elif self._has_stalled():
            self._lose(f"{partition} has no offset {position}: its log has become shorter")
        else:  # a former leader, or a new one that does not know its end yet
            self._log.pause(self._backoff.next_delay_s())

    def _on_error(self, error: ClusterError) -> None:
        partition = self._range.partition
        if not error.retriable:
            raise error
        if self._has_stalled():
            if self._log.exists():
                raise error
            self._lose(f"{partition} does not exist any more; {self._position} was next")
            return
        log.warning("A fetch of %s is tried again: %s", partition, error)
        self._fetch_bytes = min(self._fetch_bytes, max(self._fetch_bytes // 4, MIN_FETCH_BYTES))
        self._log.pause(self._backoff.next_delay_s())

    def _give_up(self, fetched: SingleFetchResult) -> None:
        """Leave out the rest of a range that the log does not have any more."""
        one = self._range
        if fetched.high_watermark >= one.end:
            raise ClusterTimeout(
                self._log.cluster,
                f"{one} brings no records behind offset {self._position}; check the leader",
            )
        self._lose(
            f"{one.partition} ends at offset {fetched.high_watermark}, but {one} is to be read"
        )

    def _lose(self, loss: str, next_offset: int | None = None) -> None:
        """Raise RecordsLost, or go on at an offset; without one, the range ends."""
        if self._fail_on_data_loss:
            raise RecordsLost(self._log.cluster, [loss])
        log.warning("Records are lost: %s", loss)
        end = self._range.end
        self._position = end if next_offset is None else min(next_offset, end)
        self._on_progress()


def _batches(fetched: SingleFetchResult) -> Iterator[tuple[int, int, list[Record]]]:
    """The batches of a fetch: the offset behind each, its timestamp type, its visible records."""
    aborted = AbortedTransactionFilter(fetched.aborted_transactions)
    for span in iter_batches(fetched.records):
        batch = fetched.records[span.start : span.end]
        if span.magic < MAGIC:
            records = message_format_v1.read_messages(batch)
            yield records[-1].offset + 1, _old_timestamp_type(batch, span.magic), records
            continue
        header = read_header(batch)
        verify_crc(header, batch)
        is_hidden = aborted.is_aborted(header, batch) or header.is_control
        timestamp_type = APPEND_TIME if header.is_log_append_time else CREATE_TIME
        yield header.next_offset, timestamp_type, [] if is_hidden else read_records(header, batch)


def _old_timestamp_type(message: bytes, magic: int) -> int:
    if magic == 0:
        return NO_TIMESTAMP_TYPE
    is_append_time = message[_OLD_ATTRIBUTES_OFFSET] & LOG_APPEND_TIME
    return APPEND_TIME if is_append_time else CREATE_TIME
