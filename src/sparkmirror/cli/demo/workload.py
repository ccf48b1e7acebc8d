"""The workload of the demo's primary cluster: a producer, and a consumer group that commits.

Runs in its own thread. Records have keys, headers and timestamps, so that the checks at the end
compare them. The group commits a little behind the end of every partition.
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
from sparkmirror.wire.protocol.synchronous.synchronous_produce import append_records

GROUP = "shop"
BATCH_INTERVAL_S = 0.1
BATCH_RECORDS = 50
BATCHES_PER_COMMIT = 10
COMMIT_LAG = 20
"""How many records the group is behind the end of each partition."""


class DemoWorkload:
    """Writes to topics until it is stopped. `topics` maps names to numbers of partitions."""

    def __init__(self, access: ClusterAccess, topics: Mapping[str, int]) -> None:
        self._access = access
        self._partitions = [
            TopicPartition(topic, n) for topic, count in topics.items() for n in range(count)
        ]
        self._end_offsets: dict[TopicPartition, int] = {}
        self._stopping = threading.Event()
        self._next_number = 0
        self.failure: MirrorError | None = None
        self._thread = threading.Thread(target=self._run, name="workload", daemon=True)

    @property
    def committed(self) -> dict[TopicPartition, int]:
        """The group's committed offsets after `stop`."""
        return {partition: max(end - COMMIT_LAG, 0) for partition, end in self._end_offsets.items()}

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop writing; the group commits once more. Blocks up to 30 s."""
        self._stopping.set()
        if self._thread.ident:
            self._thread.join(timeout=30)

    def _run(self) -> None:
        router = self._access.new_router("sparkmirror-demo")
        batches = 0
        try:
            while not self._stopping.wait(BATCH_INTERVAL_S):
                batches += 1
                partition = self._partitions[batches % len(self._partitions)]
                self._end_offsets[partition] = (
                    append_records(router, partition, self._next_batch()) + BATCH_RECORDS
                )
                if batches % BATCHES_PER_COMMIT == 0:
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
                position,
                now_ms,
                f"customer-{number % 97}".encode(),
                f'{{"order":{number},"total":{number % 500}}}'.encode(),
                ((b"trace", f"{number:08x}".encode()),),
            )
            for position, number in enumerate(range(first, first + BATCH_RECORDS))
        ]
