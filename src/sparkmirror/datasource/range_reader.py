"""Reads the records of one range of a partition. Runs in Spark's executors.

The position decides when the range ends, not the records: control batches and compacted records
have offsets, too. Blocks; belongs to the thread of its router.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import NamedTuple

from sparkmirror.backoff import Backoff
from sparkmirror.datasource.offset_ranges import OffsetRange
from sparkmirror.errors import ClusterError, ClusterTimeout, RecordsLost
from sparkmirror.wire.batch import message_format_v1
from sparkmirror.wire.batch.aborted_transactions import AbortedTransactionFilter
from sparkmirror.wire.batch.checksum import verify_crc
from sparkmirror.wire.batch.header import LOG_APPEND_TIME, MAGIC, iter_batches, read_header
from sparkmirror.wire.batch.records import Record, read_records
from sparkmirror.wire.net.routing import Router
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
NO_TIMESTAMP_TYPE, CREATE_TIME, APPEND_TIME = -1, 0, 1
"""Kafka's numbers of timestamp types."""
_OLD_ATTRIBUTES_OFFSET = 17


class FetchedBatch(NamedTuple):
    """Records of a batch that belong to the range, and what their timestamps mean."""

    timestamp_type: int
    records: list[Record]


class RangeReader:
    """Reads ranges with one router."""

    def __init__(
        self,
        router: Router,
        *,
        read_committed: bool = False,
        fail_on_data_loss: bool = True,
        fetch_bytes: int = FETCH_BYTES,
        stalled_s: float = STALLED_S,
    ) -> None:
        self._router = router
        self._read_committed = read_committed
        self._fail_on_data_loss = fail_on_data_loss
        self._fetch_bytes = fetch_bytes
        self._stalled_s = stalled_s

    def read(self, one: OffsetRange) -> Iterator[FetchedBatch]:
        """Yield the records of a range, in order. Raises RecordsLost if some are not there.

        Without `fail_on_data_loss`, logs the loss and goes on behind it.
        """
        position, backoff = one.start, Backoff()
        deadline = time.monotonic() + self._stalled_s
        while position < one.end:
            fetched = self._fetch(one, position, deadline)
            if fetched is None:
                position = self._skip_lost(one, position)
                continue
            before = position
            for next_offset, timestamp_type, records in _batches(fetched):
                if next_offset > position:
                    wanted = [r for r in records if position <= r.offset < one.end]
                    if wanted:
                        yield FetchedBatch(timestamp_type, wanted)
                    position = next_offset
            if position > before:
                deadline = time.monotonic() + self._stalled_s
                backoff.reset()
            elif time.monotonic() < deadline:
                self._router.pause(backoff.next_delay_s())
            else:
                position = self._give_up(one, position, fetched)

    def _fetch(self, one: OffsetRange, position: int, deadline: float) -> SingleFetchResult | None:
        """Fetch at a position until the deadline; return None if the log does not have it."""
        while True:
            try:
                return fetch_records(
                    self._router,
                    one.partition,
                    position,
                    max_bytes=self._fetch_bytes,
                    read_committed=self._read_committed,
                )
            except OffsetOutOfRange:
                return None
            except ClusterError as error:
                if not error.retriable or time.monotonic() > deadline:
                    raise
                log.warning("A fetch of %s is tried again: %s", one.partition, error)

    def _skip_lost(self, one: OffsetRange, position: int) -> int:
        """Return the first offset that is still there, at most the end of the range."""
        outcome = list_offsets(self._router, {one.partition: EARLIEST})[one.partition]
        raise_for_code(self._router, one.partition, outcome.code)
        first = one.end if outcome.value is None else outcome.value.offset
        if position < first:
            self._report(f"{one.partition} begins at offset {first}, but {position} was next")
            return min(first, one.end)
        self._report(f"{one.partition} has no offset {position}: its log has become shorter")
        return one.end

    def _give_up(self, one: OffsetRange, position: int, fetched: SingleFetchResult) -> int:
        """Return the end of a range that the log does not have any more, if that is accepted."""
        if fetched.high_watermark >= one.end:
            raise ClusterTimeout(
                self._router.cluster,
                f"{one} brings no records behind offset {position}; check the leader",
            )
        self._report(
            f"{one.partition} ends at offset {fetched.high_watermark}, but {one} is to be read"
        )
        return one.end

    def _report(self, loss: str) -> None:
        if self._fail_on_data_loss:
            raise RecordsLost(self._router.cluster, [loss])
        log.warning("Records are lost: %s", loss)


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
