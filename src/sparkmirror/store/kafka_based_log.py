"""A compacted topic as the stores use it: follow it, append to it, read your own writes.

    the caller's threads    append, read_to_end          one router, behind a lock
    the thread `follow-…`   fetches, calls the callback  its own router

Brokers may be unavailable. The thread retries without end, a write retries for some seconds. The
log says once why the topic cannot be read, again every minute, and when it can be read again.
Partitions that are added to the topic are followed after a restart, as in Connect.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Protocol, TypeAlias, TypeVar

from sparkmirror.backoff import Backoff
from sparkmirror.errors import CallCancelled, ClusterError, ClusterTimeout, ClusterUnavailable
from sparkmirror.logging_context import ContextThread
from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.model import TopicPartition
from sparkmirror.store.fenced_writer import FencedWriter
from sparkmirror.store.keyed_append import append_keyed
from sparkmirror.store.store_api import READ_TO_END_TIMEOUT_S, TRANSACTION_TIMEOUT_S
from sparkmirror.store.topic_follower import TopicFollower
from sparkmirror.store.topic_reader import (
    ConsumedRecord,
    TopicReader,
    end_offsets,
    has_reached,
    topic_partitions,
)
from sparkmirror.wire.net.routing import Router

log = logging.getLogger(__name__)

T = TypeVar("T")

WRITE_TIMEOUT_S = 8.0
"""How long a write may take. REST answers within 10 s, with the cause."""
METADATA_TIMEOUT_S = 5.0
"""How long brokers may be unavailable before the log says so."""
PROGRESS_LOG_INTERVAL_S = 5.0
STOP_TIMEOUT_S = 15.0
CLOSE_TIMEOUT_S = 1.0
REPEAT_WARNING_S = 60.0
MAX_RETRY_DELAY_S = 2.0
PROBLEM_AFTER_S = 1.0
"""A shorter failure to read is no problem: leaders move."""

ConsumedCallback: TypeAlias = Callable[[ConsumedRecord], None]
"""Receives one record. Called by one thread at a time, in the order of each partition."""


class CompactedLog(Protocol):
    """What the stores need of a log. Several threads may call all methods but `start`."""

    @property
    def topic(self) -> str: ...
    def start(self, on_record: ConsumedCallback) -> None: ...
    def stop(self) -> None: ...
    def read_to_end(self, timeout_s: float = READ_TO_END_TIMEOUT_S) -> None: ...
    def append(self, records: Sequence[RecordBytes]) -> None: ...
    def claim_write_privileges(self, timeout_s: float = TRANSACTION_TIMEOUT_S) -> None: ...
    def append_privileged(self, records: Sequence[RecordBytes]) -> None: ...
    def problem(self) -> str: ...


class KafkaBasedLog:
    """A `CompactedLog` in Kafka. `new_router` makes the routers, one per thread.

    `set_up_topic` creates or verifies the topic. It is retried while its error is retriable.
    `transactional_id` turns on write privileges; without it every worker may append at any time.
    """

    def __init__(
        self,
        topic: str,
        new_router: Callable[[], Router],
        *,
        set_up_topic: Callable[[], None] = lambda: None,
        transactional_id: str | None = None,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.topic = topic
        self._new_router = new_router
        self._set_up_topic = set_up_topic
        self._clock_ms = clock_ms
        self._fenced_writer = FencedWriter(transactional_id) if transactional_id else None
        self._write_lock = threading.Lock()
        self._router: Router | None = None
        self._cluster = ""
        """The alias of the cluster. The first request sets it."""
        self._reading_router: Router | None = None
        self._progress = threading.Condition()
        self._positions: Mapping[int, int] = {}
        self._record_count = 0
        self._ready = False
        self._error: BaseException | None = None
        self._read_errors = _ReadErrors(topic)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    # -- following -----------------------------------------------------------------------------

    def start(self, on_record: ConsumedCallback) -> None:
        """Start the thread. Returns when `on_record` has received all records up to the end.

        Blocks while brokers are unavailable. Raises errors that are not retriable: the topic does
        not exist, the worker is not authorized.
        """
        assert self._thread is None, "a log is started once"
        self._retry(self._set_up_topic)
        self._reading_router = self._new_router()
        self._thread = ContextThread(
            target=self._run,
            args=[self._reading_router, on_record],
            name=f"follow-{self.topic}",
        )
        self._thread.start()
        with self._progress:
            while not self._progress.wait_for(
                self._is_started_or_ended, timeout=PROGRESS_LOG_INTERVAL_S
            ):
                log.info(
                    "Still reading topic %s to its end, %d records so far; %s",
                    self.topic,
                    self._record_count,
                    self._read_errors,
                )
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """End the thread and close the routers."""
        self._stopping.set()
        for router in (self._reading_router, self._router):
            if router is not None:
                router.cancel()
        with self._progress:
            self._progress.notify_all()
        if self._thread is not None:
            self._thread.join(STOP_TIMEOUT_S)
        # A thread that is still writing may block for long. It closes the router when it is done.
        if self._write_lock.acquire(timeout=CLOSE_TIMEOUT_S):
            self._close_router()
            self._write_lock.release()

    def problem(self) -> str:
        """Return why the topic cannot be read now; empty if it can."""
        if self._error is not None:
            return f"{self.topic} is not followed any more; restart the worker: {self._error}"
        return self._read_errors.problem

    def _is_started_or_ended(self) -> bool:
        return self._ready or self._error is not None or self._stopping.is_set()

    def _run(self, router: Router, on_record: ConsumedCallback) -> None:
        try:
            reader = self._retry(partial(TopicReader, router, self.topic, METADATA_TIMEOUT_S))
            if reader is not None:
                self._follow(reader, TopicFollower(router, reader), on_record)
        except CallCancelled:
            assert self._stopping.is_set(), "only `stop` cancels"
        except BaseException as error:  # noqa: BLE001 - raised again in the threads that wait
            self._fail(error)
        finally:
            router.close()

    def _retry(self, attempt: Callable[[], T]) -> T | None:
        """Return the result of `attempt`, retried while its error is retriable; None on `stop`."""
        while not self._stopping.is_set():
            try:
                return attempt()
            except ClusterError as error:
                if not error.retriable:
                    raise
                self._read_errors.on_attempt(error)
            self._stopping.wait(self._read_errors.next_delay_s())
        return None

    def _follow(
        self, reader: TopicReader, follower: TopicFollower, on_record: ConsumedCallback
    ) -> None:
        while not self._stopping.is_set():
            records, error = follower.poll()
            for record in records:
                _consume(on_record, record)
            self._record_count += len(records)
            self._update_positions(reader)
            if self._stopping.is_set():
                return
            if error is not None and not error.retriable and not self._ready:
                raise error
            self._read_errors.on_attempt(error)
            if error is not None:
                self._stopping.wait(self._read_errors.next_delay_s())

    def _update_positions(self, reader: TopicReader) -> None:
        positions = reader.positions()
        if self._ready and positions == self._positions:
            return
        with self._progress:
            self._positions = positions
            if not self._ready and has_reached(positions, reader.end_offsets):
                self._ready = True
                self._log_caught_up(reader)
            self._progress.notify_all()

    def _log_caught_up(self, reader: TopicReader) -> None:
        offsets = sum(
            end - reader.beginning_offsets[number] for number, end in reader.end_offsets.items()
        )
        if offsets == 0:
            log.info("Topic %s is empty", self.topic)
            return
        log.info(
            "Read topic %s to its end: %d records in %d partitions; %d offsets have no record,"
            " because they were compacted, aborted or are transaction markers",
            self.topic,
            self._record_count,
            len(reader.end_offsets),
            max(offsets - self._record_count, 0),
        )

    def _fail(self, error: BaseException) -> None:
        if self._ready:
            log.error("Stopped following topic %s; restart the worker", self.topic, exc_info=error)
        with self._progress:
            self._error = error
            self._progress.notify_all()

    # -- reading one's own writes --------------------------------------------------------------

    def read_to_end(self, timeout_s: float = READ_TO_END_TIMEOUT_S) -> None:
        """Return when the callback has received all records that were in the topic at the call.

        Raises ClusterTimeout, or ClusterUnavailable if the thread has ended.
        """
        deadline = time.monotonic() + timeout_s
        with self._locked_router(min(timeout_s, WRITE_TIMEOUT_S)) as router:
            partitions = topic_partitions(router, self.topic)
            ends = end_offsets(router, [p for p in partitions if p.partition in self._positions])
        with self._progress:
            reached = self._progress.wait_for(
                lambda: has_reached(self._positions, ends) or self._has_ended(),
                timeout=deadline - time.monotonic(),
            )
        if self._has_ended():
            raise ClusterUnavailable(
                router.client.cluster, f"{self.topic} is not followed any more; restart the worker"
            )
        if not reached:
            raise ClusterTimeout(
                router.client.cluster,
                f"{self.topic} could not be read to its end within {timeout_s:.0f} s;"
                f" {self._read_errors}",
            )

    def _has_ended(self) -> bool:
        return self._error is not None or self._stopping.is_set()

    # -- appending -----------------------------------------------------------------------------

    def append(self, records: Sequence[RecordBytes]) -> None:
        """Append records in order. Returns when the brokers have them. Raises ClusterError."""
        with self._locked_router(WRITE_TIMEOUT_S) as router:
            append_keyed(router, self.topic, records, self._clock_ms())

    def claim_write_privileges(self, timeout_s: float = TRANSACTION_TIMEOUT_S) -> None:
        """Fence every other worker from `append_privileged`. No-op without a transactional id."""
        if self._fenced_writer is not None:
            with self._locked_router(timeout_s) as router:
                self._fenced_writer.init_transactions(router)

    def append_privileged(self, records: Sequence[RecordBytes]) -> None:
        """Append all records or none to partition 0. Raises LeadershipLost without privileges."""
        if self._fenced_writer is None:
            self.append(records)
            return
        with self._locked_router(TRANSACTION_TIMEOUT_S) as router:
            self._fenced_writer.append(
                router, TopicPartition(self.topic, 0), records, self._clock_ms()
            )

    @contextmanager
    def _locked_router(self, timeout_s: float) -> Iterator[Router]:
        """Lend the router for writing to one thread at a time, for `timeout_s` from now."""
        deadline = time.monotonic() + timeout_s
        if not self._write_lock.acquire(timeout=timeout_s):
            raise ClusterTimeout(
                self._cluster,
                f"an earlier request for topic {self.topic} has no answer after {timeout_s:.0f} s",
            )
        try:
            if self._router is None:
                self._router = self._new_router()
                self._cluster = self._router.cluster
            with self._router.time_limit(deadline - time.monotonic()):
                yield self._router
        finally:
            if self._stopping.is_set():
                self._close_router()
            self._write_lock.release()

    def _close_router(self) -> None:
        """Close the router for writing. The caller holds the write lock."""
        if self._router is not None:
            self._router.close()
            self._router = None


class _ReadErrors:
    """The current read error of one topic, and its log lines. The reading thread calls it."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._error: ClusterError | None = None
        self._since = 0.0
        self._logged_at = 0.0
        self._backoff = Backoff(max_s=MAX_RETRY_DELAY_S)

    def on_attempt(self, error: ClusterError | None) -> None:
        """Record the result of an attempt to read; None is a success."""
        now = time.monotonic()
        before, self._error = self._error, error
        if error is None:
            self._backoff.reset()
            if before is not None:
                log.info("Topic %s can be read again, after %.1f s", self._topic, now - self._since)
            return
        if before is None:
            self._since = now
        if before is None or now - self._logged_at > REPEAT_WARNING_S:
            self._logged_at = now
            log.warning("Topic %s cannot be read, trying again: %s", self._topic, error)

    @property
    def problem(self) -> str:
        error = self._error
        lasts_s = time.monotonic() - self._since
        return "" if error is None or lasts_s < PROBLEM_AFTER_S else str(error)

    def next_delay_s(self) -> float:
        return self._backoff.next_delay_s()

    def __str__(self) -> str:
        return "no error is known" if self._error is None else str(self._error)


def _consume(on_record: ConsumedCallback, record: ConsumedRecord) -> None:
    try:
        on_record(record)
    except Exception:
        # A record that its store cannot apply must not keep the next ones from being read.
        log.exception("Ignored a record that could not be applied: %s", record)
