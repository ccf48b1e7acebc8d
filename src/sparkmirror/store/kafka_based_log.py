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
from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.model import TopicPartition
from sparkmirror.store.compacted_log import ConsumedCallback, ConsumedRecord
from sparkmirror.store.fenced_writer import FencedWriter
from sparkmirror.store.keyed_append import append_keyed
from sparkmirror.store.read_errors import ReadErrorTracker
from sparkmirror.store.topic_reader import TopicReader, end_offsets, has_reached, topic_partitions
from sparkmirror.wire.net.routing import Router

log = logging.getLogger(__name__)

T = TypeVar("T")

READ_TO_END_TIMEOUT_S = 30.0
METADATA_TIMEOUT_S = 5.0
"""How long brokers may be away before that is said."""
PROGRESS_LOG_INTERVAL_S = 5.0
STOP_TIMEOUT_S = 15.0
CLOSE_TIMEOUT_S = 1.0


class KafkaBasedLog:
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
        self._new_router = connect
        self._set_up_topic = prepare
        self._clock_ms = clock_ms
        self._fenced_writer = FencedWriter(transactional_id) if transactional_id else None
        self._write_lock = threading.Lock()
        self._router: Router | None = None
        self._progress = threading.Condition()
        self._positions: Mapping[int, int] = {}
        self._record_count = 0
        self._ready = False
        self._error: BaseException | None = None
        self._read_errors = ReadErrorTracker(topic)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    # -- following -----------------------------------------------------------------------------

    def start(self, on_entry: ConsumedCallback) -> None:
        """Begin to follow; returns when all that stands in the topic was handed to `on_entry`.

        Waits while brokers are away. Raises what will not pass: no such topic, not allowed.
        """
        assert self._thread is None, "a log is started once"
        self._retry(self._set_up_topic)
        self._thread = threading.Thread(
            target=self._run,
            args=[self._new_router(), on_entry],
            name=f"follow-{self.topic}",
            daemon=True,
        )
        self._thread.start()
        with self._progress:
            while not self._progress.wait_for(
                self._is_started_or_ended, timeout=PROGRESS_LOG_INTERVAL_S
            ):
                log.info(
                    "Still reading %s to its end, %d records so far; %s",
                    self.topic,
                    self._record_count,
                    self._read_errors,
                )
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """End the thread and the connections."""
        self._stopping.set()
        with self._progress:
            self._progress.notify_all()
        if self._thread is not None:
            self._thread.join(STOP_TIMEOUT_S)
        # Whoever is still writing may do so for long, and hangs up himself.
        if self._write_lock.acquire(timeout=CLOSE_TIMEOUT_S):
            self._close_router()
            self._write_lock.release()

    def _is_started_or_ended(self) -> bool:
        return self._ready or self._error is not None or self._stopping.is_set()

    def _run(self, router: Router, on_entry: ConsumedCallback) -> None:
        try:
            tail = self._retry(partial(TopicReader, router, self.topic, METADATA_TIMEOUT_S))
            while tail is not None and not self._stopping.is_set():
                self._poll_once(tail, on_entry)
        except BaseException as error:  # noqa: BLE001 - raised again by who waits for this thread
            self._fail(error)
        finally:
            router.close()

    def _retry(self, attempt: Callable[[], T]) -> T | None:
        """Try something until it goes; None if told to stop meanwhile."""
        while not self._stopping.is_set():
            try:
                return attempt()
            except ClusterError as error:
                if not error.retriable:
                    raise
                self._read_errors.on_attempt(error)
            self._stopping.wait(self._read_errors.next_delay_s())
        return None

    def _poll_once(self, tail: TopicReader, on_entry: ConsumedCallback) -> None:
        entries, trouble = tail.poll()
        for entry in entries:
            _consume(on_entry, entry)
        self._record_count += len(entries)
        self._update_positions(tail)
        if trouble is not None and not trouble.retriable and not self._ready:
            raise trouble
        self._read_errors.on_attempt(trouble)
        if trouble is not None:
            self._stopping.wait(self._read_errors.next_delay_s())

    def _update_positions(self, tail: TopicReader) -> None:
        positions = tail.positions()
        if self._ready and positions == self._positions:
            return
        with self._progress:
            self._positions = positions
            if not self._ready and has_reached(positions, tail.end_offsets):
                self._ready = True
                self._log_caught_up(tail)
            self._progress.notify_all()

    def _log_caught_up(self, tail: TopicReader) -> None:
        offsets = sum(
            end - tail.beginning_offsets[number] for number, end in tail.end_offsets.items()
        )
        if offsets == 0:
            log.info("%s is empty: nothing is remembered yet", self.topic)
            return
        log.info(
            "Read %s to its end: %d records in %d partitions; %d offsets hold none, as they were"
            " compacted, aborted or are markers",
            self.topic,
            self._record_count,
            len(tail.end_offsets),
            max(offsets - self._record_count, 0),
        )

    def _fail(self, error: BaseException) -> None:
        if self._ready:
            log.error("%s is not followed any more", self.topic, exc_info=error)
        with self._progress:
            self._error = error
            self._progress.notify_all()

    # -- reading one's own writes --------------------------------------------------------------

    def read_to_end(self) -> None:
        """Return when all that was in the topic at the call was handed over."""
        with self._locked_router() as router:
            there = topic_partitions(router, self.topic)
            ends = end_offsets(router, [p for p in there if p.partition in self._positions])
        with self._progress:
            read = self._progress.wait_for(
                lambda: has_reached(self._positions, ends) or self._has_ended(),
                timeout=READ_TO_END_TIMEOUT_S,
            )
        if self._has_ended():
            raise ClusterUnavailable(
                router.client.cluster, f"{self.topic} is not followed any more; restart the worker"
            )
        if not read:
            raise ClusterTimeout(
                router.client.cluster,
                f"{self.topic} could not be read to its end within {READ_TO_END_TIMEOUT_S:.0f}"
                f" s; {self._read_errors}",
            )

    def _has_ended(self) -> bool:
        return self._error is not None or self._stopping.is_set()

    # -- appending -----------------------------------------------------------------------------

    def append(self, records: Sequence[RecordBytes]) -> None:
        """Append records in order; returns when the brokers have them, or raises ClusterError."""
        with self._locked_router() as router:
            append_keyed(router, self.topic, records, self._clock_ms())

    def claim_write_privileges(self) -> None:
        """Shut out everybody else from `append_claimed`."""
        if self._fenced_writer is not None:
            with self._locked_router() as router:
                self._fenced_writer.init_transactions(router)

    def append_privileged(self, records: Sequence[RecordBytes]) -> None:
        """Append all or nothing to partition 0, and only while the claim holds."""
        if self._fenced_writer is None:
            self.append(records)
            return
        with self._locked_router() as router:
            self._fenced_writer.append(
                router, TopicPartition(self.topic, 0), records, self._clock_ms()
            )

    @contextmanager
    def _locked_router(self) -> Iterator[Router]:
        """The connection for writing, for one thread at a time."""
        with self._write_lock:
            if self._router is None:
                self._router = self._new_router()
            try:
                yield self._router
            finally:
                if self._stopping.is_set():
                    self._close_router()

    def _close_router(self) -> None:
        """Close the connection for writing. For whoever holds the lock."""
        if self._router is not None:
            self._router.close()
            self._router = None


def _consume(on_entry: ConsumedCallback, entry: ConsumedRecord) -> None:
    try:
        on_entry(entry)
    except Exception:
        # Whatever one record does to its reader, the next ones must be read.
        log.exception("Could not take in the record of %s", entry)
