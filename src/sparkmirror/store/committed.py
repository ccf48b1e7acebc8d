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
from sparkmirror.wire import legacy, records
from sparkmirror.wire.aborted import Marker, marker
from sparkmirror.wire.checksum import verify
from sparkmirror.wire.header import MAGIC, Header, batches, read_header
from sparkmirror.wire.records import Record

log = logging.getLogger(__name__)


class CommittedView:
    """Reads one partition on, answer by answer."""

    def __init__(self, partition: TopicPartition, position: int) -> None:
        self.partition = partition
        self.position = position
        """The offset to fetch next."""
        self._undecided: dict[int, list[Record]] = defaultdict(list)
        self._newest: dict[bytes | None, int] = {}
        """The highest offset that counts, by key; kept while a transaction is undecided."""

    def begin_again(self, position: int) -> None:
        """Go elsewhere in the log; transactions that were not over are forgotten."""
        self.position = position
        self._undecided.clear()
        self._newest.clear()

    def take(self, fetched: bytes) -> list[Record]:
        """Take in what a fetch at the position brought; return what comes to count."""
        before = self.position
        counting: list[Record] = []
        try:
            for span in batches(fetched):
                batch = fetched[span.start : span.end]
                counting += self._old(batch) if span.magic < MAGIC else self._new(batch)
        except BatchError as error:
            # Where the next batch begins is unknown: feel the way, one offset at a time.
            if self.position == before:
                self.position += 1
                self._skipped(before, before, error)
        return counting

    def _new(self, batch: bytes) -> list[Record]:
        header = read_header(batch)
        if header.next_offset <= self.position:
            return []  # a fetch begins with a whole batch, wherever the position lies in it
        first, self.position = self.position, header.next_offset
        try:
            verify(header, batch)
            return self._decided(header, batch)
        except BatchError as error:
            self._skipped(first, header.last_offset, error)
            return []

    def _old(self, message: bytes) -> list[Record]:
        found = [record for record in legacy.read(message) if record.offset >= self.position]
        if found:
            self.position = found[-1].offset + 1
        return found

    def _decided(self, header: Header, batch: bytes) -> list[Record]:
        """What a batch makes count: itself, or the transaction that it ends."""
        if header.is_control:
            ended = self._undecided.pop(header.producer_id, [])
            committed = ended if marker(header, batch) is Marker.COMMIT else []
            found = [r for r in committed if r.offset >= self._newest.get(r.key, r.offset)]
        else:
            found = records.read(header, batch)
            if header.is_transactional:
                self._undecided[header.producer_id] += found
                return []
        if self._undecided:
            self._newest |= {record.key: record.offset for record in found}
        else:
            self._newest.clear()
        return found

    def _skipped(self, first: int, last: int, error: BatchError) -> None:
        what, _, _ = str(error).partition(";")
        log.error(
            "Skipped offsets %d to %d of %s, which cannot be read: %s. Going on with what follows;"
            " what they said is lost unless it is written again",
            first,
            last,
            self.partition,
            what,
        )
