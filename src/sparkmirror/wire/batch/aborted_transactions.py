"""Which batches of a fetched partition belong to aborted transactions.

A read_committed fetch returns the log as it is, and a list of the aborted transactions in it: the
producer id, and the first offset of the transaction. The end of an aborted transaction is not in
the list; it is the producer's abort marker in the log:

    list     (first 3, producer A)
    log      A:0-2   A:3-5   B:6   A:7   A's abort marker:8   A:9
    aborted            *           *

The state belongs to one response of one partition. It must see every batch of it in order, also
those before the position. The next response has its own list.
"""

from __future__ import annotations

import enum
import struct
from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple

from sparkmirror.wire.batch import records
from sparkmirror.wire.batch.header import CONTROL, TRANSACTIONAL, BatchHeader, BytesLike

_CONTROL_KEY: Final = struct.Struct(">hh")


class AbortedTransaction(NamedTuple):
    """One entry of a fetch response."""

    first_offset: int
    producer_id: int


_MAX_CONTROL_BYTES: Final = 1 << 16
"""A control record has a few bytes. A damaged one must not take the memory of a large batch."""


class ControlRecordType(enum.IntEnum):
    """The control records that end a transaction."""

    ABORT = 0
    COMMIT = 1


def read_control_type(header: BatchHeader, batch: BytesLike) -> ControlRecordType | None:
    """Return the type of a control batch; None if it is empty or of another type."""
    if header.record_count == 0:
        return None
    key = records.read_records(header, batch, _MAX_CONTROL_BYTES)[0].key
    if key is None or len(key) < _CONTROL_KEY.size:
        raise records.corrupt_batch(header, "is a control batch without a type")
    _, kind = _CONTROL_KEY.unpack_from(key)
    return (
        ControlRecordType(kind)
        if kind in (ControlRecordType.ABORT, ControlRecordType.COMMIT)
        else None
    )


class AbortedTransactionFilter:
    """The read_committed filter for one response of one partition."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._upcoming = deque(sorted(aborted))
        self._aborted_producers: set[int] = set()

    def is_aborted(self, header: BatchHeader, batch: BytesLike) -> bool:
        """Whether a data batch is aborted. Call it for every batch, in log order."""
        if not (self._upcoming or self._aborted_producers):
            return False
        while self._upcoming and self._upcoming[0].first_offset <= header.last_offset:
            self._aborted_producers.add(self._upcoming.popleft().producer_id)
        if header.producer_id not in self._aborted_producers:
            return False
        if header.attributes & CONTROL:
            if read_control_type(header, batch) is ControlRecordType.ABORT:
                self._aborted_producers.discard(header.producer_id)
            return False
        return bool(header.attributes & TRANSACTIONAL)
