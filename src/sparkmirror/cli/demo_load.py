"""The life on the demo's primary: somebody who writes, and a consumer group that reads along.

A thread of its own. What it writes has keys, headers and times, so that the check in the end means
something; the group commits a little behind the end of every partition.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from sparkmirror.cluster.access import Access
from sparkmirror.cluster.groups import commit_offsets
from sparkmirror.errors import MirrorError
from sparkmirror.model import OffsetAndMetadata, TopicPartition
from sparkmirror.wire.append import append
from sparkmirror.wire.records import Record
from sparkmirror.wire.routing import Router

GROUP = "shop"
EVERY_S = 0.1
BATCH = 50
COMMIT_EVERY = 10
BEHIND = 20
"""How many records the group is behind the end of each partition."""


class Load:
    """Writes to topics (by partitions) until it is stopped. Use as a context."""

    def __init__(self, access: Access, topics: Mapping[str, int]) -> None:
        self._access = access
        self._partitions = [
            TopicPartition(topic, n) for topic, count in topics.items() for n in range(count)
        ]
        self._ends: dict[TopicPartition, int] = {}
        self._stopping = threading.Event()
        self._number = 0
        self.failure: MirrorError | None = None
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)

    @property
    def committed(self) -> dict[TopicPartition, int]:
        """Where the group stands once the load has stopped."""
        return {partition: max(end - BEHIND, 0) for partition, end in self._ends.items()}

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Write no more; the group commits once more, and leaves."""
        self._stopping.set()
        if self._thread.ident:
            self._thread.join(timeout=30)

    def _run(self) -> None:
        router = self._access.router("sparkmirror-demo")
        turn = 0
        try:
            while not self._stopping.wait(EVERY_S):
                turn += 1
                partition = self._partitions[turn % len(self._partitions)]
                self._ends[partition] = append(router, partition, self._batch()) + BATCH
                if turn % COMMIT_EVERY == 0:
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
            commit_offsets(router, GROUP, offsets)

    def _batch(self) -> list[Record]:
        now_ms = time.time_ns() // 1_000_000
        first, self._number = self._number, self._number + BATCH
        return [
            Record(
                place,
                now_ms,
                f"customer-{number % 97}".encode(),
                f'{{"order":{number},"total":{number % 500}}}'.encode(),
                ((b"trace", f"{number:08x}".encode()),),
            )
            for place, number in enumerate(range(first, first + BATCH))
        ]
