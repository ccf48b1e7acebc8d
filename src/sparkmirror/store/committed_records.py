"""What counts in one partition: its records without markers and without aborted transactions.

Records of a transaction come to count with its commit marker. The broker's own view
(read_committed) would not do: with several writers one open transaction hides what others have
committed already. Of one key the record with the highest offset counts, as for the log cleaner, so
one that is overtaken while its transaction is open never counts.

    log        A: k=1    B: k=2    B commits    A commits
    counts                         k=2          nothing: 2 lies behind 1

Bytes that cannot be understood are skipped, with a line in the log that says which offsets: one bad
batch must not keep a worker from everything behind it.
"""

from __future__ import annotations

import logging
from collections import defaultdict

from sparkmirror.errors import BatchError
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch import message_format_v1, records
from sparkmirror.wire.batch.aborted_transactions import ControlRecordType, read_control_type
from sparkmirror.wire.batch.checksum import verify_crc
from sparkmirror.wire.batch.header import MAGIC, BatchHeader, iter_batches, read_header
from sparkmirror.wire.batch.records import Record

log = logging.getLogger(__name__)


class CommittedRecordReader:
    """Reads one partition on, answer by answer."""

    def __init__(self, partition: TopicPartition, position: int) -> None:
        self.partition = partition
        self.position = position
        """The offset to fetch next."""
        self._open_transactions: dict[int, list[Record]] = defaultdict(list)
        self._newest_offsets: dict[bytes | None, int] = {}
        """The highest offset that counts, by key; kept while a transaction is undecided."""

    def seek(self, position: int) -> None:
        """Go elsewhere in the log; transactions that were not over are forgotten."""
        self.position = position
        self._open_transactions.clear()
        self._newest_offsets.clear()

    def accept(self, fetched: bytes) -> list[Record]:
        """Take in what a fetch at the position brought; return what comes to count."""
        before = self.position
        counting: list[Record] = []
        try:
            for span in iter_batches(fetched):
                batch = fetched[span.start : span.end]
                counting += (
                    self._accept_message(batch) if span.magic < MAGIC else self._accept_batch(batch)
                )
        except BatchError as error:
            # Where the next batch begins is unknown: feel the way, one offset at a time.
            if self.position == before:
                self.position += 1
                self._log_skipped(before, before, error)
        return counting

    def _accept_batch(self, batch: bytes) -> list[Record]:
        header = read_header(batch)
        if header.next_offset <= self.position:
            return []  # a fetch begins with a whole batch, wherever the position lies in it
        first, self.position = self.position, header.next_offset
        try:
            verify_crc(header, batch)
            return self._apply_batch(header, batch)
        except BatchError as error:
            self._log_skipped(first, header.last_offset, error)
            return []

    def _accept_message(self, message: bytes) -> list[Record]:
        found = [
            record
            for record in message_format_v1.read_messages(message)
            if record.offset >= self.position
        ]
        if found:
            self.position = found[-1].offset + 1
        return found

    def _apply_batch(self, header: BatchHeader, batch: bytes) -> list[Record]:
        """What a batch makes count: itself, or the transaction that it ends."""
        if header.is_control:
            ended = self._open_transactions.pop(header.producer_id, [])
            committed = (
                ended if read_control_type(header, batch) is ControlRecordType.COMMIT else []
            )
            found = [r for r in committed if r.offset >= self._newest_offsets.get(r.key, r.offset)]
        else:
            found = records.read_records(header, batch)
            if header.is_transactional:
                self._open_transactions[header.producer_id] += found
                return []
        if self._open_transactions:
            self._newest_offsets |= {record.key: record.offset for record in found}
        else:
            self._newest_offsets.clear()
        return found

    def _log_skipped(self, first: int, last: int, error: BatchError) -> None:
        what, _, _ = str(error).partition(";")
        log.error(
            "Skipped offsets %d to %d of %s, which cannot be read: %s. Going on with what follows;"
            " what they said is lost unless it is written again",
            first,
            last,
            self.partition,
            what,
        )
