"""Which batches of a fetched partition belong to aborted transactions.

The broker answers a read_committed fetch with the log as it is, and a list of the aborted
transactions in it: the producer, and the first offset of its transaction. The end of an aborted
transaction is not in the list; it is the producer's abort marker in the log:

    list     (first 3, producer A)
    log      A:0-2   A:3-5   B:6   A:7   A's abort marker:8   A:9
    aborted            *           *

The state belongs to one response of one partition and must see every batch of it in order, those
before the position too. It is never carried over: the next response lists what it needs again.
"""

from __future__ import annotations

import enum
import struct
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from sparkmirror.wire import records
from sparkmirror.wire.header import CONTROL, TRANSACTIONAL, Data, Header

_MARKER_KEY = struct.Struct(">hh")


class AbortedTransaction(NamedTuple):
    """One entry of a fetch response."""

    first_offset: int
    producer_id: int


class Marker(enum.IntEnum):
    """The control records that end a transaction; every other type is None here."""

    ABORT = 0
    COMMIT = 1


def marker(header: Header, batch: Data) -> Marker | None:
    """Read what a control batch says, or None if it is emptied or of another kind."""
    if header.record_count == 0:
        return None
    key = records.read(header, batch)[0].key
    if key is None or len(key) < _MARKER_KEY.size:
        raise records.damaged(header, "is a control batch without a type")
    _, kind = _MARKER_KEY.unpack_from(key)
    return Marker(kind) if kind in (Marker.ABORT, Marker.COMMIT) else None


class AbortedFilter:
    """The read_committed filter for one response of one partition."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._ahead = deque(sorted(aborted))
        self._open: set[int] = set()

    def is_aborted(self, header: Header, batch: Data) -> bool:
        """Say whether a data batch must not be seen. Call it for every batch, in log order."""
        if not (self._ahead or self._open):
            return False
        while self._ahead and self._ahead[0].first_offset <= header.last_offset:
            self._open.add(self._ahead.popleft().producer_id)
        if header.producer_id not in self._open:
            return False
        if header.attributes & CONTROL:
            if marker(header, batch) is Marker.ABORT:
                self._open.discard(header.producer_id)
            return False
        return bool(header.attributes & TRANSACTIONAL)
