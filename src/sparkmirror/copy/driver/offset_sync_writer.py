"""Offset syncs: what MirrorMaker 2's checkpoints are made from, written as it writes them.

The conductor says what was acknowledged and when positions were remembered; when a sync is due, and
which, are `mirror.offsets.offset_sync_queue`' rules. A thread of its own writes them, so that
trouble with the cluster that holds the topic does not hold up the copying. A sync that cannot be
written is kept until it can, or until a later one of its partition takes its place.
"""

from __future__ import annotations

import logging
import threading
import time

from sparkmirror.backoff import Backoff
from sparkmirror.copy.client_setup import resolve_client
from sparkmirror.copy.job import OffsetSyncsTopic
from sparkmirror.errors import MirrorError
from sparkmirror.mirror.offsets.offset_sync_queue import OffsetSyncQueue
from sparkmirror.mirror.offsets.records import OffsetSync
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.single_produce import append_records

log = logging.getLogger(__name__)

MAX_SYNCS_PER_BATCH = 500
"""Syncs in one batch; each partition has at most one waiting."""
STOP_TIMEOUT_S = 5.0


class OffsetSyncWriter:
    """Writes the offset syncs of one job."""

    def __init__(self, topic: OffsetSyncsTopic, client_id: str) -> None:
        self._topic = topic
        self._router = Router(*resolve_client(topic.cluster, topic.client, client_id))
        self._queue = OffsetSyncQueue(topic.offset_lag_max, max_in_flight=MAX_SYNCS_PER_BATCH)
        self._condition = threading.Condition()
        self._unwritten: dict[TopicPartition, OffsetSync] = {}
        self._stopping = False
        self._last_error = ""
        self._thread = threading.Thread(target=self._run, name="offset-syncs", daemon=True)

    def start(self) -> None:
        """Begin; nothing is waited for."""
        self._thread.start()

    def add_run(self, partition: TopicPartition, run: OffsetRun) -> None:
        """Take in a run of acknowledged records of a source partition. Returns at once."""
        with self._condition:
            self._queue.queue_run(partition, run)
            self._condition.notify()

    def on_offsets_committed(self) -> None:
        """Positions were remembered: what was put off is due now. Returns at once."""
        with self._condition:
            self._queue.promote_delayed()
            self._condition.notify()

    def stop(self) -> None:
        """Write what is due, if that is quickly done, and end."""
        with self._condition:
            self._queue.promote_delayed()
            self._stopping = True
            self._condition.notify()
        if self._thread.is_alive():
            self._thread.join(timeout=STOP_TIMEOUT_S)

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        backoff = Backoff(initial_s=0.2, max_s=10.0)
        try:
            while self._await_due():
                try:
                    self._write()
                    backoff.reset()
                except MirrorError as error:
                    if self._stopping:
                        return
                    self._log_error(error)
                    self._pause(backoff.next_delay_s())
        finally:
            self._router.close()

    def _await_due(self) -> bool:
        """Wait until there is something to write; False when it is all over."""
        with self._condition:
            self._condition.wait_for(lambda: bool(self._has_due()) or self._stopping)
            for sync in self._queue.pop_pending():
                self._unwritten[sync.partition] = sync
                self._queue.on_send_complete()
            return bool(self._unwritten)

    def _has_due(self) -> bool:
        return bool(self._unwritten or self._queue.pending)

    def _write(self) -> None:
        now_ms = time.time_ns() // 1_000_000
        syncs = list(self._unwritten.values())[:MAX_SYNCS_PER_BATCH]
        append_records(
            self._router,
            TopicPartition(self._topic.name, 0),
            [Record(0, now_ms, *sync.encode()) for sync in syncs],
        )
        for sync in syncs:
            del self._unwritten[sync.partition]
        self._last_error = ""

    def _log_error(self, error: MirrorError) -> None:
        if str(error) != self._last_error:
            log.warning("Offset syncs wait to be written to %s: %s", self._topic.name, error)
        self._last_error = str(error)

    def _pause(self, seconds: float) -> None:
        with self._condition:
            self._condition.wait_for(lambda: self._stopping, timeout=seconds)
