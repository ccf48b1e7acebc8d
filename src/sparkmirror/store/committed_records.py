"""The committed records of one partition: no transaction markers, no aborted transactions.

The records of a transaction are returned with its commit marker. The broker's read_committed is not
used: with several writers, one open transaction hides what the others have committed. Of one key
the record with the highest offset wins, as in the log cleaner. So a record that a later record of
its key overtakes while its transaction is open is never returned.

    log         A: k=1    B: k=2    B commits    A commits
    returned                        k=2          nothing: k=2 has the higher offset

Batches that cannot be decoded are skipped, and the log names their offsets: one bad batch must not
keep a worker from reading the records after it.
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
    """Turns the fetched bytes of one partition into committed records, fetch by fetch."""

    def __init__(self, partition: TopicPartition, position: int) -> None:
        self.partition = partition
        self.position = position
        """The offset to fetch next."""
        self._open_transactions: dict[int, list[Record]] = defaultdict(list)
        self._newest_offsets: dict[bytes | None, int] = {}
        """The highest committed offset by key, kept while a transaction is open."""

    def seek(self, position: int) -> None:
        """Set the position and forget open transactions."""
        self.position = position
        self._open_transactions.clear()
        self._newest_offsets.clear()

    def accept(self, fetched: bytes) -> list[Record]:
        """Return the records that the bytes of a fetch at the position commit."""
        before = self.position
        committed: list[Record] = []
        try:
            for span in iter_batches(fetched):
                batch = fetched[span.start : span.end]
                committed += (
                    self._accept_message(batch) if span.magic < MAGIC else self._accept_batch(batch)
                )
        except BatchError as error:
            # The start of the next batch is unknown: try the next offset.
            if self.position == before:
                self.position += 1
                self._log_skipped(before, before, error)
        return committed

    def _accept_batch(self, batch: bytes) -> list[Record]:
        header = read_header(batch)
        if header.next_offset <= self.position:
            return []  # a fetch begins with a whole batch, also if the position is inside it
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
        """Return the records that a batch commits: its own, or those of the ended transaction."""
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
        reason, _, _ = str(error).partition(";")
        log.error(
            "Skipped offsets %d to %d of %s, which cannot be read: %s. Reading continues after"
            " them; their records are lost unless they are written again",
            first,
            last,
            self.partition,
            reason,
        )
