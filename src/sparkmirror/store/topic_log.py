"""A log in Kafka: one topic, followed by a thread of its own.

    the caller's threads    append, read_to_end    one connection, behind a lock
    the thread `follow-…`   fetches, hands over    one connection of its own

Brokers may be away: following goes on trying, writing tries for half a minute. What is waited for
is said in the log once, and again now and then while it lasts. Partitions that are added to the
topic are followed after a restart, as Connect does.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from sparkmirror.errors import ClusterError, ClusterTimeout, ClusterUnavailable
from sparkmirror.mirror.records import RecordBytes
from sparkmirror.model import TopicPartition
from sparkmirror.store.exclusive import ExclusiveWriter
from sparkmirror.store.keyed import append_keyed
from sparkmirror.store.log import Entry, OnEntry
from sparkmirror.store.tail import Tail, ends_of, has_read, partitions_of
from sparkmirror.store.trouble import Trouble
from sparkmirror.wire.routing import Router

log = logging.getLogger(__name__)

T = TypeVar("T")

READ_S = 30.0
PATIENCE_S = 5.0
"""How long brokers may be away before that is said."""
TELL_EVERY_S = 5.0
STOP_S = 15.0
HANG_UP_S = 1.0


class TopicLog:
    """One of Connect's topics. `connect` makes a connection to its cluster, for one thread each.

    `prepare` sees to it that the topic is there and fit; it is tried again while that may help.
    `transactional_id` makes claims work; without one everybody may append at any time.
    """

    def __init__(
        self,
        topic: str,
        connect: Callable[[], Router],
        *,
        prepare: Callable[[], None] = lambda: None,
        transactional_id: str | None = None,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.topic = topic
        self._connect = connect
        self._prepare = prepare
        self._clock_ms = clock_ms
        self._exclusive = ExclusiveWriter(transactional_id) if transactional_id else None
        self._writing = threading.Lock()
        self._router: Router | None = None
        self._moved = threading.Condition()
        self._positions: Mapping[int, int] = {}
        self._count = 0
        self._ready = False
        self._failed: BaseException | None = None
        self._trouble = Trouble(topic)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    # -- following -----------------------------------------------------------------------------

    def start(self, on_entry: OnEntry) -> None:
        """Begin to follow; returns when all that stands in the topic was handed to `on_entry`.

        Waits while brokers are away. Raises what will not pass: no such topic, not allowed.
        """
        assert self._thread is None, "a log is started once"
        self._persist(self._prepare)
        self._thread = threading.Thread(
            target=self._follow,
            args=[self._connect(), on_entry],
            name=f"follow-{self.topic}",
            daemon=True,
        )
        self._thread.start()
        with self._moved:
            while not self._moved.wait_for(self._is_settled, timeout=TELL_EVERY_S):
                log.info(
                    "Still reading %s to its end, %d records so far; %s",
                    self.topic,
                    self._count,
                    self._trouble,
                )
        if self._failed is not None:
            raise self._failed

    def stop(self) -> None:
        """End the thread and the connections."""
        self._stopping.set()
        with self._moved:
            self._moved.notify_all()
        if self._thread is not None:
            self._thread.join(STOP_S)
        # Whoever is still writing may do so for long, and hangs up himself.
        if self._writing.acquire(timeout=HANG_UP_S):
            self._hang_up()
            self._writing.release()

    def _is_settled(self) -> bool:
        return self._ready or self._failed is not None or self._stopping.is_set()

    def _follow(self, router: Router, on_entry: OnEntry) -> None:
        try:
            tail = self._persist(partial(Tail, router, self.topic, PATIENCE_S))
            while tail is not None and not self._stopping.is_set():
                self._step(tail, on_entry)
        except BaseException as error:  # noqa: BLE001 - raised again by who waits for this thread
            self._give_up(error)
        finally:
            router.close()

    def _persist(self, attempt: Callable[[], T]) -> T | None:
        """Try something until it goes; None if told to stop meanwhile."""
        while not self._stopping.is_set():
            try:
                return attempt()
            except ClusterError as error:
                if not error.retriable:
                    raise
                self._trouble.note(error)
            self._stopping.wait(self._trouble.pause_s())
        return None

    def _step(self, tail: Tail, on_entry: OnEntry) -> None:
        entries, trouble = tail.poll()
        for entry in entries:
            _hand_over(on_entry, entry)
        self._count += len(entries)
        self._note(tail)
        if trouble is not None and not trouble.retriable and not self._ready:
            raise trouble
        self._trouble.note(trouble)
        if trouble is not None:
            self._stopping.wait(self._trouble.pause_s())

    def _note(self, tail: Tail) -> None:
        positions = tail.positions()
        if self._ready and positions == self._positions:
            return
        with self._moved:
            self._positions = positions
            if not self._ready and has_read(positions, tail.ends):
                self._ready = True
                self._tell(tail)
            self._moved.notify_all()

    def _tell(self, tail: Tail) -> None:
        offsets = sum(end - tail.starts[number] for number, end in tail.ends.items())
        if offsets == 0:
            log.info("%s is empty: nothing is remembered yet", self.topic)
            return
        log.info(
            "Read %s to its end: %d records in %d partitions; %d offsets hold none, as they were"
            " compacted, aborted or are markers",
            self.topic,
            self._count,
            len(tail.ends),
            max(offsets - self._count, 0),
        )

    def _give_up(self, error: BaseException) -> None:
        if self._ready:
            log.error("%s is not followed any more", self.topic, exc_info=error)
        with self._moved:
            self._failed = error
            self._moved.notify_all()

    # -- reading one's own writes --------------------------------------------------------------

    def read_to_end(self) -> None:
        """Return when all that was in the topic at the call was handed over."""
        with self._writer() as router:
            there = partitions_of(router, self.topic)
            ends = ends_of(router, [p for p in there if p.partition in self._positions])
        with self._moved:
            read = self._moved.wait_for(
                lambda: has_read(self._positions, ends) or self._is_over(), timeout=READ_S
            )
        if self._is_over():
            raise ClusterUnavailable(
                router.client.cluster, f"{self.topic} is not followed any more; restart the worker"
            )
        if not read:
            raise ClusterTimeout(
                router.client.cluster,
                f"{self.topic} could not be read to its end within {READ_S:.0f} s; {self._trouble}",
            )

    def _is_over(self) -> bool:
        return self._failed is not None or self._stopping.is_set()

    # -- appending -----------------------------------------------------------------------------

    def append(self, records: Sequence[RecordBytes]) -> None:
        """Append records in order; returns when the brokers have them, or raises ClusterError."""
        with self._writer() as router:
            append_keyed(router, self.topic, records, self._clock_ms())

    def claim(self) -> None:
        """Shut out everybody else from `append_claimed`."""
        if self._exclusive is not None:
            with self._writer() as router:
                self._exclusive.claim(router)

    def append_claimed(self, records: Sequence[RecordBytes]) -> None:
        """Append all or nothing to partition 0, and only while the claim holds."""
        if self._exclusive is None:
            self.append(records)
            return
        with self._writer() as router:
            self._exclusive.append(router, TopicPartition(self.topic, 0), records, self._clock_ms())

    @contextmanager
    def _writer(self) -> Iterator[Router]:
        """The connection for writing, for one thread at a time."""
        with self._writing:
            if self._router is None:
                self._router = self._connect()
            try:
                yield self._router
            finally:
                if self._stopping.is_set():
                    self._hang_up()

    def _hang_up(self) -> None:
        """Close the connection for writing. For whoever holds the lock."""
        if self._router is not None:
            self._router.close()
            self._router = None


def _hand_over(on_entry: OnEntry, entry: Entry) -> None:
    try:
        on_entry(entry)
    except Exception:
        # Whatever one record does to its reader, the next ones must be read.
        log.exception("Could not take in the record of %s", entry)
