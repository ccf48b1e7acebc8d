"""Reads a topic once for all conductors of this process that need records of it.

    conductor A ── read_to_end ──┐
    conductor B ── read_to_end ──┼──▶ SharedTopicReader, one thread ── TopicReader ──▶ brokers
    conductor C ── read_to_end ──┘        │
          ▲                               │  the records that each of them wants, in log order
          └── TopicSubscription ◀─────────┘

A worker may start a hundred conductors at once, and each needs its few records of the same topic.
A read serves every call that came before it began. So a call returns all records that were in the
topic when it was made, as if it had read the topic alone.

Without a call the reader reads every few seconds (`FOLLOW_S`). So a call has little to read,
however long the one before is ago: partitions stand still while their next owner reads.

A new subscription first gets the newest record of each key. The reader keeps these as long as they
are few (`MAX_NEWEST_BYTES`), and otherwise for a while after the last subscription has begun
(`JOIN_S`). Later ones get another reader, which reads the topic from its beginning.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeAlias

from sparkmirror.errors import CallCancelled, ClusterError, ClusterUnavailable
from sparkmirror.store.offsets_topic import RecordReader
from sparkmirror.store.topic_reader import ConsumedRecord, TopicReader, topic_partitions
from sparkmirror.wire.net.routing import Router

log = logging.getLogger(__name__)

FOLLOW_S = 3.0
"""How long the reader waits for a call before it reads by itself."""
JOIN_S = 30.0
"""How long the newest record of each key is kept for another subscription, if they are many."""
MAX_NEWEST_BYTES = 8 << 20
"""Up to so many bytes of keys and values, the newest records are kept."""
CANCEL_CHECK_S = 0.1
"""How often a waiting call looks for its cancellation."""
PARTITIONS_CHECK_S = 30.0
"""How often a reader asks whether the topic has other partitions."""
MAX_UNREAD = 1_000
"""A subscription with more unread records lets its owner collapse them."""

KeyFilter: TypeAlias = Callable[[bytes], bool]
Collapse: TypeAlias = Callable[[list[ConsumedRecord]], list[ConsumedRecord]]
"""Leaves out unread records that its subscription does not need, and keeps the order."""


class SharedTopicReader:
    """One reader of one topic, with its own router and thread. Any thread may subscribe."""

    def __init__(
        self,
        router: Router,
        topic: str,
        on_end: Callable[[SharedTopicReader], None] = lambda _reader: None,
    ) -> None:
        """The thread calls `on_end` after the last subscription has ended."""
        self._router = router
        self._topic = topic
        self._on_end = on_end
        self._reader: TopicReader | None = None
        self._condition = threading.Condition()
        self._subscriptions: set[TopicSubscription] = set()
        self._newest: dict[bytes | None, ConsumedRecord] | None = {}
        """The newest record of each key; None if no subscription may join any more."""
        self._newest_bytes = 0
        self._join_until = time.monotonic() + JOIN_S
        self._requested = 0
        """The number of the last read that a call needs. Reads have the numbers 1, 2, 3, …"""
        self._begun = 0
        self._ended = 0
        self._error: Exception | None = None
        """The error of the last read that has ended; None if it was read to the end."""
        self._retry_error: ClusterError | None = None
        """The last error of the running read after which it tried again."""
        self._failure: Exception | None = None
        """An error that no cluster caused: records may be missing, so nothing is read any more."""
        self._partitions_checked_at = 0.0
        self._is_closed = False
        router.on_retry = self._on_retry

    def start(self) -> None:
        """Start the thread. It ends when the last subscription has ended."""
        threading.Thread(target=self._run, name="shared-topic-reader", daemon=True).start()

    def subscribe(
        self, router: Router, is_wanted: KeyFilter, collapse: Collapse
    ) -> TopicSubscription | None:
        """Return a subscription that begins with the newest record of each wanted key.

        Returns None if this reader has no newest records any more.
        """
        with self._condition:
            if self._newest is None or self._is_closed:
                return None
            self._join_until = time.monotonic() + JOIN_S
            newest = (record for key, record in self._newest.items() if is_wanted(key or b""))
            subscription = TopicSubscription(self, router, is_wanted, collapse, newest)
            self._subscriptions.add(subscription)
            return subscription

    def unsubscribe(self, subscription: TopicSubscription) -> None:
        """Keep no more records for a subscription."""
        with self._condition:
            self._subscriptions.discard(subscription)
            self._condition.notify_all()

    def read_for(self, subscription: TopicSubscription) -> list[ConsumedRecord]:
        """Read to the present end; return the unread records of a subscription. Blocks.

        Raises CallCancelled if the router of the subscription is cancelled. After an error the
        records stay unread.
        """
        with self._condition:
            wanted = self._begun + 1
            self._requested = max(self._requested, wanted)
            self._condition.notify_all()
        self._await_end(wanted, subscription)
        with self._condition:
            if subscription not in self._subscriptions:
                raise CallCancelled(subscription.router.cluster)
            if self._error is not None:
                raise self._error.with_traceback(None)
            return subscription.take_unread()

    def _await_end(self, wanted: int, subscription: TopicSubscription) -> None:
        """Wait for the end of a read; tell the store's router of errors that are tried again."""
        router = subscription.router
        reported: ClusterError | None = None
        while True:
            with self._condition:
                if self._ended >= wanted:
                    return
                self._condition.wait(CANCEL_CHECK_S)
                retry_error = self._retry_error
                is_closed = subscription not in self._subscriptions
            if is_closed or router.cancel_signal.is_set():
                raise CallCancelled(router.cluster)
            if retry_error is not None and retry_error is not reported:
                reported = retry_error
                router.on_retry(retry_error)

    # -- the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        while self._await_request():
            error = self._read()
            with self._condition:
                self._error, self._retry_error = error, None
                self._ended = self._begun
                self._condition.notify_all()
        self._reader = None
        self._forget_newest()
        self._router.close()
        self._on_end(self)

    def _await_request(self) -> bool:
        """Wait until a read is needed or due; return False if there is no subscription any more."""
        with self._condition:
            follow_at = time.monotonic() + FOLLOW_S
            while self._subscriptions and self._requested <= self._begun:
                now = time.monotonic()
                if now >= self._join_until and self._newest_bytes > MAX_NEWEST_BYTES:
                    self._newest = None
                if now >= follow_at:
                    break
                self._condition.wait(follow_at - now)
            self._is_closed = not self._subscriptions
            self._begun += 1
            return not self._is_closed

    def _read(self) -> Exception | None:
        if self._failure is not None:
            return self._failure
        try:
            for record in self._open_reader().read_to_end():
                self._deliver(record)
        except ClusterError as error:
            return error
        except Exception as error:  # the calls that wait raise it
            log.exception("Reading %s has failed", self._topic)
            self._failure = error
            self._forget_newest()
            return error
        return None

    def _forget_newest(self) -> None:
        """Accept no further subscription."""
        with self._condition:
            self._newest = None

    def _open_reader(self) -> TopicReader:
        """Return the reader with the present ends. Raises ClusterUnavailable if it begins again.

        It does if the topic has other partitions than before, or was truncated or created again.
        All subscriptions then get all records again.
        """
        if self._reader is None:
            self._reader = TopicReader(self._router, self._topic)
            self._partitions_checked_at = time.monotonic()
            return self._reader
        if time.monotonic() - self._partitions_checked_at >= PARTITIONS_CHECK_S:
            self._router.refresh([self._topic])
            self._partitions_checked_at = time.monotonic()
        self._reader.move_end()
        positions = self._reader.positions()
        numbers = {p.partition for p in topic_partitions(self._router, self._topic)}
        ends = self._reader.end_offsets
        if numbers == positions.keys() and all(ends[n] >= at for n, at in positions.items()):
            return self._reader
        self._reader = None
        self._forget_newest()
        raise ClusterUnavailable(
            self._router.cluster,
            f"{self._topic} was changed, truncated or created again; it is read from its beginning",
        )

    def _deliver(self, record: ConsumedRecord) -> None:
        key = record.record.key
        with self._condition:
            if self._newest is not None:
                before = self._newest.get(key)
                self._newest_bytes += _size(record) - (_size(before) if before else 0)
                self._newest[key] = record
            for subscription in self._subscriptions:
                subscription.offer(key or b"", record)

    def _on_retry(self, error: ClusterError) -> None:
        with self._condition:
            self._retry_error = error
            self._condition.notify_all()


def _size(consumed: ConsumedRecord) -> int:
    key, value = consumed.record
    return len(key or b"") + len(value or b"")


class TopicSubscription(RecordReader):
    """The records of a shared reader that one store wants. A RecordReader."""

    def __init__(
        self,
        shared: SharedTopicReader,
        router: Router,
        is_wanted: KeyFilter,
        collapse: Collapse,
        newest: Iterator[ConsumedRecord],
    ) -> None:
        """`router` is that of the store: its cancellation ends a call that waits."""
        self._shared = shared
        self.router = router
        self._is_wanted = is_wanted
        self._collapse = collapse
        self._unread = list(newest)
        self._max_unread = MAX_UNREAD + len(self._unread)

    def move_end(self) -> None:
        """No-op: `read_to_end` reads to the present end."""

    def read_to_end(self) -> Iterator[ConsumedRecord]:
        """Yield the records up to the present end. Blocks."""
        yield from self._shared.read_for(self)

    def close(self) -> None:
        """Get no more records."""
        self._shared.unsubscribe(self)

    # -- under the lock of the shared reader -------------------------------------------------------

    def offer(self, key: bytes, record: ConsumedRecord) -> None:
        """Add a record to the unread ones if it is wanted."""
        if not self._is_wanted(key):
            return
        self._unread.append(record)
        if len(self._unread) > self._max_unread:
            self._unread = self._collapse(self._unread)
            self._max_unread = MAX_UNREAD + 2 * len(self._unread)

    def take_unread(self) -> list[ConsumedRecord]:
        """Return the unread records and forget them."""
        unread, self._unread = self._unread, []
        return unread
