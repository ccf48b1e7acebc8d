"""The life on the demo's primary: somebody who writes, and a consumer group that reads along.

A thread of its own. What it writes has keys, headers and times, so that the check in the end means
something; the group commits a little behind the end of every partition.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.groups import alter_consumer_group_offsets
from sparkmirror.errors import MirrorError
from sparkmirror.model import OffsetAndMetadata, TopicPartition
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.single_produce import append_records

GROUP = "shop"
BATCH_INTERVAL_S = 0.1
BATCH_RECORDS = 50
BATCHES_PER_COMMIT = 10
COMMIT_LAG = 20
"""How many records the group is behind the end of each partition."""


class DemoWorkload:
    """Writes to topics (by partitions) until it is stopped. Use as a context."""

    def __init__(self, access: ClusterAccess, topics: Mapping[str, int]) -> None:
        self._access = access
        self._partitions = [
            TopicPartition(topic, n) for topic, count in topics.items() for n in range(count)
        ]
        self._end_offsets: dict[TopicPartition, int] = {}
        self._stopping = threading.Event()
        self._next_number = 0
        self.failure: MirrorError | None = None
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)

    @property
    def committed(self) -> dict[TopicPartition, int]:
        """Where the group stands once the load has stopped."""
        return {partition: max(end - COMMIT_LAG, 0) for partition, end in self._end_offsets.items()}

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Write no more; the group commits once more, and leaves."""
        self._stopping.set()
        if self._thread.ident:
            self._thread.join(timeout=30)

    def _run(self) -> None:
        router = self._access.new_router("sparkmirror-demo")
        turn = 0
        try:
            while not self._stopping.wait(BATCH_INTERVAL_S):
                turn += 1
                partition = self._partitions[turn % len(self._partitions)]
                self._end_offsets[partition] = (
                    append_records(router, partition, self._next_batch()) + BATCH_RECORDS
                )
                if turn % BATCHES_PER_COMMIT == 0:
                    self._commit(router)
            self._commit(router)
        except MirrorError as error:
            self.failure = error
        finally:
            router.close()

    def _commit(self, router: Router) -> None:
        offsets = {
            partition: OffsetAndMetadata(offset=offset)
            for partition, offset in self.committed.items()
        }
        if offsets:
            alter_consumer_group_offsets(router, GROUP, offsets)

    def _next_batch(self) -> list[Record]:
        now_ms = time.time_ns() // 1_000_000
        first, self._next_number = self._next_number, self._next_number + BATCH_RECORDS
        return [
            Record(
                place,
                now_ms,
                f"customer-{number % 97}".encode(),
                f'{{"order":{number},"total":{number % 500}}}'.encode(),
                ((b"trace", f"{number:08x}".encode()),),
            )
            for place, number in enumerate(range(first, first + BATCH_RECORDS))
        ]
