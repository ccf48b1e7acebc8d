"""Writes offset syncs, the source of checkpoints, as MirrorMaker 2 writes them.

The conductor adds the acknowledged runs and reports when offsets are committed;
`mirror.offsets.offset_sync_queue` decides when a sync is due, and which. A separate thread writes
the syncs, so that an unavailable cluster does not delay copying. A sync that cannot be written is
kept until it can, or until a later sync of its partition replaces it; `problem` says why meanwhile.
While the worker is not a member of its group no sync is written: another worker may write newer
ones of the same partitions.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from sparkmirror.backoff import Backoff
from sparkmirror.copy.client_config_resolver import resolve_client
from sparkmirror.copy.job import OffsetSyncsTopic
from sparkmirror.copy.settings import CopySettings, with_side
from sparkmirror.errors import MirrorError
from sparkmirror.logging_context import ContextThread
from sparkmirror.mirror.offsets.offset_sync_queue import OffsetSyncQueue
from sparkmirror.mirror.offsets.records import OffsetSync
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.synchronous.synchronous_produce import append_records

log = logging.getLogger(__name__)

MAX_SYNCS_PER_BATCH = 500
"""Each partition has at most one pending sync."""
STOP_TIMEOUT_S = 5.0
MAX_RETRY_DELAY_S = 3.0
MEMBERSHIP_POLL_S = 0.2


class OffsetSyncWriter:
    """Writes the offset syncs of one job. Its methods do not block, except `stop`."""

    def __init__(
        self, topic: OffsetSyncsTopic, client_id: str, may_write: Callable[[], bool] = lambda: True
    ) -> None:
        self._may_write = may_write
        self._topic = topic
        self._router = Router(*resolve_client(topic.cluster, topic.client, client_id))
        self._queue = OffsetSyncQueue(topic.offset_lag_max, max_in_flight=MAX_SYNCS_PER_BATCH)
        self._condition = threading.Condition()
        self._unwritten: dict[TopicPartition, OffsetSync] = {}
        self._stopping = False
        self._error: MirrorError | None = None
        self._thread = ContextThread(target=self._run, name="offset-syncs")

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def add_run(self, partition: TopicPartition, run: OffsetRun) -> None:
        """Add a run of acknowledged records of a source partition."""
        with self._condition:
            self._queue.queue_run(partition, run)
            self._condition.notify()

    def forget(self, partition: TopicPartition) -> None:
        """Drop the syncs of a partition that another conductor has taken."""
        with self._condition:
            self._queue.discard(partition)
            self._unwritten.pop(partition, None)

    def on_offsets_committed(self) -> None:
        """Make delayed syncs due: offsets were committed."""
        with self._condition:
            self._queue.promote_delayed()
            self._condition.notify()

    def problem(self, settings: CopySettings) -> str:
        """Return why syncs cannot be written now, with the topic; empty if they can."""
        error = self._error
        if error is None:
            return ""
        cause = with_side(error, settings)
        return (
            f"offset syncs cannot be written to {self._topic.name}, so that new offsets of groups"
            f" are not translated: {cause}"
        )

    def stop(self) -> None:
        """Write what is due within the stop timeout, and end the thread."""
        with self._condition:
            self._queue.promote_delayed()
            self._stopping = True
            self._condition.notify()
        if self._thread.is_alive():
            self._thread.join(timeout=STOP_TIMEOUT_S)

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        backoff = Backoff(initial_s=0.2, max_s=MAX_RETRY_DELAY_S)
        try:
            while self._await_due():
                if not self._may_write():
                    if self._stopping:
                        return
                    self._pause(MEMBERSHIP_POLL_S)
                    continue
                try:
                    self._write()
                    backoff.reset()
                except MirrorError as error:
                    if self._stopping:
                        return
                    self._set_error(error)
                    self._pause(backoff.next_delay_s())
        finally:
            self._router.close()

    def _await_due(self) -> bool:
        """Wait for a sync to write; False if it stops and none is left."""
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
        with self._condition:
            syncs = list(self._unwritten.values())[:MAX_SYNCS_PER_BATCH]
        append_records(
            self._router,
            TopicPartition(self._topic.name, 0),
            [Record(0, now_ms, *sync.encode()) for sync in syncs],
        )
        with self._condition:
            for sync in syncs:
                self._unwritten.pop(sync.partition, None)
        self._error = None

    def _set_error(self, error: MirrorError) -> None:
        if str(error) != str(self._error):
            log.warning("Cannot write offset syncs to %s, will retry: %s", self._topic.name, error)
        self._error = error

    def _pause(self, seconds: float) -> None:
        with self._condition:
            self._condition.wait_for(lambda: self._stopping, timeout=seconds)
