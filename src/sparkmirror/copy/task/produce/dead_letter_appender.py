"""Appends dead letters to their topic. Blocks; runs in the background of a task.

The letters of a source partition go to one partition of the topic, in order: to that of the same
number, if the topic has so many, else to that number modulo their count.

A letter that got no answer is sent again under the same sequence, so that the target recognises it.
After an error of the whole call it is unknown which letters the target has. The next call uses
another producer id, because a sequence must not stand for two letters; so letters may come twice,
and none is lost. A target without producer ids gets each letter as a batch of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sparkmirror.errors import ClusterError, NotAuthorized, TopicMissing
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.error_codes import ErrorAction, ErrorCode
from sparkmirror.wire.protocol.producer_ids import init_producer_id
from sparkmirror.wire.protocol.synchronous.idempotent_producer import IdempotentProducer
from sparkmirror.wire.protocol.synchronous.multi_partition_produce import append_to_partitions

DELIVERY_TIMEOUT_S = 120.0
"""How long the letters of a call are tried again: delivery.timeout.ms of Kafka's producers. A
broker may take 10 s for one attempt, and has 15 s to answer."""
MAX_BATCH_BYTES = 500_000


@dataclass(frozen=True, slots=True, eq=False)
class AddressedDeadLetter:
    """A letter, and the number of its source partition."""

    source_partition: int
    record: Record
    size: int


class DeadLetterAppender:
    """Appends to one topic. One call at a time."""

    def __init__(
        self, router: Router, topic: str, *, timeout_s: float = DELIVERY_TIMEOUT_S
    ) -> None:
        self._router = router
        self._topic = topic
        self._timeout_s = timeout_s
        self._producer: IdempotentProducer | None = None
        self._partition_count = 0
        """The number of partitions of the topic; 0 while it is unknown."""
        self.retry_error = ""
        """Why the running call is tried again; empty if it is not. Any thread may read it."""
        router.on_retry = self._on_retry

    def append(self, letters: Sequence[AddressedDeadLetter], *, is_idempotent: bool) -> None:
        """Append letters. Returns when the target has all of them. Raises ClusterError."""
        try:
            batches = self._batches(letters, is_idempotent=is_idempotent)
            if is_idempotent and self._producer is None:
                self._producer = IdempotentProducer(init_producer_id(self._router))
            producer = self._producer if is_idempotent else None
            append_to_partitions(
                self._router, batches, producer=producer, timeout_s=self._timeout_s
            )
        except ClusterError:
            self._producer, self._partition_count = None, 0
            raise
        finally:
            self.retry_error = ""
            if self._router.cancel_signal.is_set():
                self._router.close()

    def close(self, *, is_idle: bool) -> None:
        """Close the connections; a call that is under way ends soon, and closes them itself."""
        self._router.cancel()
        if is_idle:
            self._router.close()

    def _on_retry(self, error: ClusterError) -> None:
        self.retry_error = str(error)

    def _batches(
        self, letters: Sequence[AddressedDeadLetter], *, is_idempotent: bool
    ) -> dict[TopicPartition, list[list[Record]]]:
        count = self._partition_count = self._partition_count or self._find_partition_count()
        by_partition: dict[TopicPartition, list[AddressedDeadLetter]] = defaultdict(list)
        for letter in letters:
            number = letter.source_partition % count
            by_partition[TopicPartition(self._topic, number)].append(letter)
        limit = MAX_BATCH_BYTES if is_idempotent else 0
        return {partition: list(split(some, limit)) for partition, some in by_partition.items()}

    def _find_partition_count(self) -> int:
        topic = self._router.refresh([self._topic]).topics.get(self._topic)
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic.error_code
        if topic is not None and topic.partitions:
            return len(topic.partitions)
        if code.action is ErrorAction.NOT_AUTHORIZED:
            raise NotAuthorized(self._router.cluster, f"{self._topic}: {code}")
        raise TopicMissing(self._router.cluster, f"the topic {self._topic} does not exist")


def split(letters: Sequence[AddressedDeadLetter], max_bytes: int) -> Iterator[list[Record]]:
    """Yield the letters as batches of at most so many bytes, or of one letter."""
    batch: list[Record] = []
    size = 0
    for letter in letters:
        if batch and size + letter.size > max_bytes:
            yield batch
            batch, size = [], 0
        batch.append(letter.record)
        size += letter.size
    if batch:
        yield batch
