"""Offset syncs: what MirrorMaker 2's checkpoints are made from, written as it writes them.

The conductor says what was acknowledged and when positions were remembered; when a sync is due, and
which, are `mirror.offset_syncs`' rules. A thread of its own writes them, so that trouble with the
cluster that holds the topic does not hold up the copying. A sync that cannot be written is kept
until it can, or until a later one of its partition takes its place.
"""

from __future__ import annotations

import logging
import threading
import time

from sparkmirror.copy.dial import dial
from sparkmirror.copy.job import SyncsTopic
from sparkmirror.errors import MirrorError
from sparkmirror.mirror.offset_syncs import OffsetSyncQueue
from sparkmirror.mirror.records import OffsetSync
from sparkmirror.mirror.runs import Run
from sparkmirror.model import TopicPartition
from sparkmirror.wire.append import append
from sparkmirror.wire.backoff import Backoff
from sparkmirror.wire.records import Record
from sparkmirror.wire.routing import Router

log = logging.getLogger(__name__)

AT_ONCE = 500
"""Syncs in one batch; each partition has at most one waiting."""
STOP_WITHIN_S = 5.0


class SyncWriter:
    """Writes the offset syncs of one job."""

    def __init__(self, topic: SyncsTopic, client_id: str) -> None:
        self._topic = topic
        self._router = Router(*dial(topic.cluster, topic.client, client_id))
        self._queue = OffsetSyncQueue(topic.offset_lag_max, max_in_flight=AT_ONCE)
        self._news = threading.Condition()
        self._unwritten: dict[TopicPartition, OffsetSync] = {}
        self._stopping = False
        self._trouble = ""
        self._thread = threading.Thread(target=self._run, name="offset-syncs", daemon=True)

    def start(self) -> None:
        """Begin; nothing is waited for."""
        self._thread.start()

    def copied(self, partition: TopicPartition, run: Run) -> None:
        """Take in a run of acknowledged records of a source partition. Returns at once."""
        with self._news:
            self._queue.queue_run(partition, run)
            self._news.notify()

    def committed(self) -> None:
        """Positions were remembered: what was put off is due now. Returns at once."""
        with self._news:
            self._queue.promote()
            self._news.notify()

    def stop(self) -> None:
        """Write what is due, if that is quickly done, and end."""
        with self._news:
            self._queue.promote()
            self._stopping = True
            self._news.notify()
        if self._thread.is_alive():
            self._thread.join(timeout=STOP_WITHIN_S)

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        backoff = Backoff(first_s=0.2, longest_s=10.0)
        try:
            while self._take_due():
                try:
                    self._write()
                    backoff.reset()
                except MirrorError as error:
                    if self._stopping:
                        return
                    self._tell(error)
                    self._pause(backoff.pause_s())
        finally:
            self._router.close()

    def _take_due(self) -> bool:
        """Wait until there is something to write; False when it is all over."""
        with self._news:
            self._news.wait_for(lambda: bool(self._due()) or self._stopping)
            for sync in self._queue.fire():
                self._unwritten[sync.partition] = sync
                self._queue.sent()
            return bool(self._unwritten)

    def _due(self) -> bool:
        return bool(self._unwritten or self._queue.pending)

    def _write(self) -> None:
        now_ms = time.time_ns() // 1_000_000
        syncs = list(self._unwritten.values())[:AT_ONCE]
        append(
            self._router,
            TopicPartition(self._topic.name, 0),
            [Record(0, now_ms, *sync.encode()) for sync in syncs],
        )
        for sync in syncs:
            del self._unwritten[sync.partition]
        self._trouble = ""

    def _tell(self, error: MirrorError) -> None:
        if str(error) != self._trouble:
            log.warning("Offset syncs wait to be written to %s: %s", self._topic.name, error)
        self._trouble = str(error)

    def _pause(self, seconds: float) -> None:
        with self._news:
            self._news.wait_for(lambda: self._stopping, timeout=seconds)
